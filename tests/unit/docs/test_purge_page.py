# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/purge.md names every method, in the order of its strength, with its class; and every variable of the role."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import purge_values

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "purge.md").read_text(encoding="utf-8")


def rows():
    """{method: class} of the table, in its order."""
    table = PAGE[PAGE.index("## The methods") : PAGE.index("`none` leaves")]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4:
            found.update({name: cells[3] for name in re.findall(r"`([a-z_]+)`", cells[1]) if name != "purge_method"})
    return found


def test_the_table_has_every_method_with_its_class():
    assert rows() == {method.name: method.purge_class for method in methods.METHODS.values()}


def test_the_order_is_that_of_auto():
    listed = list(rows())
    for family in {method.family for method in methods.METHODS.values()}:
        named = [name for name in listed if methods.METHODS[name].family == family]
        assert named == sorted(named, key=lambda name: -methods.METHODS[name].strength), family


def test_the_role_takes_every_method():
    spec = yaml.safe_load((ROOT / "roles" / "purge" / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    assert set(spec["argument_specs"]["main"]["options"]["purge_method"]["choices"]) == {
        "auto",
        *methods.METHODS,
        "none",
    }


def test_the_page_tells_of_the_variables():
    for variable in ("purge_method", "purge_lba_size_bytes", "purge_timeout_s", "purge_stuck_s"):
        assert f"`{variable}" in PAGE and variable in purge_values.VARIABLES
