# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host's journal and plan reaches the results."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_log
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import results
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema as schemas
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import criteria_checks
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import journal, sanitizer

ENVELOPE = {"schema_version": 1, "time": "2026-11-21T13:00:00.123Z", "run_id": "r1", "host": "h1"}


def test_every_figure_that_a_criterion_may_name_passes():
    figures = dict.fromkeys(criteria_checks.METRICS, 1.5)
    assert sanitizer.shape_of_record(results.Metrics).passed(figures) == (figures, 0)


@pytest.mark.parametrize("stage", ["a folder", "too long"])
def test_what_stands_in_the_place_of_a_file_costs_that_host_its_figures_alone(tmp_path, stage, monkeypatch):
    """An archive may well hold journal.jsonl/x: the whole fleet's report ended there."""
    monkeypatch.setattr(journal, "MOST_PLAN_BYTES", 100)
    monkeypatch.setattr(journal, "MOST_LINE_BYTES", 100)
    for name in ("journal.jsonl", "plan.json"):
        if stage == "a folder":
            (tmp_path / name / "x").mkdir(parents=True)
        else:
            (tmp_path / name).write_bytes(b" " * 200)
    problems = journal.Problems()
    assert (
        list(journal.events(str(tmp_path / "journal.jsonl"), problems)) == []
        and journal.plan(str(tmp_path / "plan.json"), problems) is None
    )
    assert problems.count == 2 and "journal.jsonl" in problems.text() and "plan.json" in problems.text()


def test_a_journal_of_nothing_but_refused_events_is_not_explained_line_by_line(tmp_path, monkeypatch):
    """To find out why takes hundreds of times as long as to see that it is wrong: 1 GiB of them would take days."""
    explained, path = [], tmp_path / "journal.jsonl"
    real = schemas.explained
    monkeypatch.setattr(schemas, "explained", lambda *given: explained.append(1) or real(*given))
    of_test = {"drive": "S1", "test": "iops", "attempt": 1}
    bad = json.dumps({**ENVELOPE, "event": "sample", **of_test, "temperature_c": "hot"})
    good = json.dumps({**ENVELOPE, "event": "round", **of_test, "round": 1, "elapsed_s": 1})
    path.write_text(f"{bad}\n" * 500 + f"{good}\n")
    problems = journal.Problems()
    assert [event["round"] for event in journal.events(str(path), problems)] == [1]
    assert problems.count == 500 and len(explained) == journal.MOST_TOLD
    assert "line 1 (sample)" in problems.text() and "497 more" in problems.text()


@pytest.mark.parametrize("kind", sorted({kind for kinds, _form in kernel_log.PATTERNS for kind in kinds}))
def test_whatever_the_kernel_said_is_an_event(tmp_path, kind):
    said = {"kind": kind, "name": "mpt3sas_cm0", "is_own": False, "boot_s": 5.5, "message": "mpt3sas_cm0: …"}
    event = {**ENVELOPE, "event": "kernel_event", "drive": "S1", "test": "iops", "attempt": 1, **said}
    path, problems = tmp_path / "journal.jsonl", journal.Problems()
    path.write_text(json.dumps(event) + "\n")
    assert list(journal.events(str(path), problems)) == [event] and problems.count == 0


@pytest.mark.parametrize(("torn", "told"), [(100, ""), (3 * journal.MOST_TORN, "from line 10002 on: too many")])
def test_a_journal_of_torn_lines_is_given_up(tmp_path, torn, told):
    path = tmp_path / "journal.jsonl"
    path.write_text("{\n" * torn)
    problems = journal.Problems()
    assert list(journal.events(str(path), problems)) == [] and problems.torn <= journal.MOST_TORN + 1
    assert told in problems.text() and bool(told) == bool(problems.text())
