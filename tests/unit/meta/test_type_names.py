# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two names that many files give to JSON objects mean the same in each: a Mapping is read, a Record can change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("name", "meaning"), [("Mapping", "t.Mapping[str, t.Any]"), ("Record", "dict[str, t.Any]")])
def test_a_name_of_objects_means_one_type(name, meaning):
    found = {}
    for folder in ("plugins", "tests/fixtures"):
        for path in (ROOT / folder).rglob("*.py"):
            for given in re.findall(rf"^{name} = (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
                # What runs on hosts of Python 3.8 spells it so; and a module may take another's.
                found.setdefault(given.replace("t.Dict[", "dict["), []).append(str(path.relative_to(ROOT)))
    found.pop(f"records.{name}", None)
    assert list(found) == [meaning], {given: paths for given, paths in found.items() if given != meaning}
