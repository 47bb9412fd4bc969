# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host job on real loop devices with real fio: what it writes, what it refuses, and how it ends."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import signal
import struct
import subprocess
import threading
import time

import jsonschema
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import inspection
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive, Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine, standing
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import rounds, workbench
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import sentinels as purge_sentinels
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import decision
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import latency, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render as planning

MIB = 1 << 20
# 64 MiB and the remainder below 128 KiB that usual capacities leave.
ODD_SIZE = 64 * MIB + 90112
QUICK = {
    "name": "quick",
    "title": "Quick",
    "purge": {"method": "auto"},
    "precondition": False,
    "cells": [
        {
            "access": "random",
            "block_size": "4KiB",
            "read_pct": 0,
            "threads": 1,
            "queue_depth": 1,
            "runtime_s": 1,
            "rate_iops": 50,
        }
    ],
    # A loop device has no fresh state to leave.
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "min_capacity_multiple": 0,
        "confirm_windows": 0,
    },
    "rounds": {"max": 5},
}
TUNE = {"sysfs": [{"name": "nomerges", "path": "/sys/block/@ssd_name@/queue/nomerges", "value": "2"}]}


def fill_step():
    return planning.step_plan("precondition", {})


class Bench:
    """Host jobs of this process, with a state folder and locks of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def plan(self, drives, tests, parallel=1, tune=None):
        host = Host()
        seen = inspection.inspect(host, [drive.selector for drive in drives])
        return planning.render(
            tests,
            run={"id": "r", "name": "n"},
            host="h",
            boot_id=tuning.boot_id(host),
            drives=seen,
            engine_version="1",
            variables={"ssd_parallel_drives": parallel},
            tune=dict({"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False}, **(tune or {})),
        )

    def prepare(self, plan, run_id="r"):
        run = rundir.RunDir(str(self.folder / "state"), run_id)
        os.makedirs(run.path, exist_ok=True)
        files.write_atomic(run.plan, json.dumps(dict(plan, decision=decision.made(plan))))
        return run

    def run(self, plan, run_id="r"):
        """Run a host job to its end: (journal, status)."""
        run = self.prepare(plan, run_id)
        engine.HostJob(run, Host()).run()
        return rundir.read_journal(run.journal), run.read_status()


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield Bench(tmp_path)
    for number, handler in before.items():
        signal.signal(number, handler)


def events(journal, name):
    return [record for record in journal if record["event"] == name]


def test_every_byte_is_written_also_the_last_and_the_record_says_how_fast(bench, loop_drive):
    drive = loop_drive(size_bytes=ODD_SIZE)
    journal, status = bench.run(bench.plan([drive], fill_step()))
    (record,) = events(journal, "precondition")
    assert (record["passes"], record["bytes_written"], record["remainder_bytes"]) == (2, 2 * ODD_SIZE, 90112)
    assert (record["kernel_bytes_written"], record["block_size_bytes"], record["data"]) == (
        2 * ODD_SIZE,
        131072,
        "random",
    )
    # fio's own rate, without the time that it takes to start.
    raw = json.loads(gzip.decompress((next(bench.folder.rglob("*-fill.json.gz"))).read_bytes()))
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


def test_records_and_status_hold_to_their_schemas(bench, loop_drive):
    journal, status = bench.run(bench.plan([loop_drive()], planning.load_plan([QUICK]), tune=TUNE))
    jsonschema.validate(status, schema.load("status"))
    for record in journal:
        jsonschema.validate(record, schema.load("journal"))
    (end,) = events(journal, "test_finished")
    assert end["outcome"] == "steady" and end["metrics"]["write_iops"] == pytest.approx(50, rel=0.1)
    (purged,) = events(journal, "purge")
    assert (purged["method"], purged["verified"], purged["purge_class"]) == ("deallocate", True, "not_pts")


def test_settings_are_changed_during_the_run_and_back_after_it(bench, loop_drive):
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    Host().write(path, "0")  # a loop device keeps what an earlier test left there
    before = Host().read(path)
    journal, status = bench.run(bench.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    (tuned,) = events(journal, "tuned")
    assert [(item["before"], item["effective"], item["outcome"]) for item in tuned["settings"]] == [
        (before, "2", "changed")
    ]
    assert (Host().read(path), status["restored"]) == (before, True)


@pytest.mark.skipif(not os.path.exists(latency.CPU_DMA_LATENCY), reason="this kernel has no " + latency.CPU_DMA_LATENCY)
def test_the_latency_limit_holds_while_the_job_works_and_no_longer(bench, loop_drive, monkeypatch):
    def held():
        """(whether this process has the device open, the limit in force)."""
        with open(latency.CPU_DMA_LATENCY, "rb") as device:
            limit_us = struct.unpack("=i", device.read(4))[0]
        links = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
        return latency.CPU_DMA_LATENCY in [os.readlink(link) for link in links if os.path.islink(link)], limit_us

    plant, during = purge_sentinels.Sentinels.plant, []
    monkeypatch.setattr(
        purge_sentinels.Sentinels, "plant", lambda sentinels, handle: (during.append(held()), plant(sentinels, handle))
    )
    before = held()
    bench.run(bench.plan([loop_drive()], planning.load_plan([QUICK]), tune={"cpu_dma_latency_us": 0}))
    assert during == [(True, 0)] and before[0] is held()[0] is False


def test_a_purge_that_purges_nothing_is_an_error_and_nothing_is_measured(bench, loop_drive, monkeypatch):
    does_nothing = methods.METHODS["deallocate"]._replace(run=lambda _work: {})
    monkeypatch.setitem(methods.METHODS, "deallocate", does_nothing)
    journal, _status = bench.run(bench.plan([loop_drive()], planning.load_plan([QUICK])))
    (end,) = events(journal, "test_finished")
    assert end["outcome"] == "error" and "32 of 32 blocks" in end["reasons"][0]
    assert events(journal, "cell") == []


def test_a_mount_between_preflight_and_the_job_is_refused(bench, loop_drive, tmp_path):
    drive = loop_drive()
    plan = bench.plan([drive], planning.load_plan([QUICK]))
    subprocess.run(["mkfs.ext4", "-q", drive.path], check=True)
    digest = drive.digest()
    journal, status = bench.run(plan)
    assert status["drives"][0]["outcome"] == "refused"
    (refusal,) = events(journal, "guard")
    assert "signature" in [item["code"] for item in refusal["refusals"]]
    assert drive.digest() == digest


def test_another_drive_behind_the_same_name_is_refused(bench, loop_drive):
    drive = loop_drive()
    plan = bench.plan([drive], planning.load_plan([QUICK]))
    plan["drives"][0]["expected"]["diskseq"] -= 1
    digest = drive.digest()
    journal, status = bench.run(plan)
    assert status["drives"][0]["outcome"] == "refused" and "identity_changed" in status["drives"][0]["message"]
    assert drive.digest() == digest and events(journal, "purge") == []


def test_a_signature_counts_until_our_first_write_and_not_after_it(bench, loop_drive, tmp_path):
    """Random data may look like a file system by chance; that must not end a campaign of many hours."""
    drive = loop_drive()
    plan = bench.plan([drive], planning.load_plan([QUICK]))["drives"][0]
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


def test_nobody_else_gets_at_a_drive_while_it_is_measured(bench, loop_drive, tmp_path):
    drive = loop_drive()
    seen = {}

    def meddle():
        deadline, journal = time.monotonic() + 60, tmp_path / "state/runs/r/journal.jsonl"
        while not (journal.exists() and '"drive_started"' in journal.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for argv in (["mkfs.ext4", "-q", drive.path], ["blkdiscard", drive.path], ["mount", drive.path, str(tmp_path)]):
            seen[argv[0]] = subprocess.run(argv, capture_output=True, check=False).returncode

    thread = threading.Thread(target=meddle)
    thread.start()
    journal, _status = bench.run(bench.plan([drive], planning.load_plan([QUICK])))
    thread.join()
    assert all(code != 0 for code in seen.values()) and len(seen) == 3
    assert events(journal, "test_finished")[0]["outcome"] == "steady"


def test_drives_go_one_after_the_other_or_side_by_side_as_asked(bench, loop_drive):
    drives = [loop_drive("one"), loop_drive("two")]
    for parallel, overlap in ((1, False), (2, True)):
        journal, _status = bench.run(
            bench.plan(drives, planning.load_plan([QUICK]), parallel=parallel), run_id=f"p{parallel}"
        )
        times = {
            drive.selector["backing_file"]: [
                r["time"] for r in journal if r.get("drive") == drive.selector["backing_file"]
            ]
            for drive in drives
        }
        first, second = sorted((min(values), max(values)) for values in times.values())
        assert (second[0] < first[1]) is overlap


def test_a_fio_that_fails_ends_the_test_and_keeps_its_words(bench, loop_drive, tmp_path):
    plan = bench.plan([loop_drive()], planning.load_plan([QUICK]))
    fake = tmp_path / "fio"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec fio --version\ncase "$*" in *probe*) exec fio "$@";; esac\necho '
        "out "
        "of luck >&2\n"
    )
    fake.chmod(0o755)
    plan["fio"]["path"] = str(fake)
    journal, status = bench.run(plan)
    (end,) = events(journal, "test_finished")
    assert end["outcome"] == "error"
    assert "round 1, cell rand-4k" in end["reasons"][0] and "out of luck" in end["reasons"][0]
    assert (status["state"], status["drives"][0]["outcome"]) == ("finished", "error")


def test_a_finished_test_is_kept_and_an_interrupted_one_starts_from_its_purge(bench, loop_drive, monkeypatch):
    drive = loop_drive()
    tests = planning.load_plan([QUICK, dict(QUICK, name="second")])
    plan = bench.plan([drive], tests)
    run = bench.prepare(plan)
    job = engine.HostJob(run, Host())

    def stop_in_second():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(r["event"] == "cell" and r["test"] == "second" for r in rundir.read_journal(run.journal)):
                os.kill(os.getpid(), signal.SIGTERM)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=stop_in_second)
    thread.start()
    job.run()
    thread.join()
    assert run.read_status()["state"] == "stopped"
    assert [r["outcome"] for r in events(rundir.read_journal(run.journal), "test_finished")] == [
        "steady",
        "interrupted",
    ]
    journal, status = bench.run(plan)
    assert [(r["test"], r["attempt"]) for r in events(journal, "purge")] == [("quick", 1), ("second", 1), ("second", 2)]
    assert [r["outcome"] for r in events(journal, "test_finished")] == ["steady", "interrupted", "steady"]
    assert (status["state"], status["drives"][0]["outcome"]) == ("finished", "complete")


@pytest.mark.parametrize("keep", [False, True])
def test_what_systemd_calls_after_the_job_leaves_what_tune_yml_set(bench, loop_drive, keep):
    """ExecStopPost runs however the job ended."""
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    Host().write(path, "0")  # a loop device keeps what an earlier test left there
    before = Host().read(path)
    plan = bench.plan([drive], [], tune=dict(TUNE, keep=keep))
    run = bench.prepare(plan)
    engine.HostJob(run, Host()).run()
    assert engine.main(["restore", run.path]) == 0
    assert (Host().read(path), os.path.exists(run.tuning)) == (("2", True) if keep else (before, False))


def test_settings_that_a_purge_resets_are_made_again_before_the_measurement(bench, loop_drive, monkeypatch):
    """A format may give the drive a new queue; nothing was measured with it yet."""
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    plant = purge_sentinels.Sentinels.plant

    def meddle(sentinels, handle):
        plant(sentinels, handle)
        Host().write(path, "1")

    monkeypatch.setattr(purge_sentinels.Sentinels, "plant", meddle)
    journal, _status = bench.run(bench.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    again = [record["settings"] for record in events(journal, "tuned") if record.get("test")]
    assert [[(item["before"], item["effective"]) for item in settings] for settings in again] == [[("1", "2")]]
    (end,) = events(journal, "test_finished")
    assert end["outcome"] == "steady", end


def test_a_setting_that_changes_in_a_round_and_comes_back_is_noticed(bench, loop_drive, monkeypatch):
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    add = rounds.Rounds.add

    def meddle(self, *given):
        add(self, *given)
        Host().write(path, "1" if self.count == 2 else "2")

    monkeypatch.setattr(rounds.Rounds, "add", meddle)
    journal, _status = bench.run(bench.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    (end,) = events(journal, "test_finished")
    assert (end["outcome"], len(end["reasons"])) == ("invalid", 1) and path in end["reasons"][0]


def test_a_setting_that_could_not_be_made_makes_the_test_invalid_before_anything_is_done(bench, loop_drive):
    drive = loop_drive()
    tune = {"sysfs": [{"name": "scheduler", "path": "/sys/block/@ssd_name@/queue/scheduler", "value": "bogus"}]}
    journal, _status = bench.run(bench.plan([drive], planning.load_plan([QUICK]), tune=tune))
    (end,) = events(journal, "test_finished")
    assert (
        end["outcome"] == "invalid"
        and end["reasons"][0] == "neither purged nor measured"
        and "tuned to bogus" in end["reasons"][1]
    )
    assert events(journal, "purge_started") == events(journal, "cell") == []


def test_what_builds_on_a_test_that_was_not_begun_is_not_begun_either(bench, loop_drive, monkeypatch):
    """The first one's purge and fill were for both; that the host is as it should be by then does not help."""
    seen = iter([["a setting is not as it was made"]])
    monkeypatch.setattr(tuned_host.TunedHost, "drifted", lambda *_given: next(seen, []))
    plan = planning.load_plan([QUICK, dict(QUICK, name="second", purge={"method": "none"}, precondition=False)])
    journal, _status = bench.run(bench.plan([loop_drive()], plan))
    ends = events(journal, "test_finished")
    assert [end["outcome"] for end in ends] == ["invalid"] * 2 and "a setting is not" in ends[1]["reasons"][1]
    # Nor in a later job, which has the journal alone.
    assert (
        standing.not_begun(ends[:1]) == ends[0]["reasons"][1:] and standing.not_begun([dict(ends[0], reasons=[])]) == []
    )
    assert events(journal, "purge_started") == events(journal, "cell") == []


