# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that finds a purge of its run begun: an NVMe sanitize or format without its job."""

from __future__ import annotations

import dataclasses
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import begun, methods, purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError


def history(bed_, **more):
    return [
        {"event": "test_started", "test": "t"},
        dict(bed_.notes[0], time="2026-11-21T13:00:00.000Z", drive="S", test="t", attempt=1, **more),
    ]


# What the journal has of one.
STARTED = {
    "drive": "S",
    "test": "t",
    "attempt": 1,
    "time": "2026-11-21T13:00:00.000Z",
    "method": "nvme_sanitize_block",
    "why": "named",
    "commands": [],
    "timeout_s": 1800.0,
    "purge_class": "pts",
    "capabilities": {},
    "sentinels": {"size_bytes": 1 << 20, "block_bytes": 512, "seed": "5eed"},
}


@pytest.mark.parametrize(
    "events, left",
    [
        (["purge_started"], True),
        (["purge_started", "purge"], False),
        (["purge_started", "interrupted"], True),
        (["purge_started", "error"], False),
        (["purge_started", "interrupted", "purge_started", "purge"], False),
        ([], False),
    ],
)
def test_a_purge_is_unfinished_until_its_record_or_the_end_of_its_test(events, left):
    ends = ("interrupted", "error")
    records = [{"event": "test_finished" if name in ends else name, "ended": name} for name in events]
    found = purge_step.unfinished([dict(STARTED, **record) for record in records])
    assert (found.method if found else None) == ("nvme_sanitize_block" if left else None)


@pytest.mark.parametrize(
    ("method", "events", "goes"),
    [
        ("nvme_sanitize_block", ["purge_started"], True),
        ("deallocate", ["purge_started"], False),
        ("melt", ["purge_started"], False),
        ("nvme_sanitize_block", ["purge_started", "purge"], False),
    ],
)
def test_only_some_purges_go_on_without_their_job(method, events, goes):
    assert begun.may_be_running([{"event": event, "method": method} for event in events]) is goes


def stop_at(share):
    def tick(now):
        if now and now >= share:
            raise InterruptedError

    return tick


def test_a_sanitize_of_a_stopped_job_is_waited_for_and_verified_by_its_sentinels(bed):
    drive_ = bed(seconds=1)
    work = drive_.work(method="nvme_sanitize_block")
    work.tick = stop_at(0.2)
    with pytest.raises(InterruptedError):
        purge_step.perform(work)
    started = purge_step.unfinished(history(drive_))
    later = drive_.work(method="nvme_sanitize_block")
    assert purge_step.wait_for_unfinished(later, started) is True
    record = purge_step.resumed(drive_.work(method="nvme_sanitize_block"), started)
    assert record.verified and record.resumed and record.method == "nvme_sanitize_block" and len(drive_.erasing()) == 1
    assert record.lba_format_before == record.lba_format_after and record.lba_format_after["data_bytes"] == 512
    # The drive has blocks of 512 bytes: what was wanted of this purge was not done.
    assert purge_step.resumed(drive_.work(method="auto", lba_size_bytes=4096), started) is None


def test_one_that_erased_nothing_is_done_again(bed):
    drive_ = bed(seconds=0.5, mode="nothing")
    work = drive_.work(method="nvme_sanitize_block")
    work.tick = stop_at(0.1)
    with pytest.raises(InterruptedError):
        purge_step.perform(work)
    started = purge_step.unfinished(history(drive_))
    later = drive_.work()
    assert purge_step.wait_for_unfinished(later, started) and purge_step.resumed(later, started) is None


def test_one_that_ended_while_nobody_looked_counts_by_its_sentinels(bed):
    drive_ = bed()
    drive_.purge("nvme_sanitize_block")
    started, later = purge_step.unfinished(history(drive_)), drive_.work(method="nvme_sanitize_block")
    assert purge_step.wait_for_unfinished(later, started) is True
    assert purge_step.resumed(later, started).verified and len(drive_.erasing()) == 1
    # An older engine chose its blocks in another way, so it is done again.
    other = dataclasses.replace(started, sentinels=dataclasses.replace(started.sentinels, count=None))
    assert purge_step.resumed(later, other) is None


@pytest.mark.parametrize(
    "facts, message",
    [
        ({"mode": "stuck"}, "stuck"),
        ({"mode": "silent"}, "sanitize-log /dev/nvme0 printed broken JSON"),
        ({"sn": "other"}, "does not report"),
    ],
)
def test_one_that_is_stuck_or_cannot_be_asked_is_an_error(bed, facts, message):
    drive_ = bed()
    drive_.purge("nvme_sanitize_block")
    started = purge_step.unfinished(history(drive_))
    drive_.set(**dict({"sanitize": {"status": 2, "started": time.time(), "seconds": 1, "action": 2}}, **facts))
    with pytest.raises(PurgeError, match=message):
        purge_step.wait_for_unfinished(drive_.work(stuck_s=0.3), started)


def test_a_format_of_a_dead_job_is_waited_for_by_what_is_left(bed):
    drive_ = bed()
    drive_.purge("nvme_format_user_data")
    facts = drive_.facts()
    facts["namespaces"]["1"]["fpi"] = 0x80 + 60
    drive_.write(facts)
    work, left = drive_.work(), [60, 20, 0]

    def tick(share):
        assert share == pytest.approx(1 - left.pop(0) / 100)
        facts["namespaces"]["1"]["fpi"] = 0x80 + left[0]
        drive_.write(facts)

    work.tick = tick
    assert purge_step.wait_for_unfinished(work, purge_step.unfinished(history(drive_))) is True


def test_the_methods_that_go_on_by_themselves_are_those_that_tell_their_progress():
    assert set(begun.GOES_ON) == {name for name, method in methods.METHODS.items() if method.progress is not None}
