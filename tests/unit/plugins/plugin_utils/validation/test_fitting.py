# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever passes the gate is survived by all that reads it, however odd: the report's files, the store and its
exports, the closing table, what preflight and discover read.
"""

from __future__ import annotations

import datetime
import json
import random

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import answers, results
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import CollectedPlan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    decision,
    drive_list,
    saturation_feasibility,
    timings,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log, runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, exports, importer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import (
    journal,
    module_answers,
    sanitizer,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures import mutations
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.validation import test_entrances as entrances

NOW = datetime.datetime(2026, 11, 21, 13, tzinfo=datetime.timezone.utc)
# How often each way in is tried; the sum is in docs/trust.md.
TRIES = {"journal": 40, "lines": 40, "plan": 20, "answers": 200}
run_dir, unchanged_files_are_read_once = entrances.run_dir, entrances.unchanged_files_are_read_once


def fits(wanted, value):
    """Whether the gate lets a value pass, without a reason, which takes hundreds of times as long to find."""
    try:
        wanted.passed(value, explained=False)
    except sanitizer.Unfit:
        return False
    return True


def passes_journal(event):
    kind = event.get("event") if isinstance(event, dict) else None
    return kind in journal.EVENTS and fits(journal._of_event(kind), event)


def passes_line(record):
    kind = record.get("kind") if isinstance(record, dict) else None
    return kind in list(results.RECORDS) and fits(sanitizer.shape_of_record(results.RECORDS[kind]), record)


def passes_plan(value):
    return fits(sanitizer.shape_of_record(CollectedPlan), value)


PASSES = {"journal": passes_journal, "lines": passes_line, "plan": passes_plan}


def read_by_others(run_dir, tmp_path, url):
    """All that reads a run's folder beside the report."""
    with database.opened(url, make=True) as opened:
        done = importer.import_run(opened, str(run_dir))
    exports.write(url, run_dir.name, str(tmp_path / "export"), ["csv", "prometheus", "ocptv"])
    run = json.loads((run_dir / "run.json").read_text())
    assert all(
        line.isprintable() for line in final_tables.lines(run, results_log.load(str(run_dir / "results.jsonl")), None)
    )
    own = runs.on_controller(str(run_dir.parent))
    models = {drive.model for drive in entrances.generator.DEMO}
    timings.of_models(own, models, list(run["tests"]))
    saturation_feasibility.saturations(str(run_dir.parent), models)
    return done


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["journal", "lines", "plan"])
def test_whatever_passes_is_survived(run_dir, tmp_path, what):
    path = {
        "lines": run_dir / "results.jsonl",
        "journal": run_dir / "raw" / entrances.BAD.host / "journal.jsonl",
        "plan": run_dir / "raw" / entrances.BAD.host / "plan.json",
    }[what]
    values = entrances.lines_of(path) if what != "plan" else [json.loads(path.read_text())]
    before, url = entrances.judged(run_dir), database.resolve("", str(tmp_path))
    for seed in mutations.seeds(TRIES[what]):
        chance = random.Random(seed)
        share = chance.choice((0.1, 0.5, 1.0))
        changed = [
            mutations.fitting(value, chance, PASSES[what], chance.choice((5, 30)))
            if what == "plan" or (value["host"] == entrances.BAD.host and chance.random() < share)
            else value
            for value in values
        ]
        entrances.write_lines(path, changed)
        if what != "lines":
            entrances.collect_again(run_dir)
        after = entrances.judged(run_dir, with_files=True)
        assert {**after, entrances.BAD.host: ""} == {**before, entrances.BAD.host: ""}, seed
        read_by_others(run_dir, tmp_path, url)


REAL = entrances.REAL


@pytest.mark.thorough
def test_whatever_answer_passes_preflight_and_discover_survive(tmp_path):
    honest = {module: module_answers.passed(module, REAL[module]) for module in entrances.KEYS}
    honest["run_info"]["runs"] = [dict(run, run_name="qualify") for run in honest["run_info"]["runs"]]
    honest["drive_facts"]["drives"][0].update(selector={"serial": "S1"}, drive="S1", refusals=[], eligible=True)
    other = json.loads(json.dumps(honest))
    other["run_info"]["runs"] = []
    other["host_info"]["host_info"].update(hostname="other", boot_id="c")
    other["drive_facts"]["drives"][0]["identity"].update(serial="S2", wwn="w2")
    good = entrances.view_of("good", entrances.asked(tmp_path, ssd_mode="destructive"), other)
    for seed in mutations.seeds(TRIES["answers"]):
        chance = random.Random(seed)
        module = list(entrances.KEYS)[seed % len(entrances.KEYS)]
        wanted = sanitizer.shape_of_record(answers.ANSWERS[module])
        odd = mutations.fitting(honest[module], chance, lambda value, wanted=wanted: fits(wanted, value), 60)
        answered = {**honest, module: module_answers.passed(module, odd)}
        bad = entrances.view_of("bad", entrances.asked(tmp_path, ssd_mode="destructive"), answered)
        decided = decision.decide(decision.Request([good, bad], True, NOW))
        assert all(line.isprintable() for line in decided.findings + decided.plan_text + decided.warnings), seed
        drive_list.render({"bad": answered["drive_facts"], "good": other["drive_facts"]})
