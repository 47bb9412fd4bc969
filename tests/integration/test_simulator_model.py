# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated SSD's model by itself: what it would take for reads, writes and discards, without a device."""

from __future__ import annotations

import pytest
from model import PAGE_BYTES, Model
from simulated_drives import FIGURES, MIB, SIZE


def model(**changes):
    return Model(**{"size_bytes": SIZE, "noise_pct": 0, **FIGURES, **changes})


def write_all(drive, capacities=1.0):
    """Write every page in turn; the time at which the last one completes, at queue depth 1."""
    now_s = 0.0
    for page in range(int(SIZE / PAGE_BYTES * capacities)):
        now_s = drive.write(now_s, page * PAGE_BYTES % SIZE, PAGE_BYTES)
    return now_s


@pytest.mark.parametrize(
    "capacities, iops", [(0, 2500), (0.5, 2500), (1, 2500), (1.5, (2500 * 500) ** 0.5), (2, 500), (3, 500)]
)
def test_rate_falls_over_the_second_capacity(capacities, iops):
    drive = model()
    write_all(drive, capacities)
    assert drive.write_iops() == pytest.approx(iops)


def test_discard_of_all_pages_in_pieces_makes_it_fresh_and_not_before():
    drive = model()
    write_all(drive, 2)
    half = SIZE // 2
    drive.discard(0, half)
    drive.discard(0, half)
    assert drive.write_iops() == pytest.approx(500), "the same half twice is not the whole drive"
    drive.discard(half, half - 1)
    assert drive.write_iops() == pytest.approx(500), "a page that is discarded in part still holds data"
    drive.discard(SIZE - PAGE_BYTES, PAGE_BYTES)
    assert drive.write_iops() == pytest.approx(2500)


@pytest.mark.parametrize(("more", "iops"), [({}, 500), ({"catch_up_s": 0}, 250)])
def test_a_drive_that_does_not_catch_up_loses_what_its_host_does(more, iops):
    """The host hands each read in 2 ms after the one before it is done, and the drive takes 2 ms."""
    drive, now_s = model(read_iops=500, **more), 0.0
    for _each in range(1000):
        now_s = max(now_s, drive.read(now_s, PAGE_BYTES)) + 0.002
    assert 1000 / now_s == pytest.approx(iops, rel=0.01)


def test_noise_is_bounded_seen_and_the_same_for_a_seed():
    def rates(seed):
        drive = model(noise_pct=2, seed=seed)
        write_all(drive, 2)
        found = []
        for _step in range(64):
            found.append(drive.write_iops())
            drive.wear.write(0, SIZE // 64)
        return found

    assert rates(1) == rates(1) != rates(2)
    assert 490 <= min(rates(1)) < 495 and 505 < max(rates(1)) <= 510


def test_large_writes_cost_their_bytes_even_when_worn():
    drive = model(steady_iops=10)
    write_all(drive, 3)
    now_s = 1e6
    assert drive.write(now_s, 0, MIB) - now_s == pytest.approx(MIB / 32e6)


def test_no_burst_after_idling_and_no_loss_by_a_late_caller():
    drive = model()
    first_s = drive.read(100.0, PAGE_BYTES)
    assert first_s == pytest.approx(100.001)
    # The caller comes 0.3 ms late each time, as a sleep that overshoots does: the rate stays 1000 a second.
    last_s = first_s
    for _request in range(1000):
        last_s = drive.read(last_s + 0.0003, PAGE_BYTES)
    assert last_s - first_s == pytest.approx(1.0)
    assert drive.read(last_s + 1, PAGE_BYTES) == pytest.approx(last_s + 1.001), "a pause saves nothing up"


def idle(drive, seconds, now_s):
    """One write after so long an idle time; when it is done."""
    return drive.write(now_s + seconds, 0, PAGE_BYTES)


def test_idle_time_makes_room_for_fresh_writes_and_no_more_than_the_spare_area():
    drive = model(idle_gc_bandwidth=100 * PAGE_BYTES, spare_pct=10)
    now_s = idle(drive, 3, write_all(drive, 3))
    # Room for 300 pages, of which one is taken already.
    taken = 1
    while True:
        done_s = drive.write(now_s, 0, PAGE_BYTES)
        if done_s - now_s > 1.5 / 2500:
            break
        taken, now_s = taken + 1, done_s
    assert taken == pytest.approx(300, abs=2) and done_s - now_s == pytest.approx(1 / 500)
    idle(drive, 1e6, done_s)
    assert drive.recovered.bytes == pytest.approx(SIZE * 0.1, abs=PAGE_BYTES), "and no more"


@pytest.mark.parametrize(("paused_s", "pages"), [(1.9, 0), (2.5, 50)])
def test_a_drive_may_wait_before_it_makes_room(paused_s, pages):
    drive = model(idle_gc_bandwidth=100 * PAGE_BYTES, spare_pct=10, collect_after_s=2)
    now_s = write_all(drive, 3)
    drive.write(now_s + paused_s, 0, PAGE_BYTES)
    assert drive.recovered.bytes == pytest.approx(max(0, pages - 1) * PAGE_BYTES, abs=PAGE_BYTES)


def test_a_busy_drive_recovers_nothing():
    drive = model(idle_gc_bandwidth=1e9)
    write_all(drive, 3)
    assert drive.recovered.bytes == 0


def test_reads_get_the_time_that_writes_leave_them():
    """A hundred streamed writes of 128 KiB a second take 0.41 s of each, of which reads wait for half."""
    drive, reads = model(reads_wait=0.5), 0
    for hundredth in range(1000):
        drive.write(hundredth / 100, 0, 131_072)
        while drive.reads.next_s < (hundredth + 1) / 100:
            drive.read(hundredth / 100, PAGE_BYTES)
            reads += 1
    assert reads / 10 == pytest.approx(1000 * (1 - 0.5 * 100 * 131_072 / 32e6), rel=0.01)


def test_streams_over_scattered_data_are_slow_until_they_wrote_it_anew():
    drive = model(scatter_cost=2.0)
    now_s, cost_s = 1e6, MIB / 32e6
    assert drive.write(now_s, 0, MIB) - now_s == pytest.approx(cost_s)
    write_all(drive, 2)
    slow = [drive.write(now_s * (2 + place), place * MIB, MIB) - now_s * (2 + place) for place in range(SIZE // MIB)]
    assert slow[0] == pytest.approx(3 * cost_s) and slow == sorted(slow, reverse=True)
    assert drive.wear.scattered_share == 0 and drive.write(now_s * 99, 0, MIB) - now_s * 99 == pytest.approx(cost_s)


def test_a_latency_of_its_own_needs_a_depth():
    drive = model(latency_s=0.01)
    assert drive.read(1.0, PAGE_BYTES) == pytest.approx(1.011) and drive.read(1.0, PAGE_BYTES) == pytest.approx(1.012)


@pytest.mark.parametrize(
    "change",
    [
        {"size_bytes": 0},
        {"size_bytes": 4097},
        {"fresh_iops": 0},
        {"read_bandwidth": -1},
        {"noise_pct": 100},
        {"latency_s": -1},
        {"steady_iops": float("nan")},
    ],
)
def test_impossible_figures_are_refused_by_name(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        model(**change)
