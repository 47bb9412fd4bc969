# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a simulated SSD is: a pure model without I/O, so that tests can drive it with their own clock.

It runs inside nbdkit in the system's Python, so it keeps to plain syntax and the standard library.
"""

from __future__ import annotations

import random

PAGE_BYTES = 4096
# From here on a write counts as a stream: it costs by its bytes and never by the random write rate.
STREAM_BYTES = 65536
# The noise holds for this share of the capacity, so that it shows in a round's average.
NOISE_STEPS_PER_CAPACITY = 64
# A request that comes this late after the one before it may catch up: the scheduler's jitter does not lower the rate.
# A longer pause is idling; it saves nothing up, so a round does not start with a burst.
CATCH_UP_S = 0.1


class Pacer:
    """Deadlines of one direction (read or write), in seconds of the caller's clock. Not thread-safe."""

    def __init__(self, catch_up_s=CATCH_UP_S):
        self.next_s = float("-inf")
        self._catch_up_s = catch_up_s

    def admit(self, now_s, cost_s):
        """Take a request that costs ``cost_s`` of the drive's time; return when it may complete."""
        idle = now_s - self.next_s > self._catch_up_s
        self.next_s = (now_s if idle else self.next_s) + cost_s
        return self.next_s


class Wear:
    """Which pages hold data, how much was written since the drive was last empty, and how much of the data lies
    scattered by small writes.
    """

    STREAMED, SCATTERED = b"\1", b"\2"

    def __init__(self, size_bytes):
        self.size_bytes = size_bytes
        self.written_bytes = 0
        self._mapped = bytearray(size_bytes // PAGE_BYTES)
        self._scattered = 0

    def write(self, offset, length):
        first, last = offset // PAGE_BYTES, -(-(offset + length) // PAGE_BYTES)
        kind = self.STREAMED if length >= STREAM_BYTES else self.SCATTERED
        self._scattered -= self._mapped.count(self.SCATTERED, first, last)
        self._scattered += (last - first) * (kind == self.SCATTERED)
        self._mapped[first:last] = kind * (last - first)
        self.written_bytes += length

    @property
    def scattered_share(self):
        """The share of the drive's pages that a small write wrote last."""
        return self._scattered / len(self._mapped)

    def discard(self, offset, length):
        """Only whole pages become free. With no page left in use the drive is as new."""
        first, last = -(-offset // PAGE_BYTES), (offset + length) // PAGE_BYTES
        if last > first:
            self._scattered -= self._mapped.count(self.SCATTERED, first, last)
            self._mapped[first:last] = bytes(last - first)
        if not any(self._mapped):
            self.written_bytes = 0


class Recovered:
    """Room for fresh writes that idle time made by collecting garbage: so many bytes a second of it, and no more than
    the spare area holds.
    """

    def __init__(self, bytes_per_s, most_bytes):
        self._bytes_per_s, self._most_bytes = bytes_per_s, most_bytes
        self.bytes = 0.0

    def idle(self, seconds):
        self.bytes = min(self._most_bytes, self.bytes + seconds * self._bytes_per_s)

    def take(self, length):
        """Whether a write of this length finds room."""
        if self.bytes < length:
            return False
        self.bytes -= length
        return True


class Model:
    """Rates of the drive: fresh for one capacity of writes, falling over the next one, then steady.

    Idle for longer than CATCH_UP_S and ``collect_after_s``, a drive past its fresh state collects garbage from then on,
    ``idle_gc_bandwidth`` bytes a second, until ``spare_pct`` of the capacity is free; that room is written at the fresh
    rate. Streams over pages that small writes scattered cost up to ``scatter_cost`` times as much again: the data
    around them has to move. Writes keep reads waiting, ``reads_wait`` times as long as they take themselves. Each
    request takes ``latency_s`` besides, in parallel: d in flight are at most d / latency_s a second. With
    ``catch_up_s`` 0 none makes good what its host lost: each takes a fixed time from when the drive is free for it.

    ``fresh_iops``, ``steady_iops``: small writes per second. ``read_iops``: small reads per second.
    ``write_bandwidth``, ``read_bandwidth``: bytes per second, for large requests.
    ``noise_pct``: how far the steady rate strays, in percent; the same for the same ``seed``.
    Raises ValueError for a figure that makes no drive.
    """

    def __init__(
        self,
        size_bytes,
        fresh_iops,
        steady_iops,
        read_iops,
        write_bandwidth,
        read_bandwidth,
        noise_pct=2.0,
        seed=1,
        idle_gc_bandwidth=0.0,
        spare_pct=7.0,
        scatter_cost=0.0,
        latency_s=0.0,
        collect_after_s=0.0,
        reads_wait=0.0,
        catch_up_s=CATCH_UP_S,
    ):
        if size_bytes <= 0 or size_bytes % PAGE_BYTES:
            raise ValueError(f"size_bytes must be a positive multiple of {PAGE_BYTES}, not {size_bytes}")
        rates = {
            "fresh_iops": fresh_iops,
            "steady_iops": steady_iops,
            "read_iops": read_iops,
            "write_bandwidth": write_bandwidth,
            "read_bandwidth": read_bandwidth,
        }
        for name, value in rates.items():
            if not value > 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        if not 0 <= noise_pct < 100:
            raise ValueError(f"noise_pct must be from 0 to below 100, not {noise_pct}")
        for name, value in {
            "idle_gc_bandwidth": idle_gc_bandwidth,
            "spare_pct": spare_pct,
            "scatter_cost": scatter_cost,
            "latency_s": latency_s,
            "collect_after_s": collect_after_s,
            "reads_wait": reads_wait,
            "catch_up_s": catch_up_s,
        }.items():
            if not value >= 0:
                raise ValueError(f"{name} must be 0 or more, not {value}")
        self.wear = Wear(size_bytes)
        self.recovered = Recovered(idle_gc_bandwidth, size_bytes * spare_pct / 100)
        self.scatter_cost, self.latency_s, self.collect_after_s = scatter_cost, latency_s, collect_after_s
        self.reads_wait = reads_wait
        self.reads, self.writes = Pacer(catch_up_s), Pacer(catch_up_s)
        self.fresh_iops, self.steady_iops, self.read_iops = fresh_iops, steady_iops, read_iops
        self.write_bandwidth, self.read_bandwidth = write_bandwidth, read_bandwidth
        self.noise_pct, self.seed = noise_pct, seed
        self._noise_step, self._noise = -1, 1.0

    def write_iops(self):
        """Small writes per second at the present wear."""
        size = self.wear.size_bytes
        decline = min(1.0, max(0.0, self.wear.written_bytes / size - 1.0))
        iops = self.fresh_iops * (self.steady_iops / self.fresh_iops) ** decline
        return iops if decline < 1.0 else iops * self._steady_noise()

    def _steady_noise(self):
        step = self.wear.written_bytes * NOISE_STEPS_PER_CAPACITY // self.wear.size_bytes
        if step != self._noise_step:
            spread = self.noise_pct / 100
            self._noise_step = step
            self._noise = 1.0 + random.Random(f"{self.seed}:{step}").uniform(-spread, spread)
        return self._noise

    def write(self, now_s, offset, length):
        """Account for a write; return when it may complete."""
        cost_s = length / self.write_bandwidth
        idle_s = now_s - max(self.writes.next_s, self.reads.next_s)
        # Not before the first request, of which nobody knows how long the drive had waited.
        if max(CATCH_UP_S, self.collect_after_s) < idle_s < float("inf"):
            self.recovered.idle(idle_s - self.collect_after_s)
        if length < STREAM_BYTES:
            iops = self.write_iops()
            # Only what would be slower takes the room.
            iops = self.fresh_iops if iops < self.fresh_iops and self.recovered.take(length) else iops
            cost_s = max(cost_s, 1 / iops)
        else:
            cost_s *= 1 + self.scatter_cost * self.wear.scattered_share
        if self.reads_wait:
            self.reads.admit(now_s, self.reads_wait * cost_s)
        self.wear.write(offset, length)
        return self._done(now_s, self.writes.admit(now_s, cost_s))

    def read(self, now_s, length):
        """Account for a read; return when it may complete."""
        return self._done(now_s, self.reads.admit(now_s, max(1 / self.read_iops, length / self.read_bandwidth)))

    def _done(self, now_s, deadline_s):
        return max(now_s, deadline_s) + self.latency_s if self.latency_s else deadline_s

    def discard(self, offset, length):
        self.wear.discard(offset, length)
