# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria as files, one for a model (a datasheet's limits, with their source), and ssd_criteria on top of them. Reads
files, changes nothing.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ...module_utils.records.base import Json
from ..common import schema as schemas
from ..common.argument_specs import Variables
from .testfiles import Library, PlanError

KIND = "criteria"
# What two criteria have in common for the one on top to replace the other.
SAME = ("model", "test", "cell", "metric")


def of_files(dirs: t.Sequence[str | Path]) -> list[Json]:
    """Return the criteria of every file criteria/*.yml of the site's folders (ssd_tests_dirs), each with its file's
    model and source. Raises PlanError.
    """
    library = Library(dirs)
    schema = schemas.load(KIND)
    found, problems = [], []
    for name in library.names(KIND):
        file = library.find(KIND, name)
        wrong = schemas.problems(file.data, schema) if file else []
        problems += [f"{file.origin}{_of_model(file.data)}: {problem}" for problem in wrong] if file else []
        if file and not wrong:
            source = {key: file.data[key] for key in ("model", "source")}
            found += [{**source, **criterion} for criterion in file.data["criteria"]]
    if problems:
        raise PlanError(problems)
    return found


def merged(variables: Variables) -> t.Any:
    """ssd_criteria on top of those of files: one for the same model, test, cell and metric replaces the file's. Raises
    PlanError.
    """
    own = schemas.plain(variables.get("ssd_criteria")) or []
    if not isinstance(own, list):
        return own  # preflight tells of it
    replaced = [_about(criterion) for criterion in own if isinstance(criterion, dict)]
    return [
        criterion for criterion in of_files(variables.get("ssd_tests_dirs") or []) if _about(criterion) not in replaced
    ] + own


def _of_model(data: t.Any) -> str:
    model = data.get("model") if isinstance(data, dict) else None
    return f" (model {model})" if isinstance(model, str) and model else ""


def _about(criterion: Json) -> tuple[str, ...]:
    return tuple(str(criterion.get(key) or "*") for key in SAME)
