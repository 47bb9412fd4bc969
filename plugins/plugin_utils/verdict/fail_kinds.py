# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails a drive: the words of the reason, what they mean, and what to do."""

from __future__ import annotations

_SLOT = "Seat the drive again, or try it in another slot or with another cable: "
_KEPT = "the drive is kept as evidence until release_evidence in its entry names the run."
_OWN_LOGS = f"Look at the drive's own logs, which the run kept, and update its firmware; replace it: {_KEPT}"
_NO_LIMIT = "No default limit: a remark, unless ssd_health_criteria has one."
# Of each metric of a drive's health that misses a limit: what it means, and what to do.
OF_HEALTH = {
    "media_errors": ("reads failed, or needed more than the drive's own correction", _OWN_LOGS),
    "critical_warnings": ("the drive says of itself that it is read-only, worn out or unreliable", _OWN_LOGS),
    "uncorrected_pcie_errors": (
        "errors between the drive and its slot that the link did not correct",
        f"{_SLOT}where they go along, they are the drive's.",
    ),
    "longest_io_s": (
        "an I/O took so long that an application would have given it up",
        "Look at the kernel's log and the drive's firmware. In virtual machines it may be the hypervisor's storage: "
        "there set ssd_health_criteria to none or a list.",
    ),
    "controller_resets": (
        "the kernel reset the drive's NVMe controller, as a rule because an I/O timed out",
        f"Update the firmware, and try another slot; replace the drive if it goes on: {_KEPT}",
    ),
    "drive_gone": (
        "the kernel lost the drive, or gave it up",
        f"{_SLOT}where the fault goes along, replace the drive. A power cycle may bring it back.",
    ),
    "link_degraded": (
        "the drive's own link ended slower or narrower than it began",
        f"{_SLOT}where the fault goes along, it is the drive's.",
    ),
    "link_resets": (
        "the link of a SATA or SAS drive was reset; mostly it is the cable, the backplane or the HBA",
        f"{_SLOT}interface_crc_errors that rise speak for the cable. {_NO_LIMIT}",
    ),
    "io_timeouts": ("I/Os timed out in the kernel", f"Look at the kernel's log and the drive's firmware. {_NO_LIMIT}"),
    "interface_crc_errors": (
        "data was damaged between the drive and its HBA",
        f"Change the cable or slot. {_NO_LIMIT}",
    ),
    "unsafe_shutdowns": ("the drive lost its power", f"Look at the power supply and the backplane. {_NO_LIMIT}"),
    "corrected_pcie_errors_per_h": (
        "the link to the drive corrects many errors",
        f"{_SLOT}they are no fault of data. {_NO_LIMIT}",
    ),
    "throttled_s": ("the drive slowed down because of heat", f"Cool it: fans, blanks, neighbours. {_NO_LIMIT}"),
    "highest_temperature_c": ("the drive was hot", f"Cool it: fans, blanks, neighbours. {_NO_LIMIT}"),
    "available_spare_pct": ("few spare blocks are left", f"Replace the drive. {_NO_LIMIT}"),
    "percentage_used": ("the drive has used up much of its rated life", f"Replace the drive. {_NO_LIMIT}"),
    "write_amplification": (
        "the drive wrote much more to its flash than the host wrote to it",
        f"Compare it with others of its model and firmware. {_NO_LIMIT}",
    ),
}
WRONG_BLOCKS, SELF_TEST_FAILED = "wrong blocks", "self-test failed"
# What else fails a drive: the words, the cause in a headline, what it means, what to do.
OTHER_FAILS = (
    (
        "not read back as written",
        WRONG_BLOCKS,
        "the drive returned other data than was written to it",
        f"Never use it; look at `first` of the record for what was found. Others like it and its firmware are suspect "
        f"too; {_KEPT}",
    ),
    (
        "self-test failed: ",
        SELF_TEST_FAILED,
        "the drive's own self-test, which the run started, found a fault",
        _OWN_LOGS,
    ),
    (
        "(criterion …)",
        "… below its limit",
        "a figure misses a limit of ssd_criteria",
        "Compare it with the others of its model: where all miss it, look at the host and at the limit.",
    ),
)
