# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight decided is of this play, of this run and of this plan."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import decision_record

PLAN = {
    "run": {"id": "r"},
    "host": "h",
    "drives": [{"drive": "S1", "selector": {"serial": "S1"}, "expected": {}, "tests": []}],
}


def test_the_decision_of_this_play(tmp_path):
    decision_record.write(str(tmp_path), {"h": PLAN})
    known = decision_record.decided(str(tmp_path), PLAN)
    assert known["mode"] == "destructive" and len(known["digest"]) == 64


def test_without_a_decision_of_this_play_there_is_none(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="did not approve"):
        decision_record.decided(str(tmp_path), PLAN)
    decision_record.write(str(tmp_path), {"h": PLAN})
    with pytest.raises(ValueError, match="nothing for this host"):
        decision_record.decided(str(tmp_path), dict(PLAN, host="other"))
    with pytest.raises(ValueError, match="a variable changed since"):
        decision_record.decided(str(tmp_path), dict(PLAN, drives=[]))
    monkeypatch.setattr(decision_record, "play", lambda: {"pid": 1, "started": "0"})
    with pytest.raises(ValueError, match="did not approve"):
        decision_record.decided(str(tmp_path), PLAN)


def test_a_damaged_record(tmp_path):
    (tmp_path / "decision.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        decision_record.decided(str(tmp_path), PLAN)
