# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file system of a test that its job could not wipe: what the ledger keeps of it, and what the guard says. Pure.

Nothing on it tells whether somebody mounted it since, so it is refused as any file system is; the words say whose it
was.
"""

from __future__ import annotations

import typing as t

from ..tools import filesystems


def noted(kind: str, identifier: str, run_id: str) -> dict[str, t.Any]:
    """Return what the ledger keeps of it, from before it is made until it is wiped or the drive is purged. reason: why
    it was not wiped.
    """
    return {"kind": kind, "uuid": identifier, "run_id": run_id, "reason": "the run died"}


def described(ledger: t.Mapping[str, t.Any] | None, start: bytes) -> str:
    """Return what lies on a drive, where it is the file system that the ledger knows; "" for any other, or none. start:
    the drive's first SUPERBLOCK_BYTES.
    """
    known, found = (ledger or {}).get("filesystem"), filesystems.superblock(start)
    if not isinstance(known, dict) or found is None or found != (known.get("kind"), known.get("uuid")):
        return ""
    text = "the file system ({0}, UUID {1}) of a test of run {2}, not wiped as {3}; somebody may have used it since"
    return text.format(*found, known.get("run_id"), known.get("reason"))
