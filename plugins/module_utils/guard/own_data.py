# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of drives that we wrote to. That a drive is in it proves nothing yet: somebody may have written since.

`<state_dir>/drives/<slug>.json`: {schema_version, identity, run_id, state: writing | released | evidence, released, reason, blank,
written: {boot_id, diskseq, sectors, iostats}, sentinels: [{offset, length, sha256}]}. It counts only while it is a file that root alone may
write. The data is ours only where one of two things proves it: the kernel counted no write since we let go of the drive (`untouched`), or the look
found nothing but blank blocks and fio's fill.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
from types import MappingProxyType
from typing import Any, Collection, Dict, Mapping, NamedTuple, Optional

from ..core import files
from ..core.files import SCHEMA_VERSION, now, write_atomic
from ..core.host import BOOT_ID, Host
from .facts import EVIDENCE, RELEASED, STATES, WRITING

# Who the drive is, whatever its size, block size and place are now: a format may change those.
_SAME = ("serial", "wwn", "model", "backing_file")
_LONGEST_NAME = 80
# /sys/block/*/stat: sectors written and discarded since the drive was attached (Documentation/block/stat.rst).
_WRITTEN, _DISCARDED = 6, 13


class Before(NamedTuple):
    """What the ledger said, and how much had been written, when a run began to write."""

    state_dir: str
    run_id: str
    entry: Optional[Dict[str, Any]]
    written: Dict[str, Any]


def path_of(state_dir: str, identity: Mapping[str, Any]) -> str:
    """The drive's file: two namespaces of one controller share a serial, so every name counts; long ones are cut."""
    name = "_".join(str(identity[key]) for key in ("serial", "wwn", "backing_file") if identity.get(key))
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return os.path.join(state_dir, "drives", "%s-%s.json" % (files.slug(name)[:_LONGEST_NAME], digest))


