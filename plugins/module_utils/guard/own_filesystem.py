# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a file system on a drive is the one that a test of ours made, and nobody has used it since. Pure.

The ledger keeps {kind, uuid} from before it is made, and from when we unmounted it `sha256`, of the drive's first 4 KiB
with its superblock: whoever mounts it for writing after that changes it (mount count and times of ext4, sb_lsn of XFS).
Where our job was killed the kernel unmounted it: then ext4 tells by itself that it was mounted once and unmounted
cleanly; XFS does not tell, and nor does an ext4 that lost power. Those are refused, as any file system is.
"""

from __future__ import annotations

import hashlib
import typing as t

from ..tools import filesystems
from .facts import Facts, add

# What libblkid and our search for copies (structure.py) call it, and its copies.
_NAMES = {"ext4": ("ext4", "ext"), "xfs": ("xfs",)}
PROOF = "filesystem"


def noted(kind: str, identifier: str, start: bytes | None = None) -> dict[str, t.Any]:
    """What the ledger keeps of it. start: the drive's first bytes, once it is unmounted."""
    found = {"kind": kind, "uuid": identifier}
    return {**found, "sha256": hashlib.sha256(start).hexdigest()} if start else found


def is_ours(known: t.Mapping[str, t.Any] | None, start: bytes) -> bool:
    """Whether what the ledger noted lies there, and nobody has mounted it for writing since. start: the drive's first
    bytes.
    """
    seen = filesystems.superblock(start)
    if not known or seen is None or (seen.kind, seen.uuid) != (known.get("kind"), known.get("uuid")):
        return False
    if known.get("sha256"):
        return bool(hashlib.sha256(start).hexdigest() == known["sha256"])
    return seen.clean is True and seen.mounts is not None and seen.mounts <= 1


def prove(facts: Facts, ledger: t.Mapping[str, t.Any] | None, start: bytes) -> bool:
    """Let signatures of ours speak no longer against a drive, where they are nothing else: its data is then unsigned,
    and proved to be ours.
    """
    known = (ledger or {}).get("filesystem")
    if facts.own_data is None or not facts.signatures or not isinstance(known, dict) or not is_ours(known, start):
        return False
    if any(text.partition(",")[0] not in _NAMES.get(str(known.get("kind")), ()) for text in facts.signatures):
        return False
    facts.signatures.clear()
    add(facts.unsigned, "it holds the file system {uuid}, which a test made".format(**known))
    facts.own_data["proved"] = PROOF
    return True
