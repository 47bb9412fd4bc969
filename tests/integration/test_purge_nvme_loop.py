# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An NVMe namespace purged by the host job: guard, exclusive hold, sentinels, method, verification, a stop and going
on.

The namespace is a loop device that a `Server` shows as NVMe; nvme is the emulator of tests/emulators, found by PATH,
which works on the file behind it. Deallocate and overwrite are done to the loop device as it is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest
from emulated_nvme import EMULATORS, SIZE, benched
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive, Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge

METHODS = [
    "nvme_sanitize_crypto",
    "nvme_sanitize_block",
    "nvme_sanitize_overwrite",
    "nvme_format_crypto",
    "nvme_format_user_data",
]
WEAK = ["deallocate", "overwrite"]


@pytest.fixture
def bench(loop_drive, tmp_path, monkeypatch):
    yield from benched(loop_drive(size_bytes=SIZE), tmp_path, monkeypatch)


@pytest.mark.parametrize("method", METHODS + WEAK)
def test_each_method_purges_under_our_hold_and_is_verified(bench, method):
    before = bench.digest()
    assert bench.run(method)["outcome"] == "complete"
    started, record = bench.journal("purge_started", "purge")
    assert (started["event"], record["event"], record["method"], record["verified"]) == (
        "purge_started",
        "purge",
        method,
        True,
    )
    sentinels = 32 if method in WEAK else 300
    assert record["verification"] == {"sentinels": sentinels, "survived": 0, "unreadable": 0}
    assert record["purge_class"] == ("not_pts" if method in WEAK else "pts")
    assert bench.erasing() == ([] if method == "overwrite" else record["commands"])
    if method in METHODS and method not in ("nvme_format_crypto", "nvme_sanitize_crypto"):
        assert bench.digest() == before  # zeros again: the sentinels, and fio's first block, are gone
    print(method, "before", before, "after", bench.digest())


@pytest.mark.parametrize(
    ("dlfeat", "promise", "unlike", "told"),
    [
        (0, None, None, []),
        (1, "zeros", 0, []),
        # A loop device reads as zeros.
        (2, "ones", 32, ["it promises ones for deallocated blocks, and returned something else in 32 of 32"]),
    ],
)
def test_deallocated_blocks_are_held_to_what_the_drive_promises(bench, dlfeat, promise, unlike, told):
    """Told, and no reason against the drive: a host's deallocation is a hint."""
    bench.facts["namespaces"]["1"]["dlfeat"] = dlfeat
    bench.set()
    assert bench.run("deallocate")["outcome"] == "complete"
    (record,), (end,) = bench.journal("purge"), bench.ended()
    verification = record["verification"]
    assert (verification.get("promise"), verification.get("unlike"), record["verified"]) == (promise, unlike, True)
    assert [item["message"] for item in end["conditions"] if item["cause"] == "purge"] == told


def test_auto_takes_the_strongest(bench):
    bench.run("auto")
    (record,) = bench.journal("purge")
    assert record["method"] == "nvme_sanitize_crypto" and record["why"] == "auto: the strongest that the drive offers"


@pytest.mark.parametrize("method", ["nvme_sanitize_block", "nvme_format_crypto"])
def test_a_drive_that_erases_nothing_fails_its_test(bench, method):
    bench.set(mode="nothing")
    assert bench.run(method)["outcome"] == "error"
    (record,), (end,) = bench.journal("purge"), bench.ended()
    assert (record["verified"], record["verification"]["survived"], end["outcome"]) == (False, 300, "error")
    assert "300 of 300 blocks written before the purge can still be read" in end["reasons"][0]