@pytest.mark.parametrize(
    "behaviour, words",
    [
        ("exec sleep 600", "did not end within"),
        ('echo \'{"jobs": [{"write": 5}]}\' > "$out"', "unknown form"),
        ('echo garbage > "$out"', "no JSON result"),
    ],
)
def test_an_odd_fio_is_an_error_with_its_reason(bench, loop_drive, tmp_path, monkeypatch, behaviour, words):
    end, status = run_with_a_fio_that(bench, loop_drive, tmp_path, monkeypatch, behaviour)
    assert end["outcome"] == "error" and words in end["reasons"][0], end
    assert status["drives"][0]["outcome"] == "error"


def test_a_killed_fio_is_no_fault_of_the_drives(bench, loop_drive, tmp_path, monkeypatch):
    end, status = run_with_a_fio_that(bench, loop_drive, tmp_path, monkeypatch, "kill -9 $$")
    assert end["outcome"] == "interrupted" and "signal 9" in end["reasons"][0], end
    assert status["state"] == "failed", "the run goes on with the next play"


def run_with_a_fio_that(bench, loop_drive, tmp_path, monkeypatch, behaviour):
    """The test_finished record and the status of a run whose fio ends like this."""
    monkeypatch.setattr(workbench, "CELL_GRACE_S", 2.0)
    plan = bench.plan([loop_drive()], planning.load_plan([QUICK]))
    fake = tmp_path / "fio"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec fio --version\ncase "$*" in *probe*) exec fio "$@";; esac\n'
        "for word; do case $word in --output=*) out=${word#--output=};; esac; done\n" + behaviour + "\n"
    )
    fake.chmod(0o755)
    plan["fio"]["path"] = str(fake)
    journal, status = bench.run(plan)
    (end,) = events(journal, "test_finished")
    return end, status
