# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be alike before a figure of one run is compared with that of another: the drive's format and link, the
engine, the test's definition. Pure.

The firmware is none of it: what it changed is what a comparison is for.
"""

from __future__ import annotations

import functools
import json
import re
import typing as t

from ...module_utils.machine.pcie import link_text
from ...module_utils.run.digests import digest
from ..common import cell_names

# What makes two tests of one name different ones; title, source and origin do not.
COMPARED = (
    "purge",
    "precondition",
    "active_range_pct",
    "active_range_max_bytes",
    "rounds",
    "steady_state",
    "tracked",
    "after_steady_rounds",
    "latency_targets_us",
    "last_rounds",
    "write_cache",
    "refill_buffers",
    "zoned",
    "cell_order",
    "filesystem",
    "array",
    "integrity",
    "self_test",
    "in_service",
    "scrub",
    "cells",
    "points",
    "runtimes_s",
)
# Of a drive in a run, with what people call them; the load is of a test.
NAMES = {
    "model": "model",
    "capacity_bytes": "capacity",
    "lba_bytes": "LBA format",
    "metadata_bytes": "metadata of a block",
    "link": "link",
    "engine": "engine",
    "preferred_write_bytes": "preferred write size",
    "load": "load",
}
DEFINITION = "definition"
# Told, and no reason not to compare: each drive keeps what it does alone where the host found the number.
AT_ONCE = "parallel_drives"

Mapping = t.Mapping[str, t.Any]


def of_drive(asked: Mapping, identity: Mapping, tests: t.Collection[Mapping] = ()) -> dict[str, t.Any]:
    """NAMES of a drive, but for what is unknown. asked: its entry in run.json. tests: its test records, with the `link`
    of their samples where that is known.
    """
    found = {
        "model": identity.get("model"),
        "capacity_bytes": identity.get("size_bytes"),
        "lba_bytes": identity.get("logical_block_size_bytes"),
        "metadata_bytes": _metadata_bytes(identity, tests),
        "link": link(identity, tests),
        "engine": asked.get("engine"),
        "preferred_write_bytes": asked.get("preferred_write_bytes"),
    }
    return {name: value for name, value in found.items() if _is_known(name, value)}


def link(identity: Mapping, tests: t.Iterable[Mapping]) -> str:
    """Return how a drive is connected: as its first sample of the run says it, "8 GT/s x4", else its transport."""
    sampled = [(str(test.get("started") or ""), str(test["link"])) for test in tests if test.get("link")]
    return min(sampled)[1] if sampled else str(identity.get("transport") or "")


def link_of_sample(sample: Mapping) -> str | None:
    """Return the link that a sample of a journal saw; None where it saw none."""
    if sample.get("link_width"):
        return link_text(sample.get("link_speed_gts"), sample["link_width"])
    return f"{sample['link_rate_gbit_s']:g} Gb/s" if sample.get("link_rate_gbit_s") else None


def _metadata_bytes(identity: Mapping, tests: t.Iterable[Mapping]) -> int | None:
    """Beside each block (512+8): as the kernel says, or, before Linux 6.8, as the drive did after its purge."""
    formats = [identity, *((test.get("purge") or {}).get("lba_format_after") or {} for test in tests)]
    told = [found.get("metadata_bytes") for found in formats if isinstance(found, dict)]
    known = [size for size in told if isinstance(size, int) and not isinstance(size, bool)]
    return next((size for size in known if 0 <= size < 1 << 16), None)


def _is_known(name: str, value: t.Any) -> bool:
    return bool(value) or (name == "metadata_bytes" and value == 0)


def definitions(run: Mapping) -> dict[str, dict[str, str]]:
    """{test: {key of COMPARED: digest}} of a run.json."""
    return {
        name: {key: digest(about[key]) for key in COMPARED if key in about}
        for name, about in (run.get("tests") or {}).items()
    }


def load(record: Mapping) -> str:
    """Return what the host gave a test: of how many drives its array was ("array of 4 drives"), and the threads and
    depth that its cells had by the CPUs (per_cpu): "4 threads x depth 64"; "": they are those of its definition.

    Not of random cells with threads: auto: what is in flight together is the same, and a drive that needs more threads
    is still a peer. Several sequential streams are another load than one.
    """
    members = (record.get("array") or {}).get("members") or []
    told = {f"array of {len(members)} drives"} if members else set()
    told |= {
        f"{item['threads']} threads x depth {item['queue_depth']}"
        for item in record.get("loads") or []
        if not (cell_names.has_auto_threads(item["cell"]) and item["cell"].startswith("rand-"))
    }
    return ", ".join(sorted(told))


def conditions_key(drive: t.Any, definition: t.Any, load_text: str | None = None, at_once: t.Any = None) -> str:
    """Return all as one text, to group by; of a damaged report nothing is known. load_text: of `load`. at_once: how
    many drives of the host were measured at the same time.
    """
    known = {name: drive[name] for name in NAMES if _is_known(name, drive.get(name))} if isinstance(drive, dict) else {}
    known.update({"load": load_text} if load_text else {})
    known.update({AT_ONCE: at_once} if isinstance(at_once, int) and at_once else {})
    given = definition if isinstance(definition, dict) else {}
    return json.dumps({**known, DEFINITION: {str(key): str(given[key]) for key in given}}, sort_keys=True)


@functools.lru_cache(maxsize=4096)
def of_model(told: str, model: str) -> str:
    """Return a `text` without the drive's model, with it."""
    return json.dumps({**json.loads(told), "model": model}, sort_keys=True)


@functools.lru_cache(maxsize=4096)
def changed(now: str, before: str) -> str:
    """Return what is known to have been otherwise, of two of `text`: "LBA format 512 → 4096, definition of the test
    (cells)". "": nothing; what only one of them tells is no difference.
    """
    if now == before or not now or not before:
        return ""
    mine, theirs = json.loads(now), json.loads(before)
    told = [
        f"{NAMES[name]} {theirs[name]} → {mine[name]}"
        for name in NAMES
        if name in mine and name in theirs and not _alike(name, mine[name], theirs[name])
    ]
    new, old = mine[DEFINITION], theirs[DEFINITION]
    keys = [key for key in new if key in old and new[key] != old[key]]
    return ", ".join(told + [f"definition of the test ({', '.join(keys)})"] * bool(keys))


def differences(now: str, before: str) -> str:
    """As `changed`, and whether another number of drives was measured at a time, where both tell it."""
    told = changed(now, before)
    mine, theirs = (json.loads(text).get(AT_ONCE) if text else None for text in (now, before))
    number = f"drives at a time {theirs} → {mine}" if mine and theirs and mine != theirs else ""
    return ", ".join(filter(None, (told, number)))


def _alike(name: str, one: t.Any, other: t.Any) -> bool:
    if name != "link" or one == other:
        return bool(one == other)
    # Only one of them tells a speed: then nothing says that it was another one.
    has_speed = [re.search(r"[0-9]", str(text)) is not None for text in (one, other)]
    return has_speed[0] != has_speed[1]
