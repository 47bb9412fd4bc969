# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits every schema and still is too much: figures at the ends of what numbers may be, and more of everything than
anybody asked for.
"""

from __future__ import annotations

import json
import random

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import record_check
from ansible_collections.ssdlab.fleet.tests.fixtures import mutations
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.validation import test_entrances as entrances

# How often; the sum is in docs/trust.md.
TRIES = 60
run_dir, unchanged_files_are_read_once = entrances.run_dir, entrances.unchanged_files_are_read_once


def test_extreme_figures_of_a_host(run_dir, tmp_path):
    """Many numbers and times of one host's files at once are as small, as large or as odd as they may be: the report's
    files and the store.
    """
    places = {"lines": run_dir / "results.jsonl", "journal": run_dir / "raw" / entrances.BAD.host / "journal.jsonl"}
    values = {what: entrances.lines_of(path) for what, path in places.items()}
    before = entrances.judged(run_dir)
    url = database.resolve("", str(tmp_path))
    for seed in mutations.seeds(TRIES):
        chance = random.Random(seed)
        share = chance.choice((0.02, 0.1, 0.3, 0.9))
        for what, path in places.items():
            theirs = [one["host"] == entrances.BAD.host and chance.random() < 0.6 for one in values[what]]
            entrances.write_lines(
                path, [mutations.extreme(one, chance, share) if bad else one for one, bad in zip(values[what], theirs)]
            )
        if seed % 2:
            entrances.collect_again(run_dir)
        after = entrances.judged(run_dir, with_files=True)
        assert {**after, entrances.BAD.host: ""} == {**before, entrances.BAD.host: ""}, seed
        with database.opened(url, make=True) as opened:
            assert importer.import_run(opened, str(run_dir)).run_id == run_dir.name, seed


def test_drives_and_tests_that_nobody_asked_for_fill_nobodys_report(run_dir):
    """One host brings ten thousand of them: they would take the report's time, its pages and its columns from all
    others.
    """
    run = json.loads((run_dir / "run.json").read_text())
    mine = [
        record
        for record in entrances.lines_of(run_dir / "results.jsonl")
        if record["host"] == entrances.BAD.host and record["kind"] != "host"
    ]
    made_up = [{**record, "drive": f"X{number}"} for number in range(5000) for record in mine[:2]]
    told = record_check.collected(
        [*made_up, *mine],
        run_dir.name,
        entrances.BAD.host,
        entrances.TIME,
        record_check.asked_of(run, entrances.BAD.host),
    )
    assert (
        len(told.records) == len(mine) + record_check.MOST_UNASKED
        and [record for record in told.records if record in mine] == mine
    )
    assert told.problems == ["it reports 10000 drives and tests that nobody asked for; 9800 of them are left out"]
    figures = {f"p{number // 1000}_{number % 1000}_latency_us": 1.0 for number in range(5000)}
    test = next(record for record in mine if record["kind"] == "test")
    (record,) = record_check.collected(
        [{**test, "metrics": figures}], run_dir.name, entrances.BAD.host, entrances.TIME
    ).records
    assert record["outcome"] == "error" and "metrics" in record["reasons"][0]
