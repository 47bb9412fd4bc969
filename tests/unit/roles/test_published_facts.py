# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.ssdlab.fleet.plugins.action import preflight
from ansible_collections.ssdlab.fleet.plugins.modules import find_run
from ansible_collections.ssdlab.fleet.plugins.modules import preflight as documentation
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.decision import Decision

ROOT = Path(__file__).resolve().parents[3]
DECISION = yaml.safe_load(documentation.RETURN)["decision"]["contains"]


def published():
    """The ssd_ variables that tasks of the roles and playbooks register or set."""
    found = set()
    for path in (*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"register: (ssd_\w+)", text))
        for block in re.findall(r"set_fact:\n((?: +\S.*\n)+?)(?= *(?:when|run_once|tags|- name)\b|\n|\Z)", text):
            found |= set(re.findall(r"^ +(ssd_\w+):", block, re.MULTILINE))
    return found


def test_what_tasks_hand_on_cannot_be_given():
    assert published() == set(preflight.RESULTS)


def test_the_decision_has_the_keys_that_are_documented():
    made = Decision([], None, False, False, [], "", "", {}, []).fact()
    assert list(made) and set(made) == set(DECISION)
    assert set(yaml.safe_load(find_run.RETURN)["decision"]["contains"]) < set(made)
    readme = (ROOT / "roles/preflight/README.md").read_text(encoding="utf-8")
    table = readme.partition("| key of `ssd_decision` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(made)


def test_every_key_of_the_decision_that_is_read_exists():
    files = [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/*.yml"), *ROOT.glob("roles/*/README.md")]
    read = {key for path in files for key in re.findall(r"\bssd_decision\.(\w+)", path.read_text(encoding="utf-8"))}
    assert read <= set(DECISION)
