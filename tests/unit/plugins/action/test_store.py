# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action store: what it returns, and what it says where there is no store to fill."""

from __future__ import annotations

import types

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("pandas")

from ansible.errors import AnsibleActionFail
from ansible.playbook.task import Task

from ansible_collections.ssdlab.fleet.plugins.action import store as action
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator


@pytest.fixture(name="results")
def fixture_results(tmp_path):
    return generator.make(tmp_path, rounds=8).parent


def run(monkeypatch, check=False, **arguments):
    monkeypatch.setattr(action, "refuse_injected_facts", lambda: None)
    task = Task()
    task.args, task.check_mode, task.async_val = arguments, check, 0
    made = action.ActionModule(
        task, types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir="")), types.SimpleNamespace(), None, None, None
    )
    return made.run(task_vars={})


def test_runs_are_imported_once_and_exported(monkeypatch, results):
    first = run(monkeypatch, results_dir=str(results))
    assert first["changed"] and first["runs"] == [{"run_id": generator.RUN_ID, "changed": True, "hosts": 3}]
    assert first["store"] == f"sqlite:///{results}/store.sqlite" and first["exported"] == []
    assert not run(monkeypatch, results_dir=str(results), run_id=generator.RUN_ID)["changed"]
    exported = run(monkeypatch, results_dir=str(results), run_id=generator.RUN_ID, exports=["prometheus"])["exported"]
    assert exported == [f"{results}/{generator.RUN_ID}/export/ssdlab_fleet.prom"]


@pytest.mark.parametrize("arguments", [{"url": "none"}, {"check": True}])
def test_without_a_store_nothing_is_touched(monkeypatch, results, arguments):
    before = sorted(path.name for path in results.iterdir())
    assert run(monkeypatch, results_dir=str(results), **arguments)["changed"] is False
    assert sorted(path.name for path in results.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "mysql://a:geheim@b/c"}, "must begin with sqlite:/// or postgresql://"),
        ({"url": "sqlite:////proc/no/store.sqlite"}, "the results are in .*run playbooks/import.yml"),
        ({"url": "sqlite:////proc/no/store.sqlite", "raw": True}, "run playbooks/import.yml.*collect again"),
        (
            {"url": "sqlite:////proc/no/store.sqlite", "fetch": True, "run_name": "nightly"},
            "; nothing was loaded or started",
        ),
        ({"run_id": "../x"}, "is not a run id"),
        ({"run_id": "20990101T000000Z-x"}, "there is no run in"),
        ({"exports": ["junit"]}, "also needs run_id"),
    ],
)
def test_what_is_wrong_is_told_without_a_password(monkeypatch, results, arguments, said):
    with pytest.raises(AnsibleActionFail, match=said) as told:
        run(monkeypatch, results_dir=str(results), **arguments)
    assert "geheim" not in str(told.value)
