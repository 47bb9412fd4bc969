# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails a drive: the words of the reason, what they mean, and what to do."""

from __future__ import annotations

_SLOT = "Reseat the drive, or try it in another slot or with another cable; "
_MOVES = "a fault that moves with it is the drive's."
_COOL = "Improve the airflow: fans, blanking panels, hot neighbours."
_KEPT = "the drive is kept as evidence until release_evidence in its entry names the run."
_OWN_LOGS = (
    "Look at the drive's own logs (on its page of the report). Replace it, or update its firmware where that mends "
    f"it; {_KEPT}"
)
_NO_LIMIT = "No default limit: it fails a drive only where ssd_health_criteria has one."
# Of each metric of a drive's health that misses a limit: what it means, and what to do.
OF_HEALTH = {
    "media_errors": ("reads failed, or needed more than the drive's own correction", _OWN_LOGS),
    "critical_warnings": (
        "the drive warns of itself: spare too low, unreliable, read-only, or its backup of the cache failed",
        _OWN_LOGS,
    ),
    "failed_self_tests": (
        "a self-test found the drive faulty, whoever started it",
        f"smartctl -l selftest, or nvme self-test-log, tells in which part. {_OWN_LOGS}",
    ),
    "uncorrected_pcie_errors": (
        "errors between the drive and its slot that the link did not correct",
        f"{_SLOT}{_MOVES}",
    ),
    "longest_io_s": (
        "an I/O took longer than the kernel or an application waits for one",
        "Look at the kernel's log; update the firmware, and replace the drive if it happens again. In virtual machines "
        "it may be the hypervisor's storage: there set ssd_health_criteria to none or a list.",
    ),
    "controller_resets": (
        "the kernel reset the drive's NVMe controller, as a rule because an I/O timed out",
        f"Update the firmware, and try another slot; replace the drive if it happens again; {_KEPT}",
    ),
    "drive_gone": (
        "the kernel lost the drive, or gave it up",
        f"A power cycle may bring it back. {_SLOT}{_MOVES}",
    ),
    "link_degraded": (
        "the drive's own link ended slower or narrower than it began",
        f"{_SLOT}{_MOVES}",
    ),
    "link_resets": (
        "the link of a SATA or SAS drive was reset; mostly it is the cable, the backplane or the HBA",
        f"{_SLOT}rising interface_crc_errors speak for the cable. {_NO_LIMIT}",
    ),
    "io_timeouts": ("I/Os timed out in the kernel", f"Look at the kernel's log and the drive's firmware. {_NO_LIMIT}"),
    "interface_crc_errors": (
        "data was damaged between the drive and its HBA, and sent again",
        f"Replace the cable, or try another slot. {_NO_LIMIT}",
    ),
    "unsafe_shutdowns": (
        "the drive lost its power without being told before",
        f"Look at the power supply and the backplane; a power cycle during the run counts too. {_NO_LIMIT}",
    ),
    "corrected_pcie_errors_per_h": (
        "the link to the drive corrects many errors",
        f"No data is lost by them. {_SLOT}{_MOVES} {_NO_LIMIT}",
    ),
    "throttled_s": ("the drive slowed down because of heat", f"{_COOL} {_NO_LIMIT}"),
    "highest_temperature_c": ("the drive was hot", f"{_COOL} {_NO_LIMIT}"),
    "available_spare_pct": ("few spare blocks are left", f"Replace the drive. {_NO_LIMIT}"),
    "percentage_used": ("the drive has used up much of its rated life", f"Plan its replacement. {_NO_LIMIT}"),
    "write_amplification": (
        "the drive wrote much more to its flash than the host wrote to it",
        f"Compare it with others of its model and firmware. {_NO_LIMIT}",
    ),
}
WRONG_BLOCKS, SELF_TEST_FAILED, UNREADABLE = "wrong blocks", "self-test failed", "unreadable blocks"
POWER_CUT = "lost at a power cut"
# What else fails a drive: the words, the cause in a headline, what it means, what to do.
OTHER_FAILS = (
    (
        "not read back as written",
        WRONG_BLOCKS,
        "the drive returned other data than was written to it",
        f"Take it out of use: it loses data. `integrity` of the test's record has the first of these blocks, and what "
        f"they held. Suspect others of its model and firmware too; {_KEPT}",
    ),
    (
        "and lost (in … of … cuts",
        POWER_CUT,
        "what the drive had acknowledged, and flushed, was gone after a power cut",
        "Do not use it, nor its model and firmware, where the power may go. [power-cut.md](power-cut.md#verdict) has "
        f"what each sentence means; {_KEPT}",
    ),
    (
        "the drive did not come back after cut",
        POWER_CUT,
        "the host is back, and the drive is not",
        f"Reseat it once for its logs, then take it out of use; {_KEPT}",
    ),
    (
        "claims power-loss protection",
        POWER_CUT,
        "a drive that says that it needs no flush lost what it had acknowledged",
        f"Treat it as one with a volatile cache, and tell its maker; {_KEPT}",
    ),
    (
        "self-test failed: ",
        SELF_TEST_FAILED,
        "the drive's own self-test, which the run started, found a fault",
        _OWN_LOGS,
    ),
    (
        "unreadable block",
        UNREADABLE,
        "a drive in service could not read blocks that a scrub came by",
        "What lay there is lost, unless a mirror or a backup has it: have the file system or array check itself, and "
        "replace the drive. `scrub` of the test's record has the first places.",
    ),
    (
        "(criterion …)",
        "… above its limit, … below its limit",
        "a figure misses a limit of ssd_criteria",
        "Compare it with the others of its model: where all miss it, doubt the limit; where a host's do, the host.",
    ),
)
