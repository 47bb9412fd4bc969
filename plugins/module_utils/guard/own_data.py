# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of drives that we wrote to. That a drive is in it proves nothing yet: somebody may have written since.

`<state_dir>/drives/<slug>.json`: {schema_version, identity, run_id, state: writing | released | evidence, released,
reason, blank, written: {boot_id, diskseq, sectors, iostats}, sentinels: [{offset, length, sha256}], filesystem: that a
test of ours made (own_filesystem) or null}. It counts only
while it is a file that root alone may write; one that others could have changed, or that is damaged, may have kept a
drive as evidence, so it is told (`Untrusted`) and never passed over. The data is ours only where one of two things
proves it: the kernel counted no write since we let go of the drive (`untouched`), or the look found nothing but blank
blocks and fio's fill.
"""

from __future__ import annotations

import hashlib
import json
import os
from types import MappingProxyType
from typing import Any, Collection, Mapping, NamedTuple, Sequence

from ..core import files, trust
from ..core.files import SCHEMA_VERSION, now, write_atomic
from ..core.host import BOOT_ID, Host
from ..drive.identity import may_be_one
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
    entry: dict[str, Any] | None
    written: dict[str, Any]


def path_of(state_dir: str, identity: Mapping[str, Any]) -> str:
    """The drive's file: two namespaces of one controller share a serial, so every name counts; long ones are cut."""
    name = "_".join(str(identity[key]) for key in ("serial", "wwn", "backing_file") if identity.get(key))
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return os.path.join(state_dir, "drives", f"{files.slug(name)[:_LONGEST_NAME]}-{digest}.json")


class Untrusted(ValueError):
    """What the ledger said of a drive can't be known. problems: texts that name the file or folder."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def read(state_dir: str | None, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The drive's entry; None where there is none. Raises Untrusted where it is not root's alone, damaged, or evidence
    of what may be another drive.
    """
    if not state_dir:
        return None
    path = path_of(state_dir, identity)
    _refuse_evidence_elsewhere(path, identity)
    wrong = [*(trust.problems(state_dir) if os.path.lexists(path) else ()), *_not_roots(path)]
    if wrong:
        raise Untrusted(wrong)
    entry = _load(path)
    if entry is None:
        return None
    differs = [
        "{} was {}, is {}".format(key, entry["identity"].get(key), identity.get(key))
        for key in _SAME
        if entry["identity"].get(key) != identity.get(key)
    ]
    if differs and keeps_evidence(entry):
        raise Untrusted(
            [
                "{} keeps evidence of run {} for a drive that may be another one: {}".format(
                    path, entry["run_id"], ", ".join(differs)
                )
            ]
        )
    return None if differs else entry


def _refuse_evidence_elsewhere(own_path: str, identity: Mapping[str, Any]) -> None:
    """Raise Untrusted for evidence of what may be this drive, from a place that told more of its names, or others: the
    file's name is made of them.
    """
    folder, (serial, wwn) = os.path.dirname(own_path), (identity.get("serial"), identity.get("wwn"))
    parts = [files.slug(str(name))[:_LONGEST_NAME] for name in (serial, wwn) if name]
    try:
        names = sorted(name for name in os.listdir(folder) if any(part in name for part in parts))
    except OSError:  # no folder yet; what keeps it from being read is told with the entry's own file
        return
    for path in (os.path.join(folder, name) for name in names):
        try:
            entry = None if path == own_path or _not_roots(path) else _load(path)
        except Untrusted:  # of that drive, and told there
            continue
        if entry is not None and keeps_evidence(entry) and may_be_one(entry["identity"], identity):
            raise Untrusted([f"{path} keeps evidence of run {entry['run_id']} for a drive that may be this one"])


