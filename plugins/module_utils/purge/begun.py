# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive's records of its run say of purges that were begun. Pure, and small: the modules that stop a job or let
go of a run need no method for it.
"""

from __future__ import annotations

import typing as t

JournalLine = t.Mapping[str, t.Any]
History = t.Sequence[JournalLine]

# Events of an ATA drive that has, or no longer has, our password (ata.py).
PASSWORD_SET, PASSWORD_CLEARED = "ata_password_set", "ata_password_cleared"
# Methods that go on in the drive whatever becomes of their job.
GOES_ON = (
    "nvme_sanitize_crypto",
    "nvme_sanitize_block",
    "nvme_sanitize_overwrite",
    "nvme_format_crypto",
    "nvme_format_user_data",
    "ata_sanitize_crypto",
    "ata_sanitize_block",
    "scsi_sanitize_crypto",
    "scsi_sanitize_block",
    "scsi_sanitize_overwrite",
    "scsi_format_unit",
)


def has_our_password(history: History) -> bool:
    """Return whether a drive has, or may have, our password."""
    events = [record["event"] for record in history if record.get("event") in (PASSWORD_SET, PASSWORD_CLEARED)]
    return bool(events) and events[-1] == PASSWORD_SET


def last_started(history: History) -> JournalLine | None:
    """Return the start of the purge whose end nobody saw: its job was stopped or died."""
    started = None
    for record in history:
        if record["event"] == "purge_started":
            started = record
        elif record["event"] == "purge" or (record["event"] == "test_finished" and record["ended"] != "interrupted"):
            started = None
    return started


def may_be_running(history: History) -> bool:
    """Return whether a purge may go on in a drive by itself, or left something to be put right: what the drive holds is
    not known.
    """
    started = last_started(history)
    return has_our_password(history) or (started is not None and started["method"] in GOES_ON)
