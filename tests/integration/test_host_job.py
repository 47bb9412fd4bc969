# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host job on real loop devices with real fio: what it writes, what it refuses, and how it ends."""

from __future__ import annotations

import dataclasses
import gzip
import json
import mmap
import os
import subprocess
import threading

import pytest
from host_jobs import MIB, ODD_SIZE, QUICK, TUNE, events, fill_step

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive, Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_runner
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Done
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents


def test_every_byte_is_written_also_the_last_and_the_record_says_how_fast(jobs, loop_drive):
    drive = loop_drive(size_bytes=ODD_SIZE)
    journal, status = jobs.run(jobs.plan([drive], fill_step()))
    (record,) = events(journal, "precondition")
    assert (record["passes"], record["bytes_written"], record["remainder_bytes"]) == (2, 2 * ODD_SIZE, 90112)
    assert (record["kernel_bytes_written"], record["block_size_bytes"], record["data"]) == (
        2 * ODD_SIZE,
        131072,
        "random",
    )
    # fio's own rate, without the time that it takes to start.
    raw = json.loads(gzip.decompress((next(jobs.folder.rglob("*-fill.json.gz"))).read_bytes()))
    assert (
        record["bandwidth_bytes_per_s"]
        == raw["jobs"][0]["write"]["bw_bytes"]
        >= record["bytes_written"] / record["seconds"]
    )
    (curve,) = events(journal, "fill_curve")
    rates = curve["bandwidth_bytes_per_s"]
    assert len(rates) == 200 and sum(curve["step_bytes"] / rate for rate in rates) == pytest.approx(
        record["seconds"], abs=0.5
    )
    data = drive.file.read_bytes()
    # Random data has no block of zeros.
    assert all(any(data[start : start + 512]) for start in range(0, ODD_SIZE, 512))
    assert status["drives"][0]["outcome"] == "complete"


METHOD = methods.METHODS["deallocate"]


def test_records_and_status_hold_to_their_schemas(jobs, loop_drive):
    journal, status = jobs.run(jobs.plan([loop_drive()], planning.load_plan([QUICK]), tune=TUNE))
    documents.validate(status, "status")
    for record in journal:
        documents.validate(record, "journal")
    (end,) = jobs.ended()
    rounds = {record["round"]: record["write"]["iops"] for record in events(journal, "cell")}
    window = [rounds[number] for number in end["steady_state"][0]["window_rounds"]]
    assert end["outcome"] == "steady" and end["metrics"]["write_iops"] == pytest.approx(sum(window) / len(window))
    (purged,) = events(journal, "purge")
    assert (purged["method"], purged["verified"], purged["purge_class"]) == ("deallocate", True, "not_pts")


KEPT = "32 of 32 blocks written before the purge can still be read after deallocate"


@pytest.mark.parametrize(
    ("is_hint", "tests"), [(False, planning.load_plan([QUICK])), (True, planning.step_plan("purge", {}))]
)
def test_a_purge_that_purges_nothing_is_an_error_and_nothing_is_measured(jobs, loop_drive, monkeypatch, is_hint, tests):
    """One that promises to erase, or one that was all that was asked for."""
    does_nothing = dataclasses.replace(METHOD, run=lambda _work, _found: Done(), is_hint=is_hint)
    monkeypatch.setitem(methods.METHODS, "deallocate", does_nothing)
    journal, _status = jobs.run(jobs.plan([loop_drive()], tests))
    (end,) = jobs.ended()
    assert end["outcome"] == "error" and end["reasons"] == [f"{KEPT}; try another purge_method"]
    assert events(journal, "cell") == []


def test_what_a_deallocated_drive_keeps_is_told(jobs, loop_drive, monkeypatch):
    does_nothing = dataclasses.replace(METHOD, run=lambda _work, _found: Done())
    monkeypatch.setitem(methods.METHODS, "deallocate", does_nothing)
    journal, _status = jobs.run(jobs.plan([loop_drive()], planning.load_plan([QUICK])))
    (end,) = jobs.ended()
    assert end["outcome"] == "steady" and not events(journal, "purge")[0]["verified"]
    told = [item["message"] for item in end["conditions"] if item["cause"] == "purge"]
    assert told == [f"{KEPT}: a drive need not erase what it deallocates"]