@pytest.mark.parametrize(
    ("mode", "said"), [("failed", "says that the purge failed"), ("stuck", "purge stuck: no progress for 1 s")]
)
def test_a_sanitize_that_fails_or_is_stuck_ends_the_test_in_those_words(bench, mode, said):
    bench.set(mode=mode)
    plan = bench.plan("nvme_sanitize_block")
    plan["drives"][0]["tests"][0]["purge"]["stuck_s"] = 1
    bench.job(plan).run()
    (end,) = bench.ended()
    assert end["outcome"] == "error" and said in end["reasons"][0] and bench.journal("purge") == []
    (drive_end,) = bench.journal("drive_finished")
    assert drive_end["outcome"] == "error" and "purge: " in drive_end["message"] and said in drive_end["message"]


def test_nvme_would_refuse_the_namespace_itself_while_we_hold_it(bench):
    """Why it is the controller's node: the namespace would need --force, which drops nvme-cli's own check."""
    held = HeldDrive(
        bench.server(),
        {
            "entry": parse(bench.loop.selector),
            "expected": base.to_json(identity.identity(bench.server(), bench.loop.name)),
        },
        {"run": "r"},
        True,
    )
    held.take()
    try:
        shown = bench.loop.path
        bench.set(controller="nvme" + shown[len("/dev/") :][4:].split("n")[0])
        argv = [os.path.join(EMULATORS, "nvme"), "format", shown, "--namespace-id=1", "--lbaf=0", "--ses=1"]
        refused = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert refused.returncode != 0 and "Namespace is currently busy" in refused.stderr
        assert subprocess.run([*argv, "--force"], capture_output=True, check=False).returncode == 0
    finally:
        held.release()


def stop_when(condition):
    """SIGTERM to this process once it holds."""

    def wait():
        try:
            wait_until(condition, "what the stop waits for")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def stop_in_the_sanitize(bench, plan):
    """A job that is stopped once the drive's sanitize has begun, which goes on until a test says how long it takes."""
    bench.set(seconds=3600)
    job = bench.job(plan)
    thread = stop_when(lambda: bench.state().get("sanitize", {}).get("status") == 2)
    job.run()
    thread.join()


def let_end(bench, seconds):
    """A sanitize that takes so long from its beginning, not an hour."""
    bench.set(**{**bench.state(), "seconds": seconds})


def test_a_stop_leaves_a_sanitize_to_the_drive_and_the_next_job_waits_for_it(bench):
    plan = bench.plan("nvme_sanitize_block")
    stop_in_the_sanitize(bench, plan)
    assert bench.run_dir.read_status()["state"] == "stopped"
    assert [record["outcome"] for record in bench.ended()] == ["interrupted"]
    # Whoever looks at the drive now is told; the run that goes on is not (findings.standing).
    (seen,) = guard_check.inspect(bench.server(), [parse(bench.loop.selector)], state_dir=bench.run_dir.state_dir)
    assert (
        "sanitize_running" in [refusal["code"] for refusal in seen["refusals"]]
        and seen["own_data"]["state"] == "writing"
    )
    let_end(bench, time.time() - bench.state()["sanitize"]["started"] + 3)
    bench.job(plan).run()
    assert bench.run_dir.read_status()["drives"][0]["outcome"] == "complete"
    (record,) = bench.journal("purge")
    assert record["resumed"] is True and record["verified"] is True and record["attempt"] == 2
    assert len(bench.erasing()) == 1 and len(bench.journal("purge_started")) == 1


def test_one_that_ended_while_nobody_looked_counts_by_its_sentinels(bench):
    plan = bench.plan("nvme_sanitize_block")
    stop_in_the_sanitize(bench, plan)
    let_end(bench, 0)
    bench.job(plan).run()
    (record,) = bench.journal("purge")
    assert record["resumed"] is True and record["verified"] is True and len(bench.erasing()) == 1


def test_one_that_fails_while_nobody_looks_is_told_as_what_it_is(bench):
    plan = bench.plan("nvme_sanitize_block")
    bench.set(mode="failed")
    stop_in_the_sanitize(bench, plan)
    # While the next job waits, which begins to in a second or two: a write of ours beside the emulator's may get lost.
    let_end(bench, time.time() - bench.state()["sanitize"]["started"] + 20)
    bench.job(plan).run()
    end = bench.journal("drive_finished")[-1]
    assert (
        end["outcome"] == "error"
        and end["message"].startswith("a purge that was started before: ")
        and bench.journal("crash") == []
    )


