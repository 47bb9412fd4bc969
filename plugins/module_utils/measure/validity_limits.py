# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thresholds of a cell's causes (disturbances.py), each with its reason."""

from __future__ import annotations

import typing as t


class Limits(t.NamedTuple):
    """The thresholds, each with its reason; `ssd_validity_limits` may set another."""

    # Of fio's own bytes: a hundredth is below the range that steady state allows by far, and what a monitoring agent
    # reads stays below it.
    other_io_share: float = 0.01
    # One probe of blkid, as udev starts it when a device is closed, reads 1.0 MiB, also of a drive that is too slow for
    # 1 % to allow it: eight of them.
    other_read_bytes: float = 8 << 20
    # No probe writes; a label or a superblock that somebody else's tool updates is a few blocks.
    other_write_bytes: float = 64 << 10
    # No probe discards.
    other_discard_bytes: float = 0
    # IOPS x mean latency against threads x depth: below 0.9 a tenth of the queue was empty, as when submitting takes
    # longer than the drive does.
    queued_min: float = 0.9
    # More than was asked can't be in flight; what is above 1 is the edges of the runtime.
    queued_max: float = 1.05
    # The kernel's own count begins later and ends earlier than fio's: 0.52 was seen on a loop device in memory on a
    # busy host, 0.98 on drives of a millisecond. Where two thirds of the queue were never at the drive it is not the
    # drive that was measured.
    in_flight_min: float = 0.33
    # Tags that the driver keeps for itself (255 of 256) are no shortage.
    queue_limit_min: float = 0.9
    # SATA has 32 tags and no more (31 with older kernels): a depth below is a setting, one above is more than the drive
    # can be asked.
    device_depth: float = 31
    # A thread that never waits for the drive measures the host; a twentieth is lost to its clock and interrupts.
    fio_cpu_max: float = 0.95
    # What a hypervisor, a CPU quota or other processes take from fio is latency that is not the drive's; one in twenty
    # is more than jitter.
    steal_max: float = 0.05
    throttled_max: float = 0.05
    waited_max: float = 0.05
    # What a gap may cost the rate of a drive whose rate falls with its queue: the tolerance of a rate.
    rate_error_max: float = 0.02
    # Of the mean latency, beyond what the host takes of it in quiet rounds: that was 0.4 % at most. A rate loses up to
    # 1.9 times as much, and the p99 was 7 % off at 1 %, 60 % at 3 %.
    host_excess_max: float = 0.01
    # Of a latency at depth 1, with no quiet rounds to compare with: what more is the host's may be most of it.
    host_part_max: float = 0.1
    # CPUs with no idle time to speak of: fio waits for them.
    cpu_idle_min: float = 0.02
    # A drive that idles collects garbage and is faster afterwards; starting fio takes 0.5 s.
    idle_gap_s: float = 5.0
    # Two clocks are read one after the other, and a busy host may stop us in between; no machine sleeps for less.
    suspended_s: float = 1.0
    # Slewing is at most 0.5 ms a second: a jump is somebody setting the clock.
    clock_jump_s: float = 2.0
    # TN-FD-15 (Other I/O Testing Tools) takes a latency above 10 s for an error of the tool.
    stall_s: float = 10.0


def parse(told: t.Mapping[str, float]) -> Limits:
    """Return the limits of a plan; what this version does not know is none."""
    return Limits(**{name: value for name, value in told.items() if name in Limits._fields})
