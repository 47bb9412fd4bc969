# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attempt that was cut short tells of its drive's health."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.journaled_health import MOST_NOTED, JournaledHealth
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.events import KernelEvent, Sample
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.health import HealthChange
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import EVENTS

SWITCH = "0000:40:01.0"


def line(boot_s=100.0, kind="reset", name="nvme0", drive="A1", is_own=True, message="resetting controller"):
    return KernelEvent(drive, "iops", 1, kind, name, is_own, float(boot_s), message)


def other(boot_s=110.0, **told):
    return line(boot_s, **{"name": "nvme1", "drive": "B1", **told})


def sample(**told):
    return base.parse(Sample, {**EVENTS["sample"], **told})


def health(mine, others=()):
    made, of_host = JournaledHealth(), {}
    for event in mine:
        made.take(event)
    for event in (*mine, *others):
        if isinstance(event, KernelEvent):
            of_host.setdefault(event.drive, []).append(event)
    found = made.change(of_host)
    return {name: value for name, value in vars(found).items() if value not in (None, getattr(HealthChange(), name))}


UNREADABLE = line(kind="medium_error", message="sector 0")
RESET = {"controller_resets": 1, "kernel_message": "resetting controller"}
WAITED = {"may_have_waited": True}


@pytest.mark.parametrize(
    "mine, others, expected",
    [
        # What made it wait may be told only after its host is gone.
        ([], [], WAITED),
        ([line()], [], RESET),
        ([line(), line(300)], [], {**RESET, "controller_resets": 2}),
        ([line(), line(105, "gone", message="gone")], [], {**RESET, "drive_gone": True}),
        ([line(kind="link_reset")], [], {"link_resets": 1, "kernel_message": "resetting controller"}),
        ([line(kind="timeout")], [], {"io_timeouts": 1, "kernel_message": "resetting controller"}),
        # A read that is repeated is told again.
        ([UNREADABLE, UNREADABLE, line(kind="medium_error", message="sector 8")], [], {"media_errors": 2, **WAITED}),
        ([line(kind="io_error")], [], WAITED),
        # What is above the drive did it, or may have, or the drive did it to that.
        ([line(99, "host_reset", SWITCH, is_own=False), line()], [], {"host_resets": 1, **WAITED}),
        ([line(), line(101, "host_reset", SWITCH, is_own=False)], [], RESET),
        (
            [line(), line(101, "host_reset", SWITCH, is_own=False)],
            [other(99), other(101, kind="host_reset", name=SWITCH, is_own=False)],
            {"host_resets": 1, **WAITED},
        ),
        # Other drives had it too; or at another time, or something else.
        ([line()], [other()], {"host_resets": 1, **WAITED}),
        ([line()], [other(161)], {**RESET, **WAITED}),
        ([line()], [other(kind="timeout")], {**RESET, **WAITED}),
        ([line()], [other(kind="medium_error")], RESET),
        ([], [other()], WAITED),
        # By samples.
        (
            [sample(media_errors=4), sample(media_errors=None), sample(media_errors=7)],
            [],
            {"media_errors": 3, **WAITED},
        ),
        ([sample(media_errors=4), sample(media_errors=1)], [], WAITED),
        ([sample(critical_warning=bits) for bits in (1, 6, 1)], [], {"critical_warning": 4, **WAITED}),
        ([sample(critical_warning=bits) for bits in (None, 4)], [], WAITED),
    ],
)
def test_what_was_noted_until_then_is_held_against_the_drive(mine, others, expected):
    assert health(mine, others) == expected


def test_of_a_storm_of_lines_the_first_are_enough():
    found = health([line(100 * number) for number in range(MOST_NOTED * 2)])
    assert found["controller_resets"] == MOST_NOTED
