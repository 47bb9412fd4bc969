# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 10, 11, 41 and 42 of docs/wrong-drives.md: what comes between the check and the erasure, and plays that are cut or repeated."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from wrong_drive import MIB, REPO, SIZE, destructive, run

from ansible_collections.ssdlab.fleet.plugins.module_utils import drive, locks

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
    names = ("attached anew", "mounted", "table", "data", "stacked", "shrunk", "read-only", "locked", "opened")
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
    with locks.drive_lock({"path": disks["locked"].path}, {"run": "another"}):
        return bench.play_between(
            ("losetup", "--detach", disks["attached anew"].path),
            ("losetup", disks["attached anew"].path, disks["attached anew"].file),
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
    between.refused("attached anew", "identity_changed")
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
        "", "wipefs -a /dev/sda", "wipefs -n --json --all /dev/sda", "blkdiscard -f /dev/sda", "dd if=/dev/zero of=/dev/sda", "fio job.fio",
        "setpriv --pdeathsig KILL fio --output=x job.fio", "fio --name=traffic --filename=/dev/sda", "nvme format /dev/nvme0n1 --ses=1",
        "nvme sanitize /dev/nvme0 --sanact=2", "nvme id-ctrl", "hdparm --security-erase p /dev/sda", "sg_format --format /dev/sda",
        "sg_raw --readonly --request=512 /dev/sda 04 00 00 00 00 00", "sg_sanitize --block /dev/sda", "rssdm -X -p ffff -n 0", "ioctl BLKDISCARD /dev/sda 0 1",
    ],
)  # fmt: skip
def test_what_the_matcher_takes_for_destructive(command):
    assert destructive(command.split())


# --- within the job -------------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def during(make_bench):
    """Two drives that something is put on while the job works on them: before the purge, and between purge and precondition."""
    bench = make_bench()
    cases = []
    for name, word in (("early", "probe.fio"), ("late", "-purge-")):
        disk = bench.disk(name)
        facts = {"slug": drive.slug(disk.label), "word": word, "done": disk.file + ".done", "path": disk.path}
        cases.append(FIO_CASE.format(**facts))
        bench.callback(lambda path=disk.path: [run("losetup", "--detach", above) for above in loops_on(path)])
    tool = Path(bench.folder, "bin", "fio")
    tool.parent.mkdir()
    tool.write_text(FIO.format(cases="\n".join(cases), fio=shutil.which("fio")))
    tool.chmod(0o755)
    bench.environment["PATH"] = "%s:%s" % (tool.parent, os.environ["PATH"])
    (test,) = bench.site.vars["ssd_plan"]
    bench.site.vars["ssd_plan"] = [dict(test, purge={"method": "overwrite"})]
    entries = [disk.entry for name, disk in bench.disks.items() if name != "spare"]
    return bench.play(playbook="qualify", entries=entries)


@pytest.mark.case(41)
@pytest.mark.parametrize("name, steps", [("early", []), ("late", ["-purge-"])])
def test_case_41_every_destructive_step_looks_again(during, name, steps):
    """Each drive got the job's own probe of fio first: one block. Of the steps of its test only those before the stage ran."""
    assert during.codes(name) == {"held"} and during.code != 0
    slug = drive.slug(during.bench.disks[name].label)
    jobs = {os.path.basename(argv[-1]) for argv in during.commands if argv[-1].endswith(".fio") and "/%s/" % slug in argv[-1]}
    assert "probe.fio" in jobs
    assert {step for step in ("-purge-", "-precondition-", "-0001-") if any(step in job for job in jobs)} == set(steps)


# --- overrides ------------------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def overriding(make_bench):
    """Drives with content, most of them with an override in their entry that does not fit."""
    bench = make_bench()
    for name, given in (
        ("table allowed", {"allow": ["partition_table"]}),
        ("table", {}),
        ("signature with a table allowed", {"allow": ["partition_table"]}),
        ("mounted allowed", {"allow": ["mounted"]}),
        ("data allowed", {"allow": ["unsigned_data"]}),
        ("data to overwrite", {"ssd_overwrite_data": True}),
        ("data", {}),
        ("signature to overwrite", {"ssd_overwrite_data": True}),
        ("shared allowed", {"allow": ["shared_filesystem"]}),
    ):
        disk = bench.disk(name)
        disk.entry.update(given)
        if "table" in name.split()[:1]:
            run("sgdisk", "-n", "1:0:0", disk.path)
        elif name.startswith("data"):
            disk.write(MIB, os.urandom(MIB))
        else:
            run("mkfs.ext4", "-q", disk.path)
    return bench


@pytest.fixture(scope="module")
def overridden(overriding):
    """Preflight over all of them."""
    return overriding.play()


