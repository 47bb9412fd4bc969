# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight decided is of this play, of this run and of this plan."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.compression import unpack
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import decision_record
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PLAN = planned.plan_of(drives=[{}])


def test_the_plan_that_this_play_decided_on(tmp_path):
    others = {host: dataclasses.replace(PLAN, host=host) for host in ("../h", "a/b", "ü")}
    decision_record.write(str(tmp_path), {"h": PLAN, **others})
    for host, plan in {"h": PLAN, **others}.items():
        sent = json.loads(unpack(decision_record.plan(str(tmp_path), host)))
        assert base.parse(Plan, sent) == dataclasses.replace(plan, decision=digests.decision(plan))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decision.json", "plans"]


def test_a_plan_of_an_earlier_decision_is_replaced(tmp_path):
    decision_record.write(str(tmp_path), {"h": PLAN})
    decision_record.write(str(tmp_path), {"h": dataclasses.replace(PLAN, drives=[])})
    assert json.loads(unpack(decision_record.plan(str(tmp_path), "h")))["drives"] == []


def test_without_a_decision_of_this_play_there_is_none(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="did not approve"):
        decision_record.plan(str(tmp_path), "h")
    decision_record.write(str(tmp_path), {"h": PLAN})
    with pytest.raises(ValueError, match="nothing for this host"):
        decision_record.plan(str(tmp_path), "other")
    monkeypatch.setattr(decision_record, "play", lambda: {"pid": 1, "started": "0"})
    with pytest.raises(ValueError, match="did not approve"):
        decision_record.plan(str(tmp_path), "h")


def test_a_damaged_record(tmp_path):
    (tmp_path / "decision.json").write_text("{")
    with pytest.raises(ValueError, match="decision cannot be read"):
        decision_record.plan(str(tmp_path), "h")


def test_a_plan_that_is_gone(tmp_path):
    decision_record.write(str(tmp_path), {"h": PLAN})
    for path in (tmp_path / "plans").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="plan that preflight approved cannot be read"):
        decision_record.plan(str(tmp_path), "h")


def test_another_play_of_the_run_replaces_no_plan(tmp_path, monkeypatch):
    """Its plan may differ in what the decision's digest leaves out, and it may end before it has decided."""
    one, two = dataclasses.replace(PLAN, leave="as_is"), dataclasses.replace(PLAN, leave="blank")
    assert len({digests.plan_digest(plan, "destructive") for plan in (one, two)}) == 1
    decision_record.write(str(tmp_path), {"h": one})
    monkeypatch.setattr(decision_record, "write_atomic", _full)
    with pytest.raises(OSError):
        decision_record.write(str(tmp_path), {"h": two})
    assert json.loads(unpack(decision_record.plan(str(tmp_path), "h")))["leave"] == "as_is"


def test_a_plan_that_is_damaged(tmp_path):
    decision_record.write(str(tmp_path), {"h": PLAN})
    (path,) = (tmp_path / "plans").iterdir()
    path.write_text(path.read_text()[:-4])
    with pytest.raises(ValueError, match="damaged"):
        decision_record.plan(str(tmp_path), "h")


def _full(*_):
    raise OSError(28, "no space")
