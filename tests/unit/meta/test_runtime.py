# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""meta/runtime.yml names every module, and every old name leads to a module that is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
ROUTING = RUNTIME["plugin_routing"]
GALAXY = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))


def names(kind):
    return {path.stem for path in (ROOT / "plugins" / kind).glob("*.py") if path.stem != "__init__"}


def test_the_action_group_holds_all_modules_and_nothing_else():
    assert RUNTIME["action_groups"]["fleet"] == [f"ssdlab.fleet.{name}" for name in sorted(names("modules"))]


@pytest.mark.parametrize("old", sorted(ROUTING["modules"]))
def test_an_old_name_leads_to_a_module(old):
    route = ROUTING["modules"][old]
    new = route["redirect"].removeprefix("ssdlab.fleet.")
    assert new in names("modules") and old not in names("modules")
    # Ansible looks for the action first: without a route of its own the old name would run the module alone.
    assert (ROUTING["action"].get(old, {}).get("redirect") == route["redirect"]) == (new in names("action"))
    assert route["deprecation"]["removal_version"] > GALAXY["version"]