@pytest.mark.parametrize(
    ("tests", "outcome"), [(planning.load_plan([QUICK]), "steady"), (planning.step_plan("purge", {}), "error")]
)
def test_a_drive_that_promises_zeros_and_keeps_old_data_is_told_so(jobs, loop_drive, monkeypatch, tests, outcome):
    """As a remark; where a test writes nothing itself, the purge has to do its work all the same."""
    does_nothing = dataclasses.replace(METHOD, run=lambda _work, _found: Done())
    monkeypatch.setitem(methods.METHODS, "deallocate", does_nothing)
    monkeypatch.setattr(methods, "promise", lambda method, _found: "zeros")
    jobs.run(jobs.plan([loop_drive()], tests))
    (end,) = jobs.ended()
    told = "it promises zeros for deallocated blocks, and returned old data in 32 of 32"
    assert end["outcome"] == outcome
    if outcome == "steady":
        assert [item["message"] for item in end["conditions"] if item["cause"] == "purge"] == [told]
    else:
        assert end["reasons"] == [f"{KEPT}; {told}; try another purge_method"]


def test_a_mount_between_preflight_and_the_job_is_refused(jobs, loop_drive, tmp_path):
    drive = loop_drive()
    plan = jobs.plan([drive], planning.load_plan([QUICK]))
    subprocess.run(["mkfs.ext4", "-q", drive.path], check=True)
    digest = drive.digest()
    journal, status = jobs.run(plan)
    assert status["drives"][0]["outcome"] == "refused"
    (refusal,) = events(journal, "guard")
    assert "signature" in [item["code"] for item in refusal["refusals"]]
    assert drive.digest() == digest


def test_another_drive_behind_the_same_name_is_refused(jobs, loop_drive):
    drive = loop_drive()
    plan = jobs.plan([drive], planning.load_plan([QUICK]))
    plan["drives"][0]["expected"]["diskseq"] -= 1
    digest = drive.digest()
    journal, status = jobs.run(plan)
    assert status["drives"][0]["outcome"] == "refused" and "identity_changed" in status["drives"][0]["message"]
    assert drive.digest() == digest and events(journal, "purge") == []


def test_a_signature_counts_until_our_first_write_and_not_after_it(jobs, loop_drive, tmp_path):
    """Random data may look like a file system by chance; that must not end a campaign of many hours."""
    drive = loop_drive()
    planned = jobs.plan([drive], planning.load_plan([QUICK]))["drives"][0]
    plan = dict(planned, entry=entry.parse(planned["selector"]))
    held = HeldDrive(Host(), plan, {"run": "r"}, same_boot=True)
    held.take()
    try:
        held.check()
        # A swap area's first page, as a write of ours could leave it.
        area = tmp_path / "area"
        area.write_bytes(bytes(MIB))
        subprocess.run(["mkswap", "-q", str(area)], check=True, capture_output=True)
        block = mmap.mmap(-1, 4096)
        block[:] = area.read_bytes()[:4096]
        os.pwrite(held.descriptor(), block, 0)
        with pytest.raises(Refused, match="signature"):
            held.check()
        held.content_is_ours()
        held.check()
    finally:
        held.release()
    with pytest.raises(Refused, match="signature"):
        held.take()


def test_nobody_else_gets_at_a_drive_while_it_is_measured(jobs, loop_drive, tmp_path, monkeypatch):
    drive = loop_drive()
    seen = {}
    cell = fio_runner.Workbench.cell

    def meddle():
        for argv in (["mkfs.ext4", "-q", drive.path], ["blkdiscard", drive.path], ["mount", drive.path, str(tmp_path)]):
            seen[argv[0]] = subprocess.run(argv, capture_output=True, check=False).returncode

    def meddled(*arguments):
        """The first cell, which ends when all was tried."""
        if seen:
            return cell(*arguments)
        thread = threading.Thread(target=meddle)
        thread.start()
        try:
            return cell(*arguments)
        finally:
            thread.join()

    monkeypatch.setattr(fio_runner.Workbench, "cell", meddled)
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK])))
    assert all(code != 0 for code in seen.values()) and len(seen) == 3
    assert jobs.ended()[0]["outcome"] == "steady"


