# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/architecture.md draws the packages as the tables of docs/internals.md have them (test_layers.py holds those to
the code), less the imports that follow from others.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.tests.unit.plugins.test_layers import KINDS, told

PAGE = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text(encoding="utf-8")


def drawn(kind):
    """The arrows of a kind's box, as (package, imported)."""
    box = PAGE.partition(f"subgraph {kind} ")[2].partition("\n  end\n")[0]
    return sorted(re.findall(r"^    (\w+) --> (\w+)$", box, re.MULTILINE))


def reached(known, name):
    """All packages that one imports, by others too."""
    return set().union(known[name], *(reached(known, other) for other in known[name]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_has_every_import_that_does_not_follow_from_others(kind):
    known = {name: others for name, (_floor, others) in told(kind).items()}
    through = {name: set().union(*(reached(known, other) for other in known[name])) for name in known}
    wanted = sorted((name, other) for name, others in known.items() for other in others - through[name])
    assert wanted and drawn(kind) == wanted
