# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What befalls a drive before it is read back, by a host whose nvme-cli a table answers for."""

from __future__ import annotations

import contextlib
import json
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.before_read_back import BeforeReadBack, NotPossible
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import FioError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedIntegrity

STATES = [{"non-operational_state": flag} for flag in (0, 0, 1)]


class Station:
    """A held drive; its power state is what it was last set to."""

    name, drive = "nvme0n1", "d"

    def __init__(self, fake):
        fake.nvme("nvme0n1", "259:0", "SN1")
        fake.nvme_says("list-ns", {"nsid_list": [{"nsid": 1}]})
        names = {"eui64": "0" * 16, "nguid": "0" * 32}
        fake.nvme_says("id-ns", {**names, "flbas": 0, "dps": 0, "fpi": 0, "lbafs": [{"ms": 0, "ds": 9, "rp": 0}]})
        fake.nvme_says("id-ctrl", {"psds": STATES})
        fake.answers["nvme reset"] = (0, "", "")
        self.state, self.steps, self.told = 1, [], []
        answers = fake.run
        fake.run = lambda argv, *more, **options: self.answer(argv) or answers(argv, *more, **options)
        self.job = types.SimpleNamespace(host=fake)
        self.plan = types.SimpleNamespace(selector={"serial": "SN1"})
        self.held = types.SimpleNamespace(path="/dev/nvme0n1")
        self.watchdog = types.SimpleNamespace(call=lambda _what, step, _longer_s: step())
        self.kernel_log = types.SimpleNamespace(by_us=self.by_us)
        self.guard = lambda step: self.steps.append(f"guard {step}")
        self.look = lambda: self.steps.append("look")
        self.make_settings_again = lambda attempt: self.steps.append(f"settings of {attempt.test}")

    def answer(self, argv):
        if argv[1] in ("reset", "set-feature"):
            self.steps.append(" ".join(argv[1:2] + argv[-1:]))
        if argv[1] == "set-feature":
            self.state = int(argv[-1].rpartition("=")[2])
            self.job.host.answers["nvme set-feature"] = (0, "", "")
        self.job.host.answers["nvme get-feature"] = (0, f"Current value:{self.state:08x}", "")

    @contextlib.contextmanager
    def by_us(self):
        self.steps.append("ours")
        yield
        self.steps.append("theirs")


def before(fake, **asked):
    station = Station(fake)
    return station, BeforeReadBack(station, PlannedIntegrity(1, **asked), Attempt("t", 1))


def test_nothing_befalls_a_drive_by_itself(fake):
    station, made = before(fake)
    made.check()
    made.reset()
    with made.resting():
        pass
    assert station.steps == [] and (made.resets, made.power_state) == (0, None)


def test_a_reset_is_guarded_ours_and_looked_after(fake):
    station, made = before(fake, reset=True)
    made.check()
    assert station.steps == []
    made.reset()
    assert station.steps == ["guard integrity", "ours", "reset /dev/nvme0", "theirs", "look", "settings of t"]
    assert made.resets == 1


def test_nothing_is_reset_that_the_guard_refuses(fake):
    station, made = before(fake, reset=True)

    def guard(_step):
        raise Refused([])

    station.guard = guard
    with pytest.raises(Refused):
        made.reset()
    assert station.steps == []


def test_nothing_is_set_on_a_drive_that_is_another_after_its_reset(fake):
    station, made = before(fake, reset=True)

    def look():
        raise Refused([])

    station.look = look
    with pytest.raises(Refused):
        made.reset()
    assert station.steps == ["guard integrity", "ours", "reset /dev/nvme0", "theirs"]


def test_a_reset_that_fails_is_an_error(fake):
    station, made = before(fake, reset=True)
    fake.answers["nvme reset"] = (1, "", "Reset: Network dropped connection on reset")
    with pytest.raises(FioError, match="its controller was not reset: nvme reset /dev/nvme0 ended with 1 and said: R"):
        made.reset()
    assert made.resets == 0


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_drive_goes_back_to_its_power_state_whatever_ends_its_rest(fake, error):
    station, made = before(fake, low_power=True)
    with contextlib.suppress(KeyboardInterrupt), made.resting():
        assert station.state == 2
        if error:
            raise error()
    assert (station.state, made.power_state) == (1, 2)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"psds": STATES[:2]}, "the drive can't rest: it tells of no power state in which it does no I/O"),
        ({"psds": None}, "the drive can't rest"),
    ],
)
def test_a_drive_that_has_no_such_state_is_told_apart(fake, told, why):
    station, made = before(fake, low_power=True)
    fake.answers["nvme id-ctrl"] = (0, json.dumps(told), "")
    with pytest.raises(NotPossible, match=why):
        made.check()
    assert station.steps == []


@pytest.mark.parametrize(
    ("ends_in", "told"),
    [
        (2, []),
        (0, ["it was put to rest in power state 2, and did not stay there: it reported power state 0"]),
    ],
)
def test_where_a_drive_was_at_the_end_of_its_rest_is_told_once_where_it_left(fake, ends_in, told):
    station, made = before(fake, low_power=True)
    for _rest in range(3):
        with made.resting():
            station.state = ends_in
    assert [(item.level, item.message) for item in station.told] == [("told", text) for text in told]
    assert station.state == 1