def test_drives_go_one_after_the_other_or_side_by_side_as_asked(jobs, loop_drive):
    """As ssd_parallel_drives says."""
    drives = [loop_drive("one"), loop_drive("two")]
    for parallel, overlap in ((1, False), (2, True)):
        journal, _status = jobs.run(
            jobs.plan(drives, planning.load_plan([QUICK]), parallel=parallel), run_id=f"p{parallel}"
        )
        times = {
            drive.selector["backing_file"]: [
                r["time"] for r in journal if r.get("drive") == drive.selector["backing_file"]
            ]
            for drive in drives
        }
        first, second = sorted((min(values), max(values)) for values in times.values())
        assert (second[0] < first[1]) is overlap


def test_a_fio_that_fails_ends_the_test_and_keeps_its_words(jobs, loop_drive, tmp_path):
    plan = jobs.plan([loop_drive()], planning.load_plan([QUICK]))
    fake = tmp_path / "fio"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec fio --version\ncase "$*" in *probe*) exec fio "$@";; esac\necho '
        "out "
        "of luck >&2\n"
    )
    fake.chmod(0o755)
    plan["fio"]["path"] = str(fake)
    journal, status = jobs.run(plan)
    (end,) = jobs.ended()
    assert end["outcome"] == "error"
    assert "round 1, cell rand-4k" in end["reasons"][0] and "out of luck" in end["reasons"][0]
    assert (status["state"], status["drives"][0]["outcome"]) == ("finished", "error")


@pytest.mark.parametrize("leave", ["as_is", "blank"])
def test_a_finished_test_is_kept_and_an_interrupted_one_starts_from_its_purge(jobs, loop_drive, leave):
    drive = loop_drive()
    tests = planning.load_plan([QUICK, dict(QUICK, name="second")])
    plan = {**jobs.plan([drive], tests), "leave": leave}
    journal, status = jobs.run_and_stop(
        plan, lambda journal: any(cell["test"] == "second" for cell in events(journal, "cell"))
    )
    assert status["state"] == "stopped"
    ends = jobs.ended()
    assert [end["outcome"] for end in ends] == ["steady", "interrupted"], ends
    # A stop has a minute for all drives: nothing is written that is no result.
    assert {record["test"] for record in events(journal, "histogram")} == {"quick"}
    journal, status = jobs.run(plan)
    assert [(r["test"], r["attempt"]) for r in events(journal, "purge")] == [("quick", 1), ("second", 1), ("second", 2)]
    assert [r["outcome"] for r in jobs.ended()] == ["steady", "interrupted", "steady"]
    assert (status["state"], status["drives"][0]["outcome"]) == ("finished", "complete")
    assert [r["state"] for r in events(journal, "left")] == (["blank"] * 2 if leave == "blank" else [])


@pytest.mark.parametrize(
    "behaviour, words",
    [
        ("exec sleep 600", "did not end within"),
        ('echo \'{"jobs": [{"write": 5}]}\' > "$out"', "unknown form"),
        ('echo garbage > "$out"', "no JSON"),
    ],
)
def test_an_odd_fio_is_an_error_with_its_reason(jobs, loop_drive, tmp_path, monkeypatch, behaviour, words):
    end, status = run_with_a_fio_that(jobs, loop_drive, tmp_path, monkeypatch, behaviour)
    assert end["outcome"] == "error" and words in end["reasons"][0], end
    assert status["drives"][0]["outcome"] == "error"


def test_a_killed_fio_is_no_fault_of_the_drives(jobs, loop_drive, tmp_path, monkeypatch):
    end, status = run_with_a_fio_that(jobs, loop_drive, tmp_path, monkeypatch, "kill -9 $$")
    assert end["outcome"] == "interrupted" and "signal 9" in end["reasons"][0], end
    assert status["state"] == "failed", "the run goes on with the next play"


def run_with_a_fio_that(jobs, loop_drive, tmp_path, monkeypatch, behaviour):
    """The result of the test, and the status, of a run whose fio ends like this."""
    monkeypatch.setattr(fio_runner, "CELL_GRACE_S", 2.0)
    plan = jobs.plan([loop_drive()], planning.load_plan([QUICK]))
    fake = tmp_path / "fio"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec fio --version\ncase "$*" in *probe*) exec fio "$@";; esac\n'
        "for word; do case $word in --output=*) out=${word#--output=};; esac; done\n" + behaviour + "\n"
    )
    fake.chmod(0o755)
    plan["fio"]["path"] = str(fake)
    journal, status = jobs.run(plan)
    (end,) = jobs.ended()
    return end, status