def test_an_override_is_one_for_its_drive_and_its_code(overridden):
    assert {name: overridden.codes(name) for name in ("table allowed", "data to overwrite")} == {"table allowed": set(), "data to overwrite": set()}
    overridden.refused("table", "partition_table")
    overridden.refused("data", "unsigned_data")
    overridden.refused("signature with a table allowed", "signature")
    overridden.refused("signature to overwrite", "signature")


@pytest.mark.parametrize("code", ["mounted", "shared_filesystem", "unsigned_data"])
def test_what_cannot_be_overridden_is_told(overridden, code):
    overridden.told("rack1-07", "its option allow names '%s'" % code)


def test_data_is_given_up_by_its_drive_alone(overriding):
    outcome = overriding.play("-e", '{"ssd_overwrite_data": true}', entries=[overriding.disks["data"].entry])
    outcome.refused("data", "unsigned_data")


def test_an_override_lets_the_drive_through_and_is_kept_in_the_results(overriding, overridden):
    """Also: a backing file with a name that a shell would run is only a name. Last, for it erases what it may."""
    canary = Path(overriding.folder, "canary")
    hostile = overriding.disk("hostile")
    name = Path(overriding.folder, "x; cd ${HOME%%root}; touch canary; $(touch canary) `touch canary`.img")
    run("losetup", "--detach", hostile.path)
    os.rename(hostile.file, name)
    hostile.file, hostile.entry = str(name), {"backing_file": str(name)}
    run("losetup", hostile.path, hostile.file)
    overriding.callback(hostile.detach, hostile.path, hostile.file)
    through = ("table allowed", "data to overwrite", "hostile")
    outcome = overriding.play(playbook="purge", entries=[overriding.disks[name].entry for name in through])
    assert outcome.code == 0, outcome.output
    assert outcome.changed == sorted(("table allowed", "data to overwrite"))  # the hostile one was blank before, and is again
    kept = {record["drive"]: [item["code"] for item in record["overridden"]] for record in outcome.results() if record["kind"] == "drive"}
    assert kept == dict(zip((overriding.disks[name].label for name in through), (["partition_table"], ["unsigned_data"], [])))
    assert not canary.exists() and not Path("canary").exists()


# --- several nights -------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def night(make_bench):
    """A drive that a run has filled with random data and let go of."""
    bench = make_bench()
    for name in ("written through the device", "written behind it"):
        bench.disk(name)
    outcome = bench.play(playbook="precondition")
    assert outcome.code == 0 and outcome.changed == sorted(bench.disks), outcome.output
    return bench


def test_our_own_data_is_erased_again_and_nobody_elses(night):
    """One sector written by somebody else since is enough: through the device anywhere, behind it where it was sampled."""
    with open(night.disks["written through the device"].path, "r+b", buffering=0) as device:
        device.seek(20 * MIB)
        device.write(b"somebody's data".ljust(512))
        os.fsync(device)
    night.disks["written behind it"].write(0, b"somebody's data".ljust(4096))
    outcome = night.play()
    assert outcome.codes("spare") == set()
    outcome.refused("written through the device", "unsigned_data")
    outcome.refused("written behind it", "unsigned_data")
    again = night.play(playbook="purge", entries=[night.spare.entry])
    assert again.code == 0 and again.changed == ["spare"], again.output


# --- cut, repeated and parallel plays -------------------------------------------------------------------------------------------------

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
@pytest.mark.parametrize("task", ["Start the host job, or attach to it", "Decide over the whole fleet"])
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
    """From two controllers: the second run is refused the drive that the first one holds, and the host for any other."""
    bench = make_bench()
    other = bench.disk("other")
    (test,) = bench.site.vars["ssd_plan"]
    bench.site.vars["ssd_plan"] = [dict(test, cells=[dict(test["cells"][0], runtime_s=60)])]
    held = [bench.spare.entry]
    first = bench.play(entries=held)
    assert first.code == 0, first.output
    journal = bench.site.run_folders()[0] / "journal.jsonl"
    second = make_bench()
    second.disks.update(bench.disks)
    try:
        deadline = time.monotonic() + 60
        while '"precondition"' not in journal.read_text() and time.monotonic() < deadline:
            time.sleep(0.2)
        outcome = second.play(entries=held)
        assert {"busy", "opened"} <= outcome.codes("spare") and outcome.code != 0
        assert not [argv for argv in outcome.commands if destructive(argv)]
        outcome = second.play(entries=[other.entry])
        assert outcome.code != 0 and "locked: another run has this host" in " ".join(outcome.output.split()), outcome.output
        outcome.untouched("other")
    finally:
        assert bench.site.play("stop")[0] == 0
