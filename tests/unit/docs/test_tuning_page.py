# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/tuning.md has a row for every variable of the role tune."""

from __future__ import annotations

import pathlib

import yaml

ROOT = pathlib.Path(__file__).parents[3]


def test_the_page_names_every_variable():
    specs = yaml.safe_load((ROOT / "roles" / "tune" / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    page = (ROOT / "docs" / "tuning.md").read_text()
    names = specs["main"]["options"]
    assert names and [name for name in names if f"`{name}`" not in page] == []
