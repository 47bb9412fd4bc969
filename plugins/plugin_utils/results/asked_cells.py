# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the cells of a host's plan are those that the run asks for: by run.json, and by their own names. Pure."""

from __future__ import annotations

import typing as t

from ..common import cellnames

MOST_SAID = 3
LEFT_OUT = "left_out"

Mapping = t.Mapping[str, t.Any]


def on_drive(
    about: Mapping, preferred_bytes: int | None, spec: Mapping, known: t.Sequence[str] | None = None
) -> dict[str, t.Any]:
    """A test of run.json by the names that its cells have on a drive, and `left_out`: those that the drive can't do.

    known: what the controller left out when it made the plan; None: of a run before it kept that, so that spec, the
      test as the host had it, is asked.
    """
    found = dict(about)
    for key in ("cells", "leads"):
        if about.get(key):
            found[key] = [cellnames.on_drive(cell, preferred_bytes) for cell in about[key]]
    rule = about.get("steady_state")
    if rule and rule.get("tracked"):
        tracked = [{**item, "cell": cellnames.on_drive(item["cell"], preferred_bytes)} for item in rule["tracked"]]
        found["steady_state"] = {**rule, "tracked": tracked}
    if about.get("points"):
        found["points"] = {cellnames.on_drive(cell, preferred_bytes): rule for cell, rule in about["points"].items()}
    ids = left_out(spec) if known is None else known
    # A cell of the preferred size that is another one of the test on this drive: that one is measured all the same.
    fixed = {cell for cell in about.get("cells") or () if not cellnames.is_preferred(cell)}
    names = {cell: cellnames.on_drive(cell, preferred_bytes) for cell in ids}
    return {**found, LEFT_OUT: [name for cell, name in names.items() if cell == name or name not in fixed]}


def left_out(test: Mapping) -> list[str]:
    """The cells that a rendered test leaves out for its drive; one that only lost some of its sizes it has."""
    measured = {cell["id"] for cell in test.get("cells") or []}
    return [str(item.get("id")) for item in test.get("not_applicable") or [] if item.get("id") not in measured]


def expected(about: Mapping) -> list[str]:
    """The cells that a drive measures, by `on_drive` alone; none where a name is still to be found."""
    cells = [cell for cell in about.get("cells") or () if cell not in about.get(LEFT_OUT, ())]
    return [] if any(cellnames.is_preferred(cell) for cell in cells) else cells


def problems(cells: t.Mapping[str, Mapping], about: Mapping) -> list[str]:
    """What of the host's plan is not as the run asks. cells: of the host's, by id. about: as `on_drive` makes it."""
    if not cells:
        return []
    return [*_lengths(cells, about), *_others(cells, about), *_misnamed(cells)]


def _lengths(cells: t.Mapping[str, Mapping], about: Mapping) -> list[str]:
    """Cells that last another time than the run asks for: their names do not tell it."""
    asked = about.get("runtimes_s") or []
    other = [f"{name} {cell.get('runtime_s')} s" for name, cell in cells.items() if cell.get("runtime_s") not in asked]
    return [f"the host's plan has other cell runtimes: {', '.join(other[:MOST_SAID])}"] if asked and other else []


def _others(cells: t.Mapping[str, Mapping], about: Mapping) -> list[str]:
    """Cells that the run asks for and the host does not have: a drive does not come into the same state without."""
    asked = about.get("cells") or []
    lacking = [name for name in asked if name not in cells and name not in about.get(LEFT_OUT, ())]
    more = [name for name in cells if asked and name not in asked]
    found = [f"the host's plan lacks cells that the run asks for: {', '.join(lacking[:MOST_SAID])}"] if lacking else []
    return found + (
        [f"the host's plan has cells that the run does not ask for: {', '.join(more[:MOST_SAID])}"] if more else []
    )


def _misnamed(cells: t.Mapping[str, Mapping]) -> list[str]:
    """Cells that are not what their names say."""
    found = []
    for name, cell in cells.items():
        told = cellnames.told(name)
        other = [f"{key} {cell[key]}" for key, value in told.items() if key in cell and (cell[key] or 0) != value]
        found += [f"{name} ({', '.join(other)})"] if other else []
    return [f"the host's plan has cells that are not what their names say: {', '.join(found[:MOST_SAID])}"] * bool(
        found
    )