def test_a_sanitize_of_somebody_else_refuses_the_drive(bench):
    plan = bench.plan("nvme_sanitize_block")
    bench.set(sanitize={"status": 2, "started": time.time(), "seconds": 3600, "action": 2})
    before = bench.digest()
    bench.job(plan).run()
    (refused,) = bench.journal("guard")
    assert "sanitize_running" in [refusal["code"] for refusal in refused["refusals"]]
    assert bench.erasing() == [] and bench.digest() == before


# --- lend: the drive is closed for a tool, its lock kept, and what comes back is looked at ---


@pytest.fixture
def held(bench):
    plan = {
        "entry": parse(bench.loop.selector),
        "expected": base.to_json(identity.identity(bench.server(), bench.loop.name)),
    }
    taken = HeldDrive(bench.server(), plan, {"run": "r"}, same_boot=True)
    taken.take()
    yield taken
    taken.release()


def test_a_lent_drive_is_closed_locked_and_then_held_again(bench, held):
    with held.lend():
        with pytest.raises(Refused, match="not_held"):
            held.descriptor()
        os.close(os.open(bench.loop.path, os.O_RDWR | os.O_EXCL))
        with pytest.raises(locks.Locked):
            locks.drive_lock(held.identity.serial or held.path, {"run": "other"}).acquire()
    with pytest.raises(OSError):
        os.open(bench.loop.path, os.O_RDWR | os.O_EXCL)
    held.check()


def test_a_lent_drive_may_change_what_it_was_lent_for_and_nothing_else(bench, held):
    def grow():
        subprocess.run(["losetup", "--detach", bench.loop.path], check=True)
        subprocess.run(
            ["losetup", "--sector-size", "4096", "--direct-io=on", bench.loop.path, str(bench.loop.file)], check=True
        )

    with pytest.raises(Refused, match="identity_changed"):
        with held.lend(("logical_block_size_bytes",)):
            grow()
    with pytest.raises(Refused, match="not_held"):
        held.descriptor()


def test_a_changed_block_size_is_expected_where_it_was_said(bench, held):
    with held.lend(("logical_block_size_bytes", "physical_block_size_bytes", "diskseq")):
        subprocess.run(["losetup", "--detach", bench.loop.path], check=True)
        subprocess.run(
            ["losetup", "--sector-size", "4096", "--direct-io=on", bench.loop.path, str(bench.loop.file)], check=True
        )
    assert held.identity.logical_block_size_bytes == 4096
    held.check()


def test_a_drive_is_identified_without_a_read(bench, monkeypatch):
    plan = {
        "entry": parse(bench.loop.selector),
        "expected": base.to_json(identity.identity(bench.server(), bench.loop.name)),
    }
    waiting = HeldDrive(bench.server(), plan, {"run": "r"}, same_boot=True)
    monkeypatch.setattr(guard_check, "check", lambda *_, **__: pytest.fail("the guard reads"))
    waiting.identify()
    try:
        assert waiting.path == bench.loop.path and waiting.handle is None
        with pytest.raises(locks.Locked):
            locks.drive_lock(waiting.identity.serial or waiting.path, {"run": "other"}).acquire()
    finally:
        waiting.release()
    other = HeldDrive(
        bench.server(), dict(plan, expected=dict(plan["expected"], serial="other")), {"run": "r"}, same_boot=True
    )
    with pytest.raises(Refused, match="identity_changed"):
        other.identify()


def test_no_method_is_offered_for_a_plain_loop_device_but_those_for_any_drive(loop_drive):
    loop = loop_drive()
    offered = methods.offers(Host(), identity.identity(Host(), loop.name), PlannedPurge("auto"))
    assert [offer.method for offer in offered] == WEAK
