# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 70, 71, 74 to 76 and 81 to 83 of docs/wrong-drives.md: what is erased is what preflight decided on, by the
device that was checked.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from command_log import destructive
from wrong_drive import SERVER, needs, run

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger, ledger_format
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError, Work
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests
from ansible_collections.ssdlab.fleet.tests.fixtures import plans

CLONE_NEWNS = 0x20000
# Stands before fio: at the first job with this word in its path it lays another device's node over the drive's.
FIO = """#!/bin/sh
case "$*" in
*/{slug}/*{word}*) [ -e "{done}" ] || {{ : > "{done}"; mount --bind {other} {path}; }} ;;
esac
exec {fio} "$@"
"""


@pytest.fixture
def bench(make_bench):
    return make_bench()


@pytest.mark.case(70)
@pytest.mark.parametrize("word", ["probe.fio", "-precondition-", "-0001-"])
def test_case_70_another_device_under_the_name_while_fio_works(bench, word):
    """fio writes to the descriptor that the job holds, so the unnamed drive stays as it is; the next step sees what
    happened.
    """
    named, other = bench.disk("named"), bench.disk("other")
    other.write(0, b"somebody's data")
    tool = Path(bench.folder, "bin", "fio")
    tool.parent.mkdir()
    facts = {"slug": files.slug(named.label), "word": word, "done": named.file + ".done"}
    tool.write_text(FIO.format(other=other.path, path=named.path, fio=shutil.which("fio"), **facts))
    tool.chmod(0o755)
    bench.environment["PATH"] = "{}:{}".format(tool.parent, os.environ["PATH"])
    bench.in_namespace("true")  # what is mounted is seen by this play alone
    outcome = bench.play(playbook="qualify", entries=[named.entry])
    assert os.path.exists(named.file + ".done"), outcome.output
    assert "other" not in outcome.changed and "named" in outcome.changed, outcome.output
    if word != "-0001-":
        assert (
            outcome.codes("named") <= {"not_found", "probe_failed", "mounted"}
            and outcome.codes("named")
            and outcome.code != 0
        )


@pytest.mark.case(71)
def test_case_71_another_device_under_the_name_before_a_purge_command(bench):
    """The command is refused with identity_changed and never runs. In a mount namespace of its own."""
    named, other = bench.disk("named"), bench.disk("other")
    pid = os.fork()
    if pid == 0:
        os._exit(_purge_over(named, other))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _purge_over(named, other):
    """Exit code: 0 where the command was refused with identity_changed and did not run."""
    assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) == 0
    run("mount", "--make-rprivate", "/")
    host = Host()
    (seen,) = inspect(host, [parse(named.entry)])
    held = HeldDrive(host, {"entry": parse(named.entry), "expected": seen["identity"]}, {"run": "r"}, same_boot=True)
    held.take()
    work = Work(
        host=host,
        held=held,
        options=PlannedPurge("auto"),
        tick=lambda _share: None,
        note=lambda *_all, **_more: None,
        fill=lambda _tick: 0,
    )
    argv = ["touch", named.file + ".purged", named.path]
    assert work.command(argv, 10).rc == 0 and os.path.exists(named.file + ".purged")
    os.unlink(named.file + ".purged")
    run("mount", "--bind", other.path, named.path)
    try:
        work.command(argv, 10)
    except PurgeError as error:
        return 0 if error.code == "identity_changed" and not os.path.exists(named.file + ".purged") else 1
    return 2


@pytest.mark.case(82)
@pytest.mark.parametrize(
    "line", ["filename=/dev/sda", "directory=/", "exec_prerun=rm -r /", "read_iolog=x", "filename = /dev/sda"]
)
def test_case_82_a_job_that_names_more_than_the_drive(line):
    job = "[global]\nfilename=/proc/1/fd/3\nrw=write\n"
    assert fio.strays(job, "/proc/1/fd/3") == []
    assert fio.strays(job + line + "\n", "/proc/1/fd/3") == [line]
    assert fio.strays("[x]\nrw=write\n", "/proc/1/fd/3")


@pytest.mark.case(74)
@pytest.mark.parametrize("given", ["ssd_decision", "ssd_decision of a run that was", "__preflight_decision"])
def test_case_74_a_decision_given_on_the_command_line(bench, given):
    bench.site.vars["ssd_mode"] = "plan"
    if given == "ssd_decision of a run that was":
        bench.site.vars["ssd_mode"] = "destructive"
        assert bench.play("-e", "ssd_run_id=given", playbook="purge").code == 0
        bench.site.vars["ssd_mode"] = "plan"
        shutil.rmtree(bench.site.state)
    bench.spare.write(0, b"data")
    bench.spare.entry["ssd_overwrite_data"] = True
    run_given = {"id": "given", "name": "given", "destructive": True, "results_dir": str(bench.site.results)}
    decided = {
        "run": run_given,
        "attach": {},
        "skipped": "",
        "attached": "",
        "left_out": {},
        "hosts_left_out": {},
        "hosts_without_run": [],
        "prepare": True,
        "starts": ["rack1-07"],
        "look_again": False,
        "power_cuts": {},
        "fans_left_high": [],
        "plan_to_approve": {},
    }
    registered = given[0] == "_"
    variables = {given: {"decision": decided, "plan_text": []}} if registered else {"ssd_decision": decided}
    outcome = bench.play("-e", json.dumps(variables))
    assert outcome.code != 0 and not outcome.changed, outcome.output
    assert not [argv for argv in outcome.commands if destructive(argv)]
    why = "did not approve anything in this run" if registered else "ssd_decision: is set by preflight"
    assert why in " ".join(outcome.output.split()), outcome.output


