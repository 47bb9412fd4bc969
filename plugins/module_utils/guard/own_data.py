# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of our own data: it tells on later nights that what lies on a drive is what we left there, so that it may be erased.

`<state_dir>/drives/<slug>.json`: {schema_version, identity, run_id, state: writing | released, released, samples: [{offset, length, sha256}],
written: {boot_id, diskseq, sectors}}. It counts only while it is a file that root alone may write; whatever is odd makes the data foreign.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..core import files
from ..core.files import SCHEMA_VERSION, now, write_atomic
from ..core.host import BOOT_ID, Host
from ..drive import identity as drive
from .blocks import EDGE_BYTES, SAMPLE_BYTES, Reader, spread
from .facts import RELEASED, WRITING

# Who the drive is, whatever its size, block size and place are now: a format may change those.
_SAME = ("serial", "wwn", "model", "backing_file")
_SAMPLES = 256
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
    if not isinstance(entry, dict) or entry.get("schema_version") != SCHEMA_VERSION or entry.get("state") not in (WRITING, RELEASED):
        return False
    samples = entry.get("samples", [])
    return (
        isinstance(entry.get("identity"), dict)
        and isinstance(entry.get("run_id"), str)
        and isinstance(samples, list)
        and all(isinstance(item, dict) and _are_counts(item.get("offset"), item.get("length")) and isinstance(item.get("sha256"), str) for item in samples)
    )


def _are_counts(*values: Any) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in values)


def compare(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any], reader: Reader) -> Dict[str, Any]:
    """What an entry of `read` says of the drive now: {run_id, state, released, unchanged}. Raises OSError.

    unchanged: released, nothing was written since in the same boot, both ends of the drive as large as it is now are among the samples, and each has its
    hash.
    """
    samples = entry.get("samples") or []
    ends = set(_ends(reader.size_bytes)) <= {(item["offset"], item["length"]) for item in samples}
    known = entry["state"] == RELEASED and ends and not _written_since(host, entry, identity)
    unchanged = known and all(_hash(reader, item["offset"], item["length"]) == item["sha256"] for item in samples)
    return dict(unread(entry), unchanged=unchanged)


def unread(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """The same for a drive that can't be read now: nothing speaks for its data."""
    return {"run_id": entry["run_id"], "state": entry["state"], "released": entry.get("released"), "unchanged": False}


def _written_since(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Whether the kernel itself has written or discarded since; unknown after a reboot or another attach, when only the hashes decide."""
    before, after = entry.get("written"), written(host, identity)
    same = isinstance(before, dict) and before.get("boot_id") == after["boot_id"] and before.get("diskseq") == after["diskseq"]
    return same and before.get("sectors") != after["sectors"]


def written(host: Host, identity: Mapping[str, Any]) -> Dict[str, Any]:
    """How much the kernel has written to the drive since it was attached, and which attachment that is."""
    fields = (host.get("/sys/block/%s/stat" % identity["kernel_name"]) or "").split()
    sectors = [int(fields[place]) for place in (_WRITTEN, _DISCARDED) if place < len(fields) and fields[place].isdigit()]
    return {"boot_id": host.get(BOOT_ID), "diskseq": identity.get("diskseq"), "sectors": sectors}


def begin(host: Host, state_dir: str, identity: Mapping[str, Any], run_id: str) -> Before:
    """Note, before the first destructive step, that this run writes to the drive. Raises OSError."""
    before = Before(state_dir, run_id, read(state_dir, identity), written(host, identity))
    _write(state_dir, identity, {"run_id": run_id, "state": WRITING, "released": None, "samples": []})
    return before


def end(host: Host, before: Before, identity: Mapping[str, Any], handle: int) -> None:
    """Note what we leave on the drive, while it is still held; `handle`: opened with O_DIRECT. Raises OSError.

    A run that wrote nothing leaves nothing of its own there: then the ledger says again what it said before.
    """
    if written(host, identity) != before.written:
        _release(host, before.state_dir, identity, before.run_id, handle)
    elif before.entry is not None:
        _write(before.state_dir, identity, before.entry)
    else:
        os.unlink(path_of(before.state_dir, identity))


def close_left(host: Host, state_dir: str, run_id: str, selectors: Iterable[Any]) -> None:
    """Note what a killed job of this run left on its drives, where nobody holds them. What can't be read stays as it is."""
    for selector in selectors:
        names = drive.find(host, selector)
        identity = drive.identity(host, names[0]) if len(names) == 1 else {}
        entry = read(state_dir, identity) if identity else None
        if entry is None or entry["state"] != WRITING or entry["run_id"] != run_id:
            continue
        with contextlib.suppress(OSError):
            handle = os.open(host.path(identity["path"]), os.O_RDONLY | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC)
            try:
                _release(host, state_dir, identity, run_id, handle)
            finally:
                os.close(handle)


def _release(host: Host, state_dir: str, identity: Mapping[str, Any], run_id: str, handle: int) -> None:
    reader = Reader(handle, identity["size_bytes"], identity["logical_block_size_bytes"])
    samples = [{"offset": offset, "length": length, "sha256": _hash(reader, offset, length)} for offset, length in _places(reader.size_bytes)]
    _write(
        state_dir,
        identity,
        {"run_id": run_id, "state": RELEASED, "released": now(), "samples": samples, "written": written(host, identity)},
    )


def _places(size_bytes: int) -> List[Tuple[int, int]]:
    return _ends(size_bytes) + [(offset, SAMPLE_BYTES) for offset in spread(size_bytes, _SAMPLES)]


def _ends(size_bytes: int) -> List[Tuple[int, int]]:
    return [(0, EDGE_BYTES), (max(0, size_bytes - EDGE_BYTES), EDGE_BYTES)]


def _hash(reader: Reader, offset: int, length: int) -> str:
    return hashlib.sha256(reader.read(offset, length)).hexdigest()


def _write(state_dir: str, identity: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    path = path_of(state_dir, identity)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    kept = {key: identity.get(key) for key in _SAME}
    write_atomic(path, json.dumps(dict(fields, schema_version=SCHEMA_VERSION, identity=kept), indent=1) + "\n")
