# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan asks of a host that is to find how many drives it measures at the same time."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import io_pattern, parallelism_search
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import parallel_drives
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text
from ansible_collections.ssdlab.fleet.tests.fixtures import planned


def spec(asked, drives, any_test=True):
    settings = {"ssd_parallel_drives": asked, "workload_ioengine": "libaio"}
    return parallel_drives.spec(settings, drives, any_test)


@pytest.mark.parametrize(
    ("asked", "drives", "any_test", "number", "finds"),
    [
        (1, 3, True, 1, False),
        ("2", 3, True, 2, False),
        ("auto", 3, True, 3, True),
        ("auto", 0, True, 1, True),
        ("auto", 3, False, 3, False),
    ],
)
def test_a_plan_has_a_number_or_the_reads_that_tell_it(asked, drives, any_test, number, finds):
    most, together = spec(asked, drives, any_test)
    assert most == number and (together is not None) is finds


def test_the_cells_only_read():
    _most, asked = spec("auto", 2)
    assert asked.repeats >= parallelism_search.FEWEST_REPEATS
    for cell in asked.cells:
        assert io_pattern.sides(cell) == {"read"} and ("rw=randread\n" in cell.job or "rw=read\n" in cell.job)


def spans_of(drives):
    return parallel_drives.span_s(spec("auto", drives)[1], drives)


def test_the_time_is_that_of_each_drive_alone_and_of_the_most_that_is_ever_tried():
    once_s = parallelism_search.group_s(spec("auto", 2)[1])
    assert spans_of(1) == (0, 0) == parallel_drives.span_s(spec(4, 8)[1], 8)
    assert spans_of(24) == (24 * once_s, parallelism_search.most_groups(24) * once_s)


def test_24_drives_take_less_than_an_hour_whatever_is_found():
    low_s, high_s = spans_of(24)
    assert 600 < low_s < high_s < 3600


def test_plan_mode_tells_how_long_it_takes():
    most, together = spec("auto", 2)
    plan = dataclasses.replace(planned.plan_of(), parallel_drives=most, together=together)
    (line,) = plan_text.describe(plan, {})
    assert line.startswith("h1: 0 drives, as many at a time as do not slow each other down") and "0 s" in line
    low_s, high_s = spans_of(2)
    assert 45 < low_s < 60 and high_s == pytest.approx(2 * low_s)
