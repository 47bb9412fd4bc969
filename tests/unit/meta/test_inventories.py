# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventories to copy are read without a warning, whatever else lies in their folders."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import spelling

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "inventories").iterdir()))
def test_ansible_reads_an_inventory_without_a_warning_and_knows_all_its_variables(name):
    done = subprocess.run(
        ["ansible-inventory", "-i", str(ROOT / "inventories" / name), "--list"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        text=True,
        capture_output=True,
        check=True,
    )
    assert "WARNING" not in done.stderr, done.stderr
    hosts = json.loads(done.stdout)["_meta"]["hostvars"]
    assert hosts and spelling.unknown(hosts, {}) == {}
