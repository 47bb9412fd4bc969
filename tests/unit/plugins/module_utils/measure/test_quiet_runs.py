# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host took of a cell, beside the same cell's quiet rounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import quiet_runs
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import (
    BUSY_CPUS,
    DISTURBS,
    HOST_LIMITED,
    NO_PERCENTILES,
    TOLD,
    UNKNOWN,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Cause, SeenQueue
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

STOLEN = Cause(HOST_LIMITED, DISTURBS, "the hypervisor took 6% of the time of fio's CPUs", time_taken=True)
OUTLASTED = Cause(HOST_LIMITED, TOLD, "the hypervisor took 6%; outlasted", time_taken=True)
BUSY = Cause(BUSY_CPUS, TOLD, "the CPUs that fio was given were idle for 0.0% of the time")
QUIET = (1.0, 0.95)


def seen(rate, share, depth=1, iops=1000.0, **changes):
    """A cell at a rate, as a share of the usual one, of which the kernel's count holds a share of fio's."""
    found = {
        "fio_bytes": {"write": 4096},
        "kernel_bytes": {"write": 4096},
        "merged_share": 0.0,
        "mean_latency_s": depth / (rate * iops),
        "queued": float(depth),
        "in_flight": share * depth,
        "limits": {"nr_requests": None, "hw_queues": None, "device_depth": None},
        **changes,
    }
    return base.parse(SeenQueue, found)


def judged(rounds, depth=1, strict=False, decided=(), **cell):
    """The rounds of a cell: each (rate, share, causes by time that was taken), or what was seen of it."""
    made, load = quiet_runs.CellRounds(Limits(), strict), planned.cell(queue_depth=depth, **cell)
    for number, told in enumerate(rounds, start=1):
        given_seen, taken = (told, ()) if isinstance(told, SeenQueue) else (seen(*told[:2], depth), told[2:])
        one = quiet_runs.of_round(number, load, given_seen, taken, Limits())
        made.take(load, one, max([each for each in decided if each < number], default=0))
    return made


def levels(rounds, **how):
    """Of the last round."""
    made = judged(rounds, **how)
    return [(item.cause, item.level) for item in made.found.get(len(rounds), [])]


@pytest.mark.parametrize(
    ("depth", "rate", "share", "found"),
    [
        (1, 1.0, 0.95, []),
        # 4 % of steal at depth 1, which is below every limit of its own.
        (1, 0.96, 0.91, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
        (1, 0.48, 0.45, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
        # The rate is as ever: another part of the latency was shorter.
        (1, 0.985, 0.91, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        # The drive itself became slower or faster; the host's 50 µs are what they were.
        (1, 0.5, 0.975, []),
        (1, 2.0, 0.90, []),
        (1, 0.97, 0.945, []),
        (1, 0.97, 0.935, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
        # A faster drive leaves fio more to do.
        (32, 1.05, 0.91, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        # Gaps that the drive outlasts cost no rate, longer ones do, at any depth.
        (32, 0.99, 0.91, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        (32, 0.94, 0.92, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
        (32, 1.0, 0.70, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        (32, 0.90, 0.70, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
        (32, 0.90, 0.95, []),
    ],
)
def test_a_round_is_judged_beside_the_cells_quiet_rounds(depth, rate, share, found):
    assert levels([QUIET] * 3 + [(rate, share)], depth=depth) == found


@pytest.mark.parametrize("cell", [{"threads": 4}, {"rate_iops": 900}, {"queue_depth": 8, "batch": 4}])
def test_a_cell_without_a_backlog_is_held_to_the_strict_limit(cell):
    rounds = [seen(1, 0.95, 4)] * 3 + [seen(0.95, 0.90, 4)]
    assert (HOST_LIMITED, DISTURBS) in levels(rounds, **{"depth": 1, **cell} if "batch" not in cell else {"batch": 4})


@pytest.mark.parametrize(
    ("depth", "rate", "found"),
    [
        (1, 0.99, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        (32, 1.01, [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]),
        (1, 0.94, [(HOST_LIMITED, DISTURBS), (NO_PERCENTILES, TOLD)]),
    ],
)
def test_time_that_was_taken_is_a_remark_where_the_rate_is_that_of_quiet_rounds(depth, rate, found):
    """Its latencies were not kept, so that it has no percentiles either way."""
    assert levels([QUIET] * 3 + [(rate, 0.95, STOLEN)], depth=depth) == found
    made = judged([QUIET] * 3 + [(rate, 0.95, STOLEN)], depth=depth)
    assert made.without_percentiles == {4}


def test_a_queue_that_drains_is_no_part_of_the_host():
    """The demo's drive: 64 I/Os take it 0.11 s while it is fresh and 0.43 s once it is worn in, of cells of 2 s."""
    fresh = seen(1, 1, 64, 600, queued=63.93, in_flight=62.38, mean_latency_s=0.1066)
    worn = seen(1, 1, 64, 150, queued=63.81, in_flight=58.46, mean_latency_s=0.4255)
    assert levels([fresh] * 3 + [worn], depth=64, runtime_s=2) == []


def test_what_comes_and_goes_in_quiet_rounds_is_no_disturbance():
    """Of a drive of 10 µs the host takes a third, and more of it one time than another."""
    quiet = [(1.0, 0.71), (1.0, 0.70), (1.0, 0.72)]
    disturbed = (HOST_LIMITED, DISTURBS)
    assert levels([*quiet, (0.96, 0.70)]) == [(HOST_LIMITED, TOLD)] and disturbed in levels([*quiet, (0.96, 0.66)])
    # The same beside a steady host is a disturbance.
    assert disturbed in levels([(1.0, 0.71)] * 3 + [(0.96, 0.69)])


@pytest.mark.parametrize("cell", [{"rate_iops": 900}, {"batch": 4}])
def test_where_the_rate_says_nothing_of_a_latency_the_host_disturbs_it(cell):
    assert (HOST_LIMITED, DISTURBS) in levels([QUIET] * 3 + [(1.0, 0.92)], depth=8, **cell)


def test_a_round_on_busy_cpus_gives_no_percentiles_where_quiet_ones_are_on_idle_cpus():
    """One busy loop beside fio changed no mean, and the p99 by up to 69 %."""
    assert levels([QUIET] * 3 + [(1.0, 0.95, BUSY)]) == [(NO_PERCENTILES, TOLD)]
    # Where they always are, they say nothing of one round.
    assert levels([QUIET] * 2 + [(1.0, 0.95, BUSY)] * 3) == [] and levels([(1.0, 0.95, BUSY)] * 9) == []


def test_what_was_outlasted_stays_a_remark_gives_no_percentiles_and_shows_no_quiet_round():
    """Three busy loops beside fio changed no rate of 8 I/Os that waited at the drive, and their p99 by 14 %."""
    assert levels([QUIET] * 3 + [(0.9, 0.95, OUTLASTED)], depth=32) == [(HOST_LIMITED, TOLD), (NO_PERCENTILES, TOLD)]
    # Where it goes on all the time, it says nothing of one round.
    assert levels([(0.9, 0.95, OUTLASTED)] * 9, depth=32) == [(HOST_LIMITED, TOLD)]
    assert levels([QUIET, *[(0.9, 0.95, OUTLASTED)] * 2, (0.9, 0.5)], depth=32) == []


def test_with_fewer_than_three_quiet_rounds_other_evidence_stands():
    assert levels([QUIET, QUIET, (1.0, 0.95, STOLEN)]) == [(HOST_LIMITED, DISTURBS)]
    assert levels([(1.0, 0.95, STOLEN)] * 9) == [(HOST_LIMITED, DISTURBS)]


def test_one_io_at_a_time_with_nothing_to_compare_is_unknown_below_nine_tenths():
    assert levels([(1.0, 0.89)]) == [(HOST_LIMITED, UNKNOWN)]
    assert levels([(1.0, 0.89)], strict=True) == [(HOST_LIMITED, DISTURBS)]
    assert levels([(1.0, 0.91)]) == [] and levels([(1.0, 0.5)], depth=8) == []
    assert levels([(1.0, 0.89, STOLEN)]) == [(HOST_LIMITED, DISTURBS)]
    # Once there are three of them, that is what the cell is like, or what went on all the time.
    assert levels([(1.0, 0.89)] * 3, strict=True) == [(HOST_LIMITED, TOLD)]
    assert levels([(1.0, 0.91)] * 3) == [] == levels([(1.0, 0.5)] * 3, depth=8)


def test_the_first_rounds_are_judged_again_once_there_are_three():
    busy, slow = (0.9, 0.855), judged([(0.9, 0.855), QUIET, QUIET])
    assert slow.disturbs(1) and not slow.disturbs(2)
    assert judged([busy, busy, busy, QUIET, QUIET]).found.keys() == {1, 2, 3}
    assert judged([(1.0, 0.95, STOLEN), QUIET, QUIET, QUIET]).found[1][0].level == TOLD


def test_rounds_of_a_window_that_stands_are_not_judged_again():
    busy = (0.9, 0.855)
    found = judged([busy, busy, busy, QUIET, QUIET], decided=[3]).found
    assert {number: [item.level for item in causes] for number, causes in found.items()} == {
        number: [TOLD] for number in (1, 2, 3)
    }


def test_where_the_kernel_does_not_count_latencies_count_as_they_are():
    unknown = [{"in_flight": None}, {"in_flight": 0.0}, {"merged_share": 0.5}, {"kernel_bytes": None}]
    for nothing in unknown:
        rounds = [seen(1, 0.95, **nothing)] * 3 + [seen(0.9, 0.5, **nothing)]
        assert judged(rounds).found == {} and not judged(rounds).without_percentiles
    assert quiet_runs.of_round(1, planned.cell(), seen(1, 1, mean_latency_s=None), (), Limits()) is None
    # Its rate can be compared all the same.
    bare = seen(1, 0.95, in_flight=None)
    made = quiet_runs.CellRounds(Limits(), False)
    for number, taken in enumerate([(), (), (), (STOLEN,)], start=1):
        made.take(planned.cell(), quiet_runs.of_round(number, planned.cell(), bare, taken, Limits()), 0)
    assert [item.level for item in made.found[4]] == [TOLD, TOLD]


FEW_TAGS = {"nr_requests": 64, "hw_queues": 1, "device_depth": 32}


@pytest.mark.parametrize("room", [FEW_TAGS, {**FEW_TAGS, "device_depth": None}])
def test_what_waits_for_a_tag_waits_for_the_drive_and_not_for_the_host(room):
    """128 asked of a SATA drive that has 32: three quarters of each latency are in no count of the kernel's, and grow
    as the drive slows down.
    """
    rounds = [seen(rate, 0.25, depth=128, limits=room) for rate in (1, 1, 1, 1, 0.6, 0.6)]
    made = judged(rounds, depth=128)
    assert made.found == {} and not made.without_percentiles


def test_the_texts_are_lines_that_a_person_would_say():
    (found, tail) = judged([QUIET] * 3 + [(0.95, 0.9)]).found[4]
    assert found.message == (
        "the host took 5% more of each latency than in quiet rounds, and the rate is 5.0% below theirs: stop other load"
    )
    assert tail.message == "the host took 5% more of each latency than in quiet rounds: no percentiles of this round"
    (told, tail) = judged([QUIET] * 3 + [(1.0, 0.95, STOLEN)]).found[4]
    assert told.message == f"{STOLEN.message}; the rate is as in quiet rounds"
    assert tail.message == "time was taken from fio: no percentiles of this round"


@given(st.lists(st.floats(-0.02, 0.02), min_size=5, max_size=60), st.sampled_from([1, 8, 32]), st.floats(0.5, 0.99))
def test_a_drive_of_constant_rate_never_loses_a_round_by_noise(noise, depth, share):
    """The kernel's count strays by a hundredth, and by two; the rate, and so fio's latency, by half as much."""
    rounds = [(1 + off / 2.01, share + off) for off in noise]
    made = judged(rounds, depth=depth)
    found = {item.level for causes in made.found.values() for item in causes if item.cause == HOST_LIMITED}
    assert DISTURBS not in found


@given(st.integers(6, 40), st.data(), st.floats(0.6, 0.99), st.floats(0.05, 0.6))
def test_a_host_that_takes_its_part_of_some_rounds_loses_exactly_these(count, data, share, taken):
    """What it takes is added to each latency. At most half of the rounds may be, however they lie."""
    busy = data.draw(st.sets(st.integers(1, count), max_size=min(count, 12) // 2))
    rounds = [((1 - taken), share * (1 - taken)) if number in busy else (1, share) for number in range(1, count + 1)]
    made = judged(rounds)
    assert {number for number in range(1, count + 1) if made.disturbs(number)} == busy
    assert made.without_percentiles == busy


def test_a_round_long_ago_is_not_judged_any_more():
    """A drive may change over hours; what was quiet then is not what is compared now."""
    drifting = [(1 - 0.004 * number, 0.95 + 0.0002 * number) for number in range(60)]
    assert judged(drifting).found == {}
    made = judged([*drifting, (0.70, 0.80)])
    assert made.found.keys() == {61} and made.disturbs(61)
