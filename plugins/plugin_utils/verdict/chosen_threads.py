# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remarks on the threads that hosts chose for cells with `threads: auto`, and on drives of a model that had other
numbers of sequential streams: several streams are another load than one. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import cell_names

Mapping = t.Mapping[str, t.Any]
# Of a model, a test and a cell: the numbers of streams that its drives had.
Streams = t.Mapping[tuple[str, str, str], t.Collection[int]]


def chosen(record: Mapping) -> list[Mapping]:
    """Return the loads of a test record that a host found by trials."""
    return [item for item in record.get("loads") or [] if cell_names.has_auto_threads(item["cell"])]


def streams(records: t.Iterable[tuple[str, Mapping]]) -> Streams:
    """Return the numbers of sequential streams of every model. records: test records, each with its drive's model."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for model, record in records:
        for item in filter(_is_streams, chosen(record)):
            found.setdefault((model, record["test"], item["cell"]), set()).add(item["threads"])
    return found


def remarks(record: Mapping, model: str, of_models: Streams) -> list[str]:
    """Return what the host chose for a test, and where other drives of its model had another load, as sentences."""
    loads = chosen(record)
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