def read(state_dir: Optional[str], identity: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """The drive's entry; None where there is none that can be trusted: not root's alone, damaged, or of another drive."""
    if not state_dir:
        return None
    path = path_of(state_dir, identity)
    try:
        places = (os.lstat(path), os.lstat(os.path.dirname(path)), os.stat(state_dir))
        if not all(_only_root_writes(place) for place in places):
            return None
        with open(path) as source:
            entry = json.load(source)
    except (OSError, ValueError, RecursionError):
        return None
    return entry if _is_entry(entry) and all(entry["identity"].get(key) == identity.get(key) for key in _SAME) else None


def _only_root_writes(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("schema_version") != SCHEMA_VERSION or entry.get("state") not in STATES:
        return False
    samples = entry.get("sentinels", [])
    return (
        isinstance(entry.get("identity"), dict)
        and isinstance(entry.get("run_id"), str)
        and isinstance(samples, list)
        and all(isinstance(item, dict) and _are_counts(item.get("offset"), item.get("length")) and isinstance(item.get("sha256"), str) for item in samples)
    )


def _are_counts(*values: Any) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in values)


def known(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """What an entry of `read` says: {run_id, state, released, reason, proved}, and removed: true where the host no longer knows the run.

    proved: nothing does, until the caller finds otherwise.
    """
    told = {"run_id": entry["run_id"], "state": entry["state"], "released": entry.get("released"), "reason": str(entry.get("reason") or ""), "proved": ""}
    return dict(told, removed=True) if entry.get("removed") else told


def untouched(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Whether the kernel itself vouches that nobody wrote since we let go: same boot, same attachment, counters on and unchanged.

    Never for a file's loop device, since its file can be written without it; nor for an entry that says `writing`: we know not who wrote last;
    nor for a drive that we left blank: what is on it now came there, if only past the counters (nvme write, sg_dd).
    """
    before, now_written = entry.get("written"), written(host, identity)
    if entry["state"] == WRITING or entry.get("blank") or identity.get("backing_file") or not isinstance(before, dict):
        return False
    told = all(now_written[key] for key in ("boot_id", "diskseq", "sectors", "iostats"))
    return told and all(before.get(key) == value for key, value in now_written.items())


def touched(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Whether the kernel itself counted writes since we let go, in the same boot and attachment: then nothing that is seen by chance proves otherwise."""
    before, after = entry.get("written"), written(host, identity)
    same = entry["state"] != WRITING and isinstance(before, dict) and all(before.get(key) == after[key] for key in ("boot_id", "diskseq"))
    return same and before.get("sectors") != after["sectors"]


def written(host: Host, identity: Mapping[str, Any]) -> Dict[str, Any]:
    """How much the kernel has written to the drive since it was attached, which attachment that is, and whether it counts."""
    fields = (host.get("/sys/block/%s/stat" % identity["kernel_name"]) or "").split()
    sectors = [int(fields[place]) for place in (_WRITTEN, _DISCARDED) if place < len(fields) and fields[place].isdigit()]
    iostats = host.get("/sys/block/%s/queue/iostats" % identity["kernel_name"]) == "1"
    return {"boot_id": host.get(BOOT_ID), "diskseq": identity.get("diskseq"), "sectors": sectors, "iostats": iostats}


def begin(host: Host, state_dir: str, identity: Mapping[str, Any], run_id: str, reason: str = "") -> Before:
    """Note, before the first destructive step, that this run writes to the drive. reason: as `note`. Raises OSError."""
    before = Before(state_dir, run_id, read(state_dir, identity), written(host, identity))
    note(before, identity, reason)
    return before


def note(before: Before, identity: Mapping[str, Any], reason: str, sentinels: Mapping[int, bytes] = MappingProxyType({})) -> None:
    """Note what holds should this job die here. Raises OSError.

    reason: why the drive is to be kept as evidence by then; sentinels: the blocks that a purge is about to be proved with ({offset: data}), which are ours.
    """
    listed = [{"offset": offset, "length": len(data), "sha256": sha256(data)} for offset, data in sorted(sentinels.items())]
    _write(before.state_dir, identity, {"run_id": before.run_id, "state": WRITING, "released": None, "reason": reason, "sentinels": listed})


def give_up(before: Before, identity: Mapping[str, Any], reason: str) -> None:
    """Note why we let go of a drive in the middle, without touching it: nobody knows what it holds, and what was begun may yet be done. Raises OSError."""
    noted = read(before.state_dir, identity) or {}
    fields = {"run_id": before.run_id, "state": WRITING, "released": None, "reason": reason, "sentinels": noted.get("sentinels", [])}
    _write(before.state_dir, identity, fields)


def end(host: Host, before: Before, identity: Mapping[str, Any], reason: str = "", blank: bool = False) -> None:
    """Note that we let go of the drive, while it is still held and nobody of ours writes any more. Raises OSError.

    reason: why it is to be kept as evidence; "": it is not. blank: it was seen to hold nothing after our last write.
    A run that wrote nothing leaves nothing of its own: then the ledger says again what it said before; as evidence it is kept all the same, and what
    was written before then is vouched for by what was said of it.
    """
    left = written(host, identity)
    if reason and left == before.written and left["iostats"]:
        earlier = (before.entry or {}).get("written")
        fields = {"run_id": before.run_id, "state": EVIDENCE, "released": now(), "reason": reason, "blank": False, "written": earlier}
        _write(before.state_dir, identity, fields)
    elif left != before.written or not left["iostats"]:
        state = EVIDENCE if reason else RELEASED
        fields = {"run_id": before.run_id, "state": state, "released": now(), "reason": reason, "blank": blank, "written": left}
        _write(before.state_dir, identity, fields)
    elif before.entry is not None:
        _write(before.state_dir, identity, before.entry)
    else:
        os.unlink(path_of(before.state_dir, identity))


def close(state_dir: str, run_id: str, still_written: Collection[str] = (), removed: bool = False) -> None:
    """Note that a run is over which died while it wrote: from now on only the content can prove what lies there. Raises OSError.

    still_written: files (`path_of`) of drives in which something of the run goes on by itself. removed: the host is about to forget the run, so that
    another of the same id is no continuation of it, for which its evidence would not count.
    """
    folder = os.path.join(state_dir, "drives")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if path not in still_written:
            close_one(path, run_id, removed)


def close_one(path: str, run_id: str, removed: bool = False) -> None:
    """As `close`, for one drive's file."""
    try:
        with open(path) as source:
            entry = json.load(source)
    except (OSError, ValueError, RecursionError):
        return
    if not _is_entry(entry) or entry["run_id"] != run_id:
        return
    closed = dict(entry)
    if entry["state"] == WRITING:
        closed.update(state=EVIDENCE if entry.get("reason") else RELEASED, released=now(), written=None)
    if removed:
        closed["removed"] = True
    if closed != entry:
        write_atomic(path, json.dumps(closed, indent=1) + "\n")


def sha256(data: bytes) -> str:
    """How the ledger names a block's data."""
    return hashlib.sha256(data).hexdigest()


def _write(state_dir: str, identity: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    path = path_of(state_dir, identity)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    kept = {key: identity.get(key) for key in _SAME}
    write_atomic(path, json.dumps(dict(fields, schema_version=SCHEMA_VERSION, identity=kept), indent=1) + "\n")
