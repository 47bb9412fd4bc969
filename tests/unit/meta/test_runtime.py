# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""meta/runtime.yml names every module."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))


def test_the_action_group_holds_all_modules_and_nothing_else():
    names = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py") if path.stem != "__init__")
    assert RUNTIME["action_groups"]["fleet"] == [f"ssdlab.fleet.{name}" for name in names]