@pytest.mark.case(75)
def test_case_75_a_lookup_that_gives_another_drive_each_time(bench):
    """Every evaluation of ssd_drives takes the next drive of the list: all that is done is done to the one that was
    asked for.
    """
    needs("sed")
    names = ["first", "second", "third", "fourth"]
    listed = Path(bench.folder, "drives")
    listed.write_text("".join(bench.disk(name).file + "\n" for name in names) * 8)
    for name in names:
        bench.disks[name].write(0, b"data of " + name.encode())
    take = f"head -n1 {listed}; sed -i 1d {listed}"
    entries = f"{{{{ [{{'backing_file': lookup('pipe', '{take}'), 'ssd_overwrite_data': true}}] }}}}"
    outcome = bench.play(playbook="qualify", entries=entries)
    (record,) = [json.loads(path.read_text()) for path in bench.site.results.glob("*/run.json")]
    asked = {item["drive"] for item in record["asked"]}
    assert {bench.disks[name].file for name in outcome.changed} <= asked and len(asked) == 1, outcome.output


@pytest.mark.case(76)
def test_case_76_other_tests_between_the_decision_and_the_start(bench):
    """A variable that is another one each time: it is evaluated once, and what was decided on is done."""
    counter = Path(bench.folder, "counter")
    counter.write_text("")
    bench.site.vars["purge_timeout_s"] = (
        f"{{{{ lookup('pipe', 'echo >> {counter}; wc -l < {counter}') | int + 1800 }}}}"
    )
    bench.spare.write(0, b"data")
    bench.spare.entry["ssd_overwrite_data"] = True
    outcome = bench.play(playbook="purge")
    assert outcome.code == 0, outcome.output
    (decided,) = bench.site.results.glob("*/decision.json")
    digest = json.loads(decided.read_text())["hosts"][SERVER]["digest"]
    (run,) = bench.site.run_folders()
    plan = json.loads((run / "plan.json").read_text())
    assert plan["decision"]["digest"] == digest and digests.plan_problem(plans.typed(plan)) == ""
    assert plan["drives"][0]["tests"][0]["purge"]["timeout_s"] == 1801 and counter.read_text() == "\n"


@pytest.mark.case(81)
def test_case_81_a_state_folder_that_others_can_write(bench):
    above = Path(tempfile.mkdtemp(dir=bench.folder))
    above.chmod(0o777)
    bench.site.vars["ssd_state_dir"] = str(above / "state")
    outcome = bench.play()
    outcome.refused("spare", "untrusted_state")
    assert str(above) in outcome.message("spare", "untrusted_state") and not (above / "state").exists()


def _damaged(path):
    path.write_text(path.read_text()[:-5])


def _empty(path):
    path.write_text("")


def _a_link(path):
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


DISTURBED = {
    "damaged": _damaged,
    "empty": _empty,
    "a link": _a_link,
    "another user's": lambda path: os.chown(path, 65534, -1),
    "open to all": lambda path: path.chmod(0o666),
}


@pytest.mark.case(83)
def test_case_83_an_entry_of_the_ledger_that_cannot_be_trusted(bench):
    """Each drive is kept as evidence; what keeps it is damaged, or could be somebody else's. `untrusted_state` names
    the file, and it stays.
    """
    host, files_of = Host(), {}
    bench.site.state.mkdir(parents=True)
    for name, disturb in DISTURBED.items():
        disk = bench.disk(name)
        (identity,) = [seen["identity"] for seen in inspect(host, [parse(disk.entry)], terms=None)]
        before = ledger.begin(host, str(bench.site.state), identity, "night")
        disk.write(0, b"what failed")
        ledger.end(host, before, identity, "iops: read_iops is 5")
        disk.entry["ssd_overwrite_data"] = True
        files_of[name] = Path(ledger_format.path_of(str(bench.site.state), identity))
        disturb(files_of[name])
    outcome = bench.play()
    assert not outcome.codes("spare")
    for name, path in files_of.items():
        outcome.refused(name, "untrusted_state")
        assert str(path) in outcome.message(name, "untrusted_state") and os.path.lexists(path)
