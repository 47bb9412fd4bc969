# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a judged test carries beside its verdict, for summary.json, results.csv and the page. Pure."""

from __future__ import annotations

import typing as t

from ..common import units
from ..common.values import number
from . import comparability, environment, fob_state

Record = dict[str, t.Any]
PRECONDITION_KEYS = (
    "passes",
    "bytes_written",
    "block_size_bytes",
    "data",
    "bandwidth_bytes_per_s",
    "kernel_bytes_written",
)

Mapping = t.Mapping[str, t.Any]
FIGURES = ("average", "fitted_end", "range_ratio", "slope_ratio")


def precondition_kind(record: t.Mapping[str, t.Any]) -> Record | None:
    """Return the KEYS of a test record's fill, each None where it is unknown; None without a fill."""
    done = record.get("precondition")
    return {key: done.get(key) for key in PRECONDITION_KEYS} if done else None


def details(record: Mapping | None, about: Mapping) -> dict[str, t.Any]:
    """{windows, from_fresh, precondition, remarks} of a test record, `load` of one whose threads follow the CPUs, and
    `parallel_drives` where that is known; about: the test in run.json. Empty and null without a record.

    windows: of every tracked variable {cell, metric, unit, steady, rounds} and FIGURES. precondition:
    test_details.PRECONDITION_KEYS, null
      where nothing was filled.
    """
    if record is None:
        return {"windows": [], "from_fresh": None, "precondition": None, "remarks": []}
    load = comparability.load(record)
    return {
        **({"load": load} if load else {}),
        **({"parallel_drives": record["parallel_drives"]} if record.get("parallel_drives") else {}),
        "windows": [_window(window) for window in record.get("steady_state") or []],
        "from_fresh": not fob_state.why_not(record),
        "precondition": _fill(record, about),
        "remarks": _filesystem(record) + _array(record) + environment.remarks(record),
    }


def _filesystem(record: Mapping) -> list[str]:
    """Return what it was measured on, where that was not the drive itself."""
    laid = record.get("filesystem")
    if not laid:
        return []
    stripe = laid.get("stripe")
    width = f", stride {stripe['stride']}, stripe width {stripe['stripe_width']}" if stripe else ""
    options = ", ".join(laid["mount_options"]) or "no options"
    size = laid["file_bytes"] / 1e9
    return [f"measured on a file of {size:.3g} GB on {laid['type']}, mounted with {options}{width}; not the raw drive"]


def _array(record: Mapping) -> list[str]:
    """Of which drives the array was that it was measured on."""
    several = record.get("array")
    if not several:
        return []
    names = [str(member["drive"]) for member in several["members"]]
    chunk = units.block_size(several["chunk_bytes"])
    return [
        f"measured on a RAID {several['level']} of {len(names)} drives ({', '.join(names)}), chunk {chunk}; not the "
        "drive by itself"
    ]


def _window(window: Mapping) -> dict[str, t.Any]:
    """The unit is of all its figures but the ratios."""
    figures = {name: number(window.get(name)) for name in FIGURES}
    named = {
        "cell": window.get("cell"),
        "metric": window.get("metric"),
        "unit": units.base(str(window.get("metric") or "")),
    }
    return {**named, "steady": bool(window.get("steady")), "rounds": list(window.get("window_rounds") or []), **figures}


def _fill(record: Mapping, about: Mapping) -> dict[str, t.Any] | None:
    """Return what an older record does not tell is what was asked."""
    done, asked = precondition_kind(record), about.get("precondition") or {}
    if done is None:
        return None
    told = {key: asked.get(key) if done[key] is None else done[key] for key in ("passes", "block_size_bytes")}
    return {**done, **told, "data": done["data"] or asked.get("data") or "random"}
