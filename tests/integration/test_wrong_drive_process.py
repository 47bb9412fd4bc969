# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 10, 11, 41 and 42 of docs/wrong-drives.md: what comes between the check and the erasure, and plays that are cut
or repeated.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path

import pytest
from command_log import destructive
from waiting import wait_until
from wrong_drive import REPO, SIZE, run

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks

# Stands before fio: when a job's file has these words in its path, it first puts a loop device on the drive, once.
FIO = """#!/bin/sh
case "$*" in
{cases}
esac
exec {fio} "$@"
"""
FIO_CASE = '*/{slug}/*{word}*) [ -e "{done}" ] || {{ : > "{done}"; losetup --find {path}; }} ;;'


def loops_on(path):
    """Loop devices over a file or a device."""
    return run("losetup", "--noheadings", "--output", "NAME", "--associated", path).split()


def _end(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def between(make_bench):
    """One job at drives to which something happened after preflight had passed them, but for `spare` and `given up`."""
    bench = make_bench()
    names = ("attached again", "mounted", "table", "data", "stacked", "shrunk", "read-only", "locked", "opened")
    disks = {name: bench.disk(name) for name in names}
    where, image = os.path.join(bench.folder, "where"), os.path.join(bench.folder, "ext4")
    os.mkdir(where)
    with open(image, "wb") as file:
        file.truncate(SIZE)
    run("mkfs.ext4", "-q", image)
    pid = Path(bench.folder, "opened.pid")
    disks["mounted"].undo("umount", where)
    disks["read-only"].undo("blockdev", "--setrw", disks["read-only"].path)
    bench.callback(lambda: [run("losetup", "--detach", path) for path in loops_on(disks["stacked"].path)])
    bench.callback(_end, pid)
    given_up = bench.disk("given up")
    given_up.write(0, b"nobody's data")
    given_up.entry["ssd_overwrite_data"] = True
    with locks.drive_lock(disks["locked"].path, {"run": "another"}):
        return bench.play_between(
            ("losetup", "--detach", disks["attached again"].path),
            ("losetup", disks["attached again"].path, disks["attached again"].file),
            ("cp", image, disks["mounted"].path),
            ("mount", "-o", "ro,noload", disks["mounted"].path, where),
            ("sgdisk", "--clear", disks["table"].path),
            ("dd", "if=/dev/urandom", "of=" + disks["data"].path, "bs=4096", "count=1", "oflag=direct"),
            ("losetup", "--find", disks["stacked"].path),
            ("truncate", "--size", SIZE // 2, disks["shrunk"].file),
            ("losetup", "--set-capacity", disks["shrunk"].path),
            ("blockdev", "--setro", disks["read-only"].path),
            ("sh", "-c", 'setsid sleep 120 < "$0" > /dev/null 2>&1 & echo $! > "$1"', disks["opened"].path, pid),
        )


@pytest.mark.case(10)
def test_case_10_another_drive_of_the_same_name_since_preflight(between):
    between.refused("attached again", "identity_changed")
    between.refused("shrunk", "identity_changed")


@pytest.mark.case(11)
def test_case_11_another_run_works_on_the_drive(between):
    between.refused("locked", "locked")


@pytest.mark.case(41)
@pytest.mark.parametrize(
    "name, codes",
    [
        ("mounted", ["mounted", "signature", "busy"]),
        ("table", ["partition_table"]),
        ("data", ["unsigned_data"]),
        ("stacked", ["held"]),
        ("read-only", ["read_only"]),
        ("opened", ["opened"]),
    ],
)
def test_case_41_what_came_after_preflight_is_seen(between, name, codes):
    between.refused(name, *codes)


@pytest.mark.case(38)
def test_case_38_set_read_only_after_preflight(between):
    between.refused("read-only", "read_only")


def test_the_drives_that_nothing_happened_to_are_erased_and_it_is_seen(between):
    """Without this, nothing told that the assertions of all cases can fail. `spare` is blank before and after."""
    assert between.changed == ["given up"] and between.codes("given up") == between.codes("spare") == set()
    for name, told in (("given up", "has changed"), ("spare", "BLKDISCARD")):
        with pytest.raises(AssertionError, match=told):
            between.untouched(name)
    discard = ["ioctl", "BLKDISCARD", between.bench.spare.path, "0", str(SIZE)]
    assert discard in between.commands and destructive(discard)


@pytest.mark.parametrize(
    "command",
    [
        "", "wipefs -a /dev/sda", "wipefs -n --json --all /dev/sda", "blkdiscard -f /dev/sda",
        "dd if=/dev/zero of=/dev/sda", "fio job.fio", "setpriv --pdeathsig KILL fio --output=x job.fio",
        "fio --name=traffic --filename=/dev/sda", "nvme format /dev/nvme0n1 --ses=1",
        "nvme sanitize /dev/nvme0 --sanact=2", "nvme id-ctrl", "hdparm --security-erase p /dev/sda",
        "sg_format --format /dev/sda", "sg_raw --readonly --request=512 /dev/sda 04 00 00 00 00 00",
        "sg_sanitize --block /dev/sda", "rssdm -X -p ffff -n 0", "ioctl BLKDISCARD /dev/sda 0 1",
    ],
)  # fmt: skip
def test_what_the_matcher_takes_for_destructive(command):
    assert destructive(command.split())


# --- within the job -----------------------------------------------------------


@pytest.fixture(scope="module")
def during(make_bench):
    """Two drives that something is put on while the job works on them: before the purge, and between purge and
    precondition.
    """
    bench = make_bench()
    cases = []
    for name, word in (("early", "probe.fio"), ("late", "-purge-")):
        disk = bench.disk(name)
        facts = {"slug": files.slug(disk.label), "word": word, "done": disk.file + ".done", "path": disk.path}
        cases.append(FIO_CASE.format(**facts))
        bench.callback(lambda path=disk.path: [run("losetup", "--detach", above) for above in loops_on(path)])
    tool = Path(bench.folder, "bin", "fio")
    tool.parent.mkdir()
    tool.write_text(FIO.format(cases="\n".join(cases), fio=shutil.which("fio")))
    tool.chmod(0o755)
    bench.environment["PATH"] = "{}:{}".format(tool.parent, os.environ["PATH"])
    (test,) = bench.site.vars["ssd_plan"]
    bench.site.vars["ssd_plan"] = [dict(test, purge={"method": "overwrite"})]
    entries = [disk.entry for name, disk in bench.disks.items() if name != "spare"]
    return bench.play(playbook="qualify", entries=entries)


@pytest.mark.case(41)
@pytest.mark.parametrize("name, steps", [("early", []), ("late", ["-purge-"])])
def test_case_41_every_destructive_step_looks_again(during, name, steps):
    """Each drive got the job's own probe of fio first: one block. Of the steps of its test only those before the stage
    ran.
    """
    assert during.codes(name) == {"held"} and during.code != 0
    slug = files.slug(during.bench.disks[name].label)
    jobs = {
        os.path.basename(argv[-1]) for argv in during.commands if argv[-1].endswith(".fio") and f"/{slug}/" in argv[-1]
    }
    assert "probe.fio" in jobs
    assert {step for step in ("-purge-", "-precondition-", "-0001-") if any(step in job for job in jobs)} == set(steps)


# --- cut, repeated and parallel plays
# -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plays(make_bench):
    """A bench with a good drive (spare) and one with a file system on it."""
    bench = make_bench()
    run("mkfs.ext4", "-q", bench.disk("data").path)
    return bench


@pytest.mark.case(42)
def test_case_42_check_mode_looks_and_changes_nothing(plays):
    outcome = plays.play("--check", playbook="qualify", entries=[plays.spare.entry])
    assert outcome.code == 0, outcome.output
    assert not outcome.changed and not plays.site.run_folders()
    plays.play("--check", playbook="qualify").refused("data", "signature")


@pytest.mark.case(42)
@pytest.mark.parametrize("task", ["Start the host job, or attach to it", "Decide for the whole fleet"])
def test_case_42_a_play_that_starts_in_the_middle_has_no_run(plays, task):
    outcome = plays.play("--start-at-task", task, playbook="qualify")
    assert outcome.code != 0 and not outcome.changed and not plays.site.run_folders(), outcome.output


@pytest.mark.case(42)
@pytest.mark.parametrize("arguments", [("--tags", "tune"), ("--skip-tags", "always")])
def test_case_42_tags_cannot_leave_out_the_check(plays, arguments):
    outcome = plays.play(*arguments, playbook="qualify")
    assert not outcome.changed and not [argv for argv in outcome.commands if destructive(argv)], outcome.output
    assert not plays.site.run_folders()


@pytest.mark.case(42)
def test_case_42_ignored_errors_erase_nothing(plays):
    path = Path(plays.folder, "ignoring.yml")
    path.write_text(
        """
- hosts: ssd_servers
  gather_facts: false
  become: false
  ignore_errors: true
  any_errors_fatal: false
  roles: [ssdlab.fleet.preflight, ssdlab.fleet.workload]
"""
    )
    outcome = plays.play(playbook=path, env={"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks" / "collections")})
    assert outcome.codes("data") == {"signature"} and not outcome.changed and not plays.site.run_folders()
    assert not [argv for argv in outcome.commands if destructive(argv)]


@pytest.mark.case(42)
def test_case_42_a_retry_of_a_finished_run_wipes_nothing(plays):
    """Also with somebody's file system on the drive by then: the run is done with it."""
    arguments = ("-e", "ssd_run_id=finished")
    first = plays.play(*arguments, playbook="purge", entries=[plays.spare.entry])
    assert first.code == 0, first.output
    run("mkfs.ext4", "-q", plays.spare.path)
    again = plays.play(*arguments, playbook="purge", entries=[plays.spare.entry])
    assert again.code == 0 and "changed=0" in again.output, again.output
    assert not again.changed and again.journal == []
    run("wipefs", "--all", plays.spare.path)


@pytest.mark.case(11)
def test_case_11_two_runs_at_once(make_bench):
    """From two controllers: the second run is refused the drive that the first one holds, and the host
    for any other.
    """
    bench = make_bench()
    other = bench.disk("other")
    (test,) = bench.site.vars["ssd_plan"]
    bench.site.vars["ssd_plan"] = [dict(test, cells=[dict(test["cells"][0], runtime_s=3600)])]
    held = [bench.spare.entry]
    first = bench.play(entries=held)
    assert first.code == 0, first.output
    journal = bench.site.run_folders()[0] / "journal.jsonl"
    second = make_bench()
    second.disks.update(bench.disks)
    try:
        wait_until(lambda: '"precondition"' in journal.read_text(), "the fill", bench.site.progress)
        outcome = second.play(entries=held)
        assert {"busy", "opened"} <= outcome.codes("spare") and outcome.code != 0
        assert not [argv for argv in outcome.commands if destructive(argv)]
        outcome = second.play(entries=[other.entry])
        assert outcome.code != 0 and "locked: another run is using this host" in " ".join(outcome.output.split()), (
            outcome.output
        )
        outcome.untouched("other")
    finally:
        assert bench.site.play("stop")[0] == 0
