# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verdict on one drive takes from other drives of the run. Pure.

Other numbers of sequential streams on drives of its model, where the host chose the threads (`threads: auto`): several
streams are another load than one. Wrong blocks on several drives of a host: what they share is likelier to err than all
of them.
"""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.measurement import IntegrityDetails
from ...module_utils.run.criteria import is_of_drive
from ..common import cell_names

Mapping = t.Mapping[str, t.Any]
# Of a model, a test and a cell: the numbers of streams that its drives had.
Streams = t.Mapping[tuple[str, str, str], t.Collection[int]]
MOST_NAMED = 10


def _chosen(record: Mapping) -> list[Mapping]:
    """Return the loads of a test record that a host found by trials."""
    return [item for item in record.get("loads") or [] if cell_names.has_auto_threads(item["cell"])]


def streams(records: t.Iterable[tuple[str, Mapping]]) -> Streams:
    """Return the numbers of sequential streams of every model. records: test records, each with its drive's model."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for model, record in records:
        for item in filter(_is_streams, _chosen(record)):
            found.setdefault((model, record["test"], item["cell"]), set()).add(item["threads"])
    return found


def thread_remarks(record: Mapping, model: str, of_models: Streams) -> list[str]:
    """Return what the host chose for a test, and where other drives of its model had another load, as sentences."""
    loads = _chosen(record)
    texts = [f"{item['cell']} {item['threads']} x depth {item['queue_depth']}" for item in loads]
    told = [f"fio had as many threads as it needed for this drive: {', '.join(texts)}"] if texts else []
    for item in filter(_is_streams, loads):
        others = sorted({*of_models.get((model, record["test"], item["cell"]), ())} - {item["threads"]})
        if others:
            told.append(
                f"{item['cell']}: {_count(item['threads'])} here, {' or '.join(map(str, others))} on other drives of "
                "this model; several sequential streams are another load than one"
            )
    return told


def _is_streams(item: Mapping) -> bool:
    return cell_names.is_sequential(item["cell"])


def _count(streams_: int) -> str:
    return f"{streams_} stream{'' if streams_ == 1 else 's'}"


def read_back(record: Mapping) -> IntegrityDetails | None:
    """Return what the record of an integrity test says of the drive's blocks; None: of any other test."""
    return base.parse(IntegrityDetails, record["integrity"]) if record.get("integrity") else None


def wrong_by_host(records: t.Iterable[Mapping]) -> dict[str, list[str]]:
    """Return the drives with wrong blocks that their host may have made, by host. records: of tests."""
    drives: dict[str, dict[str, None]] = {}
    for record in records:
        found = read_back(record)
        if found and set(found.wrong_blocks) - {"unreadable"} and is_of_drive(found, record.get("outcome")):
            drives.setdefault(record["host"], {})[record["drive"]] = None
    return {host: list(names) for host, names in drives.items()}


def host_fault(host: str, drives: t.Sequence[str]) -> str:
    """Return why the wrong blocks of one of these drives are held against their host; "" where it is the only one."""
    if len(drives) < 2:
        return ""
    named = ", ".join(drives[:MOST_NAMED]) + (", …" if len(drives) > MOST_NAMED else "")
    return (
        f"{len(drives)} drives of {host} have wrong blocks ({named}), so its memory, HBA, backplane or driver comes "
        "first; test one of them in another host: what is wrong there too is the drive's"
    )
