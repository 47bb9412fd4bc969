# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page for the supplier of one model, to print or to send as it is, one file with its scripts: verdicts, conditions
and charts of its drives, nothing about any other model.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t

from markupsafe import Markup

from ...module_utils.run.criteria import is_of_model, usable
from ..verdict import judged_criteria
from . import assets, page, render
from . import drive_view as drive_views
from .run_sources import Sources

# udev's names of drives have the model and the serial number in them, with _ for each blank.
_OF_UDEV = re.compile(r"\b(?:nvme|ata|scsi|usb)-(\S+)")
_PARTITION = re.compile(r"-part[0-9]+\b")

Record = dict[str, t.Any]
LEFT_OUT = "(left out here, as it names other drives)"
# Of a view, what is figures and pictures of the drive alone.
_FIGURES = ("series", "outlines", "matrices", "cells", "latency", "latencies")


class Others:
    """named: what must not be told. own: what may, be it that the name of another is in it ("X 9 PRO" beside "X 9")."""

    def __init__(self, named: t.Iterable[str], own: t.Iterable[str]) -> None:
        self._own = {_plain(name) for name in own}
        self._named = sorted({_plain(name) for name in named} - self._own - {""})
        self._holding: dict[str, list[str]] = {}

    def are_in(self, text: str) -> bool:
        """Return whether a text tells one of them."""
        plain = _plain(text)
        return any(name in plain and self._is_told(name, plain) for name in self._named)

    def _is_told(self, name: str, plain: str) -> bool:
        if name not in self._holding:
            self._holding[name] = sorted((own for own in self._own if name in own), key=len, reverse=True)
        for own in self._holding[name]:
            plain = _word(own).sub(" ", plain)
        return _word(name).search(plain) is not None


def _word(name: str) -> re.Pattern[str]:
    """Return a name as a word of its own: SSD1 is not in SSD12."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def _plain(text: str) -> str:
    """Return a text in which a name is found in whatever case, with whatever blanks, and in the names that
    udev makes.
    """
    parts = [_PARTITION.sub("", found[1].replace("_", " ")) for found in _OF_UDEV.finditer(text)]
    return " ".join(" ".join([text, *parts]).split()).casefold()


def problem(drives: t.Iterable[t.Mapping[str, t.Any]], pattern: str) -> str:
    """Return why there is no page of the models that match a shell pattern, "" if there is one. drives: judged ones."""
    known = sorted({drive["model"] for drive in drives if drive["model"]})
    if not pattern or any(fnmatch.fnmatchcase(model, pattern) for model in known):
        return ""
    models = ", ".join(known) or "none that is known"
    return f"report_supplier_model: no drive of the run is of a model like {pattern!r}; there are: {models}"


def text(sources: Sources, rows: list[Record], pattern: str) -> str:
    """Return the page of the models that match a shell pattern, of which there are some."""
    mine = [row for row in rows if row["model"] and fnmatch.fnmatchcase(row["model"], pattern)]
    judged = {(drive["host"], drive["drive"]): drive for drive in sources.judgement["drives"]}
    models = sorted({row["model"] for row in mine})
    about = page.about(sources, mine)
    counted = {verdict: sum(row["verdict"] == verdict for row in mine) for verdict in about["verdicts"]}
    criteria = [
        one for one in about["criteria"] if any(is_of_model(c, model) for c in usable([one]) for model in models)
    ]
    others = _others(rows, mine, about["criteria"], criteria)
    drives = [_without(drive_views.drive(sources, row, judged[row["host"], row["drive"]]), others) for row in mine]
    own = {(drive["host"], drive["drive"]) for drive in drives}
    tested = {test["test"] for drive in drives for test in drive["tests"]}
    finished = [record.get("finished") or "" for key in own for record in sources.tests.get(key, {}).values()]
    view = {
        **about,
        "criteria": criteria,
        "departures": [item for item in about["departures"] if item["test"] in tested],
        "verdicts": counted,
        "models": models,
        "drives": drives,
        "headline": _without(page.headline(mine), others),
        "up": "",
        "finished": max(finished, default="") or None,
        "plotly": Markup(assets.script()),
        "tests": sorted(tested),
        "hosts": [
            {"name": name, "facts": _without(sources.raw(name).facts, others)}
            for name in dict.fromkeys(row["host"] for row in mine)
        ],
    }
    return render.html("supplier.html.j2", view)


def _others(rows: list[Record], mine: list[Record], all_criteria: list[t.Any], criteria: list[t.Any]) -> Others:
    """Return what names drives, hosts and models that are not this page's, and the criteria that are not about them."""
    keys = ("model", "serial", "drive", "host")
    own = {str(row[key]) for row in mine for key in keys if row[key]}
    named = {str(row[key]) for row in rows for key in keys if row[key]}
    told = {
        judged_criteria.describe_given(one) if isinstance(one, dict) else str(one)
        for one in all_criteria
        if one not in criteria
    }
    return Others(named | told, own)


def _without(view: t.Any, others: Others) -> t.Any:
    """Return a view whose texts name none of these: hosts and checks may name a neighbour of another model in what they
    say of a drive.
    """
    if isinstance(view, str):
        return LEFT_OUT if others.are_in(view) else view
    if isinstance(view, dict):
        return {key: value if key in _FIGURES else _without(value, others) for key, value in view.items()}
    if isinstance(view, (list, tuple)):
        made = [_without(value, others) for value in view]
        return made if isinstance(view, list) else getattr(view, "_make", tuple)(made)
    return view
