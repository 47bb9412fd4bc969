# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import precondition_curve

SIZE = 100_000


def test_each_percent_has_the_rate_at_which_it_was_written():
    """Half at 1,000 bytes/s, half at 100."""
    samples = [(0.0, 7), (50.0, 50_007), (550.0, 100_007)]
    assert precondition_curve.rates(samples, 1000, 100) == pytest.approx([1000] * 50 + [100] * 50)


@example([(4.0, 1), (1.0, 1)], 3)
@given(st.lists(st.tuples(st.floats(0.001, 100), st.integers(0, 30_000)), min_size=1, max_size=40), st.integers(1, 300))
def test_the_steps_take_as_long_as_the_fill(parts, steps):
    times = list(itertools.accumulate([0.0] + [seconds for seconds, _written in parts]))
    bytes_ = list(itertools.accumulate([5] + [written for _seconds, written in parts]))
    total = bytes_[-1] - 5
    if not total:
        return
    found = precondition_curve.rates(list(zip(times, bytes_)), total / steps, steps)
    assert len(found) == steps
    last = max(index for index, written in enumerate(bytes_[:-1], 1) if bytes_[index] > written)
    assert sum(total / steps / rate for rate in found) == pytest.approx(times[last], rel=1e-6, abs=1e-6)


def watched(counts):
    """A watch that saw all counts; further looks see the last one."""
    left, seen_all = list(counts), threading.Event()

    def read():
        if len(left) == 1:
            seen_all.set()
            return left[0]
        return left.pop(0)

    with precondition_curve.Recorder(read) as watch:
        assert seen_all.wait(60)
    return watch


@pytest.mark.parametrize(
    "counts, written",
    [
        ([500, 700, 500 + SIZE], SIZE),
        ([0, 0, 0], None),
        ([None], None),
        ([5, 6, None], None),
        ([4096, 4096, 4096], 0),
        ([500, 500 + SIZE // 2], SIZE // 2),
    ],
)
def test_what_the_kernel_does_not_count_is_unknown(counts, written):
    assert watched(counts).written == written


@pytest.mark.parametrize(
    "written, fine",
    [(SIZE, True), (SIZE + 512, True), (None, True), (SIZE - 512, False), (SIZE // 2, False), (0, False)],
)
def test_a_fill_that_wrote_less_than_asked_is_short(written, fine):
    if fine:
        precondition_curve.check(written, SIZE)
        return
    with pytest.raises(precondition_curve.Short, match="the kernel counted only"):
        precondition_curve.check(written, SIZE)


def test_a_curve_has_a_point_for_each_percent_and_pass():
    found = watched([1, 1 + SIZE, 1 + 2 * SIZE]).curve(SIZE, 2)
    assert (len(found.bandwidth_bytes_per_s), found.step_bytes) == (200, SIZE / 100)
    assert len(watched([1, 1 + 40 * SIZE]).curve(SIZE, 40).bandwidth_bytes_per_s) == 1000
    assert watched([0, 0]).curve(SIZE, 2) is None and watched([5, 5]).curve(SIZE, 2) is None


def progress(*seen):
    """What is told of the share done, for (seconds, bytes written) one after the other."""
    times, counts = zip((0.0, seen[0][1]), *seen)
    made = precondition_curve.Progress(iter(counts).__next__, SIZE, iter(times).__next__)
    return [made.share() for _look in seen]


def test_the_share_done_is_what_was_written_since_the_fill_began():
    assert progress((1.0, 50), (2.0, 50 + SIZE // 4), (3.0, 50 + 2 * SIZE)) == [0, 0.25, 1]
    assert progress((1.0, None), (2 * precondition_curve.STUCK_S, None)) == [None, None]


def test_a_fill_is_stuck_when_nothing_was_written_for_long():
    late = precondition_curve.STUCK_S
    assert progress((1.0, 50), (late, 90), (2 * late, 90)) == [0, 40 / SIZE, 40 / SIZE]
    with pytest.raises(precondition_curve.Stuck, match="nothing was written for 600 s: the drive hangs"):
        progress((1.0, 50), (late, 90), (2 * late + 1, 90))
