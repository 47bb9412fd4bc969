# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-tests that somebody else starts, of drives whose time is a clock that only a sleep moves on."""

from __future__ import annotations

import json
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.self_test_wait import SelfTests, SelfTestStuck
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import Interrupted

HOUR = 3600.0
ENDED = {"Self test result": 0, "Self test code": 1, "Power on hours": 7}


def nvme_log(operation, done_pct=0, ended=0):
    return {
        "Current Device Self-Test Operation": operation,
        "Current Device Self-Test Completion": done_pct,
        "List of Valid Reports": [ENDED] * ended,
    }


class Station:
    """What a drive's campaign shows; its drives tell at each time what `log` has for it."""

    def __init__(self, fake, log, edstt=0, stop_at_s=None, budget_s=None):
        fake.nvme("nvme0n1", "259:0", "S1")
        fake.nvme_says("id-ctrl", {"oacs": 0x10, "edstt": edstt})
        self._fake, self._log, self._stop_at_s = fake, log, stop_at_s
        self.now = 0.0
        self.job = types.SimpleNamespace(host=fake, time_budget_s=budget_s)
        self.watchdog = types.SimpleNamespace(call=lambda _what, step: step())
        self.name, self.members = "nvme0n1", []
        self.shown, self.shares = [], []
        self.sleep(0)

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self._fake.nvme_says("self-test-log", self._log(self.now))

    def show(self, **fields):
        self.shown.append(fields)

    def tick(self, share, news_within_s):
        assert news_within_s is None  # a step of its progress may take hours
        self.shares.append(share)
        if self._stop_at_s is not None and self.now >= self._stop_at_s:
            raise Interrupted()

    def self_tests(self):
        return SelfTests(self, self.clock, self.sleep)


def extended(length_s):
    """One that is under way from 0 to then."""
    return lambda now: nvme_log(2, int(100 * now / length_s)) if now < length_s else nvme_log(0, ended=1)


def test_it_is_waited_for_and_its_progress_shown(fake):
    station = Station(fake, extended(2000.0))
    looked = station.self_tests()
    looked.settle()
    assert 2000 <= station.now <= 2020
    assert station.shown[0]["phase"] == "self_test" and station.shares == sorted(station.shares)
    assert (station.shares[0], station.shares[-1] > 0.98) == (0, True)
    (told,) = looked.told()
    text = "the host job waited 34 min for the self-test (extended) of /dev/nvme0n1"
    assert (told.cause, told.level, told.message) == ("self_test", "told", text)
    assert looked.told() == [] and looked.causes_since_last() == []


@pytest.mark.parametrize("log", [lambda _now: nvme_log(0, ended=3), lambda _now: {}])
def test_nothing_is_waited_for_where_none_is_under_way_or_nobody_knows(fake, log):
    station = Station(fake, log)
    looked = station.self_tests()
    looked.settle()
    assert (station.now, station.shown, looked.told(), looked.causes_since_last()) == (0, [], [], [])


def test_a_stop_ends_the_wait_within_a_second(fake):
    station = Station(fake, extended(9000.0), stop_at_s=100.0)
    with pytest.raises(Interrupted):
        station.self_tests().settle()
    assert 100 <= station.now <= 101


STANDS = r"its self-test \(extended\), 60 % left, stood still for .*nvme device-self-test /dev/nvme0n1 -s 0xf"


@pytest.mark.parametrize(
    ("log", "edstt_min", "budget_s", "message", "at_s"),
    [
        (lambda now: nvme_log(2, min(40, int(now / 10))), 0, None, STANDS, 400 + HOUR),
        # By its own word it takes ten hours: a tenth of that may well take more than one.
        (lambda now: nvme_log(2, min(40, int(now / 10))), 600, None, STANDS, 400 + 2 * HOUR),
        (extended(99 * HOUR), 0, None, "did not end within 43200 s", 12 * HOUR),
        (extended(99 * HOUR), 60, None, "did not end within 7200 s", 2 * HOUR),
        (extended(99 * HOUR), 10, None, "did not end within 3600 s", HOUR),
        # 91 days, which no drive may have.
        (extended(99 * HOUR), 0xFFFF, None, "did not end within 43200 s", 12 * HOUR),
        (extended(99 * HOUR), 60, 0.5 * HOUR, "did not end within 1800 s", 0.5 * HOUR),
    ],
)
def test_one_that_does_not_end_ends_the_wait_with_what_its_owner_can_do(fake, log, edstt_min, budget_s, message, at_s):
    station = Station(fake, log, edstt_min, budget_s=budget_s)
    with pytest.raises(SelfTestStuck, match=message):
        station.self_tests().settle()
    assert at_s <= station.now <= at_s + 40


