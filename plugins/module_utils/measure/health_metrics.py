# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what a test did to its drive's health, as metrics of the test, and the default criteria on them. Pure.

None of them has a cell, or is compared with other drives.
"""

from __future__ import annotations

import typing as t

from ..records.attempt import MeasuredSeen
from ..records.health import HealthChange, Wear

Metrics = t.Mapping[str, t.Optional[float]]
MEDIA_ERRORS: t.Final = "media_errors"
LONGEST_IO: t.Final = "longest_io_s"
SPARE: t.Final = "available_spare_pct"


class HealthMetric(t.NamedTuple):
    """A metric of health. text: says it of a drive, with the figure as {0}, or {times}, and the plural as {s}.
    sources: by transport, where it comes from, in Markdown. most: the limit of the default criterion; None: there is
    none.
    """

    text: str
    nvme: str
    sata: str
    sas: str
    most: float | None = None

    def said(self, value: float) -> str:
        """Return what a figure says of a drive."""
        figure = f"{value:.6g}"
        times, plural = ("once", "") if value == 1 else (f"{figure} times", "s")
        return self.text.format(figure, times=times, s=plural)


_AER = "`aer_dev_nonfatal`, `aer_dev_fatal` of its function"
_KERNEL_LOG = "the kernel's log, by PCI address"
_SCSI_LOG = "the kernel's log, by SCSI address"
_FIO = "fio's longest I/O of each cell, less the longest stop of the host"
_GONE = "`/sys/block/<name>` and its `device/state`"
_NONE = "-"

TABLE: t.Mapping[str, HealthMetric] = {
    MEDIA_ERRORS: HealthMetric(
        "it counted {0} more media error{s}",
        "`nvme smart-log`: `media_errors`",
        "`Reported_Uncorrect` and its like, by name, and `Number of Reported Uncorrectable Errors`: the largest rise",
        "error counter log (pages 02h, 03h, 05h): uncorrected errors, the sum of the rises",
        0,
    ),
    "critical_warnings": HealthMetric(
        "it raised {0} critical warning{s}",
        "`nvme smart-log`: `critical_warning`, new bits except temperature",
        _NONE,
        _NONE,
        0,
    ),
    # One that a host, a reset, a format or a sanitize ended is none.
    "failed_self_tests": HealthMetric(
        "it failed {0} self-test{s}",
        "`nvme self-test-log`: new entries with the results 5 to 7",
        "`smartctl -l selftest`: with the results 3 to 8",
        "the same: 3 to 7",
        0,
    ),
    "uncorrected_pcie_errors": HealthMetric(
        "{0} PCI Express error{s} of its own function went uncorrected", _AER, _NONE, _NONE, 0
    ),
    LONGEST_IO: HealthMetric("an I/O took {0} s", _FIO, _FIO, _FIO, 30),
    "controller_resets": HealthMetric("its controller was reset {times}", _KERNEL_LOG, _NONE, _NONE, 0),
    "drive_gone": HealthMetric("the kernel lost it, or has given it up", _GONE, _GONE, _GONE, 0),
    "link_degraded": HealthMetric(
        "its link fell and stayed down",
        "`current_link_speed`, `current_link_width`",
        "`sata_spd`",
        "`negotiated_linkrate`",
        0,
    ),
    # Mostly of a cable, a backplane or an HBA; a drive that keeps I/Os waiting misses LONGEST_IO.
    "link_resets": HealthMetric("its link or device was reset {times}", _NONE, _SCSI_LOG, _SCSI_LOG),
    "io_timeouts": HealthMetric("{0} of its I/Os timed out", _KERNEL_LOG, _SCSI_LOG, _SCSI_LOG),
    "interface_crc_errors": HealthMetric(
        "it counted {0} more CRC error{s} of its interface",
        _NONE,
        "`UDMA_CRC_Error_Count` and its like, by name, and `Number of Interface CRC Errors`",
        _NONE,
    ),
    "unsafe_shutdowns": HealthMetric(
        "it counted {0} more unsafe shutdown{s}",
        "`nvme smart-log`: `unsafe_shutdowns`",
        "`Unexpect_Power_Loss_Ct` and its like, by name",
        _NONE,
    ),
    "corrected_pcie_errors_per_h": HealthMetric(
        "it had {0} corrected PCI Express error{s} an hour", "`aer_dev_correctable` of its function", _NONE, _NONE
    ),
    "throttled_s": HealthMetric(
        "it was throttled for {0} s", "`nvme smart-log`: `thm_temp1_total_time`, `thm_temp2_total_time`", _NONE, _NONE
    ),
    "highest_temperature_c": HealthMetric(
        "it reached {0} °C",
        "samples of `nvme smart-log`",
        "`smartctl`, at both ends; the highest since power-on if it rose",
        "the same",
    ),
    SPARE: HealthMetric("its available spare is {0} %", "`nvme smart-log`: `avail_spare`", _NONE, _NONE),
    "percentage_used": HealthMetric(
        "it has used {0} % of its rated life",
        "`nvme smart-log`: `percent_used`",
        "`Percentage Used Endurance Indicator`; else `Media_Wearout_Indicator` and its like, by name",
        "percentage used endurance indicator",
    ),
    "write_amplification": HealthMetric(
        "its write amplification was {0}",
        "what it wrote to its flash (OCP log C0h, or its vendor's) by what the host wrote",
        "attributes of both, by name",
        _NONE,
    ),
}
# Metrics that a line of the kernel's log stands behind.
OF_KERNEL_LOG = ("controller_resets", "link_resets", "io_timeouts", "drive_gone")
# What a default criterion says.
DEFAULT_CRITERIA: t.Sequence[t.Mapping[str, t.Any]] = [
    {"metric": name, "max": row.most} for name, row in TABLE.items() if row.most is not None
]


def metrics(health: HealthChange | None, wear: Wear | None, longest_io_s: float | None) -> dict[str, float | None]:
    """Return the metrics of a test; none where nobody looked at the drive's health. None: unknown."""
    if health is None:
        return {}
    known: dict[str, float | None] = {
        "critical_warnings": None if health.critical_warning is None else bin(health.critical_warning).count("1"),
        # An I/O that waited for an HBA or a switch, or beside those of others, says nothing of the drive.
        LONGEST_IO: None if health.may_have_waited else longest_io_s,
        "write_amplification": wear.write_amplification if wear else None,
    }
    found = {name: known[name] if name in known else getattr(health, name) for name in TABLE}
    return {name: None if value is None else float(value) for name, value in found.items()}


def worst(metrics: Metrics, earlier: Metrics) -> dict[str, float | None]:
    """Return a test's metrics with those of health as the worst of its attempts. earlier: of those before."""
    found = dict(metrics)
    for name in TABLE:
        known = [value for value in (metrics.get(name), earlier.get(name)) if value is not None]
        if known:
            found[name] = min(known) if name == SPARE else max(known)
    return found


def longest_io_s(seen: MeasuredSeen, ramp_s: float) -> float | None:
    """Return fio's longest I/O of a cell, less the longest stop of the host in the cell. None: unknown.

    A drive works on while its host is stopped, so only the stop at whose end fio sees an I/O makes it longer. One of
    three tells of it: the timer, the time asleep, or fio's clock, which goes on in a virtual machine while ours stands
    still. The last two may be sums of several.
    """
    if seen.longest_s is None or seen.longest_stop_s is None:
        return None
    by_clock_s = (seen.run_s or 0.0) + ramp_s - seen.elapsed_s if seen.elapsed_s else 0.0
    stop_s = max(seen.longest_stop_s, seen.suspended_s or 0.0, by_clock_s)
    return round(max(0.0, seen.longest_s - stop_s), 3)
