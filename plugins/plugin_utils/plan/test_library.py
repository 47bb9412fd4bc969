# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The YAML files of tests, plans and criteria: where they lie, and how they are read. Changes nothing."""

from __future__ import annotations

import typing as t
from pathlib import Path

import yaml

from ..common import schema as schemas

SHIPPED_DIR = schemas.COLLECTION / "roles" / "workload" / "files"


class PlanError(ValueError):
    """What is wrong with tests or a plan: `problems`, one line each with file (or ssd_plan[n]), key and what to do."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def raise_for(origin: str, problems: t.Sequence[str]) -> None:
    """Raise PlanError for problems of one file or entry, if there are any."""
    if problems:
        raise PlanError([f"{origin}: {problem}" for problem in problems])


class Source(t.NamedTuple):
    """A test as someone wrote it. origin: its file, or ssd_plan[2]; shipped: part of this collection."""

    origin: str
    shipped: bool
    data: t.Any
    path: Path | None = None


class Library:
    """Where tests and plans are looked for: the site's folders in their order, then the collection's."""

    def __init__(self, dirs: t.Sequence[str | Path] = ()) -> None:
        """Raises PlanError for what is no list of folders."""
        if isinstance(dirs, (str, t.Mapping)) or not isinstance(dirs, t.Sequence):
            raise PlanError([f"ssd_tests_dirs: {dirs!r} is not a list of folders"])
        self.dirs = [Path(str(folder)).expanduser() for folder in dirs] + [SHIPPED_DIR]
        missing = [
            f"ssd_tests_dirs: there is no folder {folder.absolute()}" for folder in self.dirs if not folder.is_dir()
        ]
        if missing:
            raise PlanError(missing)

    def find(self, kind: str, name: str, skip: t.Collection[Path] = ()) -> Source | None:
        """Return the first file of a name; kind: tests or plans. A site may keep tests right in its folder too. A test
        may be one of a plan: <plan>/<test>. Raises PlanError.
        """
        plan, _slash, entry = name.partition("/")
        if kind == "tests" and entry:
            return self._of_plan(plan, entry, skip)
        for path in self._paths(kind):
            if path.stem == name and path.resolve() not in skip:
                return Source(str(path), SHIPPED_DIR in path.parents, _read(path), path.resolve())
        return None

    def _of_plan(self, plan: str, name: str, skip: t.Collection[Path]) -> Source | None:
        """Return the test of a plan file that its entry names, or gets from its base."""
        found = self.find("plans", plan)
        if found is None or found.path is None:
            return None
        for index, data in enumerate(_entries(found.data)):
            # In place of a path of its own: it tells one entry from another.
            place = found.path / name
            if _entry_name(data) == name and place not in skip:
                entry = Source(f"{found.origin}[{index}]", found.shipped, data, place)
                return self.find("tests", data, skip) if isinstance(data, str) else entry
        return None

    def names(self, kind: str, like: str = "") -> list[str]:
        """Return the names of all tests or plans. like: what was asked for; of <plan>/<test> the tests of that plan."""
        plan, slash, entry = like.partition("/")
        if kind == "tests" and slash:
            found = self.find("plans", plan)
            if found is None:
                return [f"{other}/{entry}" for other in self.names("plans")]
            return sorted({f"{plan}/{_entry_name(data)}" for data in _entries(found.data)})
        return sorted({path.stem for path in self._paths(kind)})

    def _paths(self, kind: str) -> list[Path]:
        found = []
        for folder in self.dirs:
            # Right in the collection's folder lie other files.
            places = [folder / kind] + ([folder] if kind == "tests" and folder != SHIPPED_DIR else [])
            found += [
                path for place in places for ending in ("yml", "yaml") for path in sorted(place.glob(f"*.{ending}"))
            ]
        return found


def _entries(plan: t.Any) -> list[t.Any]:
    """Return the entries of a plan file that can be tests."""
    return [data for data in plan if isinstance(data, (str, dict))] if isinstance(plan, list) else []


def _entry_name(data: str | dict[str, t.Any]) -> str:
    """Return what a test of a plan is called: by itself, or as its base."""
    name = data if isinstance(data, str) else data.get("name", data.get("base"))
    return str(name).rpartition("/")[2]


_NO_FILE = ' in "<unicode string>",'  # what PyYAML calls a text that it was given without its file


class _Loader(yaml.SafeLoader):
    """YAML without a key that is given twice, of which one would silently be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[t.Any, t.Any]:
        keys = [self.construct_object(key, deep=deep) for key, _value in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice} is given twice", node.start_mark)
        mapping: dict[t.Any, t.Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _read(path: Path) -> t.Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PlanError([f"{path}: cannot be read: {' '.join(str(error).split()).replace(_NO_FILE, ' at')}"]) from None