def test_one_that_tells_no_progress_has_the_whole_time(fake):
    """A SAS drive whose sense data have none."""

    def printed(now):
        result, hours = ("Self test in progress ...", "  NOW") if now < 5 * HOUR else ("Completed", "   36")
        line = f"# 1  Background long   {result:25}   -   {hours}                 - [-   -    -]"
        return {"smartctl": {"output": [line]}}

    station = Station(fake, lambda _now: {})
    fake.disk("sda", "8:0", "/sys/devices/pci0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0")
    station.name = "sda"

    def sleep(seconds):
        station.now += seconds
        fake.answers["smartctl"] = (0, json.dumps(printed(station.now)), "")

    sleep(0)
    SelfTests(station, station.clock, sleep).settle()
    assert 5 * HOUR <= station.now <= 5 * HOUR + 40 and set(station.shares) == {None}


def test_one_that_begins_in_a_round_disturbs_it_and_is_waited_for(fake):
    station = Station(fake, lambda now: nvme_log(0) if now < 60 else extended(600.0)(now - 60))
    looked = station.self_tests()
    looked.settle()
    station.sleep(30)
    assert (looked.causes_since_last(), looked.wait()) == ([], 0)
    station.sleep(40)
    (cause,) = looked.causes_since_last()
    text = "its self-test (extended), 99 % left, was under way; smartd or somebody else started it"
    assert (cause.cause, cause.level, cause.message) == ("self_test", "disturbs", text)
    assert 590 <= looked.wait() <= 630
    station.sleep(60)
    assert (looked.causes_since_last(), looked.wait()) == ([], 0)


def test_one_that_began_and_ended_between_two_looks_disturbs_too(fake):
    station = Station(fake, lambda now: nvme_log(0, ended=1 if now < 60 else 2))
    looked = station.self_tests()
    looked.settle()
    station.sleep(100)
    (cause,) = looked.causes_since_last()
    assert cause.message == "its log has another self-test: one began and ended since the last look"
    assert (looked.wait(), looked.causes_since_last()) == (0, [])


def test_another_form_of_the_same_log_is_no_other_self_test(fake):
    """nvme fails once, so that smartctl is asked."""
    station = Station(fake, lambda _now: nvme_log(0, ended=1))
    looked = station.self_tests()
    looked.settle()
    entry = {"self_test_code": {"value": 1}, "self_test_result": {"value": 0}, "power_on_hours": 7}
    log = {"nvme_self_test_log": {"current_self_test_operation": {"value": 0}, "table": [entry]}}
    fake.answers["smartctl"] = (0, json.dumps(log), "")
    told = fake.answers["nvme self-test-log"]
    fake.answers["nvme self-test-log"] = (1, "", "NVMe status: Internal Error")
    assert looked.causes_since_last() == []
    fake.answers["nvme self-test-log"] = told
    assert looked.causes_since_last() == []


def test_the_drives_of_an_array_are_all_looked_at(fake):
    station = Station(fake, extended(100.0))
    fake.nvme("nvme1n1", "259:1", "S2")
    station.members = ["nvme0n1", "nvme1n1"]
    looked = station.self_tests()
    causes = looked.causes_since_last()
    assert [cause.message.partition(":")[0] for cause in causes][1:] == ["nvme1n1"] and len(causes) == 2
    looked.wait()
    assert 100 <= station.now <= 120 and len(looked.told()) == 2