def keeps_evidence(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of `read` keeps the drive as evidence, also that of a job that died with a reason noted."""
    return entry["state"] == EVIDENCE or bool(entry["state"] == WRITING and entry.get("reason"))


def _not_roots(path: str) -> list[str]:
    """Why others than root may have written an entry, or taken one away."""
    return trust.alone_problems(os.path.dirname(path), folder=True) + trust.alone_problems(path)


def _load(path: str) -> dict[str, Any] | None:
    """An entry; None where there is none. Raises Untrusted for what is none of ours."""
    try:
        entry = files.read_json(path)
    except (OSError, ValueError) as error:
        raise Untrusted([str(error) if path in str(error) else f"{path} cannot be read: {error}"]) from None
    if entry is not None and not _is_entry(entry):
        raise Untrusted([f"{path} is not a ledger entry of this version"])
    return entry


# What an entry need not have; null says as much.
_NONE = type(None)
_KINDS = {
    "released": (str, _NONE),
    "reason": (str, _NONE),
    "written": (dict, _NONE),
    "blank": (bool, _NONE),
    "removed": (bool, _NONE),
    "filesystem": (dict, _NONE),
}


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("schema_version") != SCHEMA_VERSION or entry.get("state") not in STATES:
        return False
    samples = entry.get("sentinels", [])
    return (
        all(isinstance(entry.get(key), kinds) for key, kinds in _KINDS.items())
        and isinstance(entry.get("identity"), dict)
        and isinstance(entry.get("run_id"), str)
        and isinstance(samples, list)
        and all(
            isinstance(item, dict)
            and _are_counts(item.get("offset"), item.get("length"))
            and isinstance(item.get("sha256"), str)
            for item in samples
        )
    )


def _are_counts(*values: Any) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in values)


def known(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry of `read` says: {run_id, state, released, reason, proved}, and removed: true where the host no
    longer knows the run.

    proved: nothing does, until the caller finds otherwise.
    """
    told = {
        "run_id": entry["run_id"],
        "state": entry["state"],
        "released": entry.get("released"),
        "reason": str(entry.get("reason") or ""),
        "proved": "",
    }
    return dict(told, removed=True) if entry.get("removed") else told


def untouched(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Whether the kernel itself vouches that nobody wrote since we let go: same boot, same attachment, counters on and
    unchanged.

    Never for a file's loop device, since its file can be written without it; nor for an entry that says `writing`: we
    know not who wrote last; nor for a drive that we left blank: what is on it now came there, if only past the counters
    (nvme write, sg_dd).
    """
    before, now_written = entry.get("written"), written(host, identity)
    if entry["state"] == WRITING or entry.get("blank") or identity.get("backing_file") or not isinstance(before, dict):
        return False
    told = all(now_written[key] for key in ("boot_id", "diskseq", "sectors", "iostats"))
    return told and all(before.get(key) == value for key, value in now_written.items())


def touched(host: Host, entry: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Whether the kernel itself counted writes since we let go, in the same boot and attachment: then nothing that is
    seen by chance proves otherwise.
    """
    before, after = entry.get("written"), written(host, identity)
    if entry["state"] == WRITING or not isinstance(before, dict):
        return False
    same = all(before.get(key) == after[key] for key in ("boot_id", "diskseq"))
    return same and before.get("sectors") != after["sectors"]


def written(host: Host, identity: Mapping[str, Any]) -> dict[str, Any]:
    """How much the kernel has written to the drive since it was attached, which attachment that is, and whether it
    counts.
    """
    fields = (host.get("/sys/block/{}/stat".format(identity["kernel_name"])) or "").split()
    sectors = [
        int(fields[place]) for place in (_WRITTEN, _DISCARDED) if place < len(fields) and fields[place].isdigit()
    ]
    iostats = host.get("/sys/block/{}/queue/iostats".format(identity["kernel_name"])) == "1"
    return {"boot_id": host.get(BOOT_ID), "diskseq": identity.get("diskseq"), "sectors": sectors, "iostats": iostats}


def begin(host: Host, state_dir: str, identity: Mapping[str, Any], run_id: str, reason: str = "") -> Before:
    """Note, before the first destructive step, that this run writes to the drive. reason: as `note`. Raises OSError,
    and Untrusted.
    """
    before = Before(state_dir, run_id, read(state_dir, identity), written(host, identity))
    note(before, identity, reason, filesystem=(before.entry or {}).get("filesystem"))
    return before


def note(
    before: Before,
    identity: Mapping[str, Any],
    reason: str,
    sentinels: Mapping[int, bytes] = MappingProxyType({}),
    filesystem: Mapping[str, Any] | None = None,
) -> None:
    """Note what holds should this job die here. Raises OSError.

    reason: why the drive is to be kept as evidence by then; sentinels: the blocks that a purge is about to be proved
      with ({offset: data}), which are ours; filesystem: that of ours which lies on it (own_filesystem).
    """
    listed = [
        {"offset": offset, "length": len(data), "sha256": fingerprint(data)}
        for offset, data in sorted(sentinels.items())
    ]
    _write(
        before.state_dir,
        identity,
        {
            "run_id": before.run_id,
            "state": WRITING,
            "released": None,
            "reason": reason,
            "sentinels": listed,
            "filesystem": filesystem,
        },
    )


def give_up(before: Before, identity: Mapping[str, Any], reason: str) -> None:
    """Note why we let go of a drive in the middle, without touching it: nobody knows what it holds, and what was begun
    may yet be done. Raises OSError.
    """
    try:
        noted = read(before.state_dir, identity) or {}
    except Untrusted:  # what is noted now says that nobody may erase the drive
        noted = {}
    fields = {
        "run_id": before.run_id,
        "state": WRITING,
        "released": None,
        "reason": reason,
        "sentinels": noted.get("sentinels", []),
        "filesystem": noted.get("filesystem"),
    }
    _write(before.state_dir, identity, fields)


def end(
    host: Host,
    before: Before,
    identity: Mapping[str, Any],
    reason: str = "",
    blank: bool = False,
    filesystem: Mapping[str, Any] | None = None,
) -> None:
    """Note that we let go of the drive, while it is still held and nobody of ours writes any more. Raises OSError.

    reason: why it is to be kept as evidence; "": it is not. blank: it was seen to hold nothing after our last write.
    A run that wrote nothing leaves nothing of its own: then the ledger says again what it said before; as evidence it
    is kept all the same, and what was written before then is vouched for by what was said of it.
    """
    left = written(host, identity)
    if reason and left == before.written and left["iostats"]:
        earlier = (before.entry or {}).get("written")
        fields = {
            "run_id": before.run_id,
            "state": EVIDENCE,
            "released": now(),
            "reason": reason,
            "blank": False,
            "written": earlier,
            "filesystem": filesystem,
        }
        _write(before.state_dir, identity, fields)
    elif left != before.written or not left["iostats"]:
        state = EVIDENCE if reason else RELEASED
        fields = {
            "run_id": before.run_id,
            "state": state,
            "released": now(),
            "reason": reason,
            "blank": blank,
            "written": left,
            "filesystem": filesystem,
        }
        _write(before.state_dir, identity, fields)
    elif before.entry is not None:
        _write(before.state_dir, identity, before.entry)
    else:
        os.unlink(path_of(before.state_dir, identity))


def close(state_dir: str, run_id: str, still_written: Collection[str] = (), removed: bool = False) -> None:
    """Note that a run is over which died while it wrote: from now on only the content can prove what lies there. Raises
    OSError.

    still_written: files (`path_of`) of drives in which something of the run goes on by itself. removed: the host is
      about to forget the run, so that
    another of the same id is no continuation of it, for which its evidence would not count.
    """
    folder = os.path.join(state_dir, "drives")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if path not in still_written:
            close_one(path, run_id, removed)


def close_one(path: str, run_id: str, removed: bool = False) -> None:
    """As `close`, for one drive's file. What can't be trusted stays as it is, for people to see: to write it again
    would make it root's.
    """
    try:
        entry = None if _not_roots(path) else _load(path)
    except Untrusted:
        return
    if entry is None or entry["run_id"] != run_id:
        return
    closed = dict(entry)
    if entry["state"] == WRITING:
        closed.update(state=EVIDENCE if entry.get("reason") else RELEASED, released=now(), written=None)
    if removed:
        closed["removed"] = True
    if closed != entry:
        write_atomic(path, json.dumps(closed, indent=1) + "\n")


def fingerprint(data: bytes) -> str:
    """How the ledger names a block's data."""
    return hashlib.sha256(data).hexdigest()


def _write(state_dir: str, identity: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    path = path_of(state_dir, identity)
    files.make_folders(os.path.dirname(path))
    kept = {key: identity.get(key) for key in _SAME}
    write_atomic(path, json.dumps(dict(fields, schema_version=SCHEMA_VERSION, identity=kept), indent=1) + "\n")
