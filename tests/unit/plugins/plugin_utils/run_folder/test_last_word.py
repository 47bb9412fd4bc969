# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a message tells of a night: never of another one."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import last_word
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.last_word import Word

OLD, NEW = "20261120T200000Z-nightly", "20261121T200000Z-nightly"


@pytest.fixture
def results(tmp_path):
    """Two nights, the older one with a report."""
    for run_id, started in ((OLD, "2026-11-20T20:00:00Z"), (NEW, "2026-11-21T20:00:00Z")):
        (tmp_path / run_id / "report").mkdir(parents=True)
        about = {"run": {"id": run_id, "name": "nightly"}, "started": started, "asked": [], "tests": {}}
        (tmp_path / run_id / "run.json").write_text(json.dumps(about))
    (tmp_path / OLD / "report/message.txt").write_text(f"{OLD}: all 2 drives passed\n")
    return str(tmp_path)


@pytest.mark.parametrize(
    "word, since_s, told",
    [
        (None, 0, f"{NEW}: no report in "),
        (Word(100, "", "nightly: not started"), 0, "nightly: not started"),
        (Word(100, OLD, ""), 50, f"{OLD}: all 2 drives passed"),
        (Word(100, OLD, "Run is still at work"), 0, f"Run is still at work\n{OLD}: all 2 drives passed"),
        (Word(100, NEW, ""), 50, f"{NEW}: no report in "),
        (Word(100, OLD, ""), 101, "nightly: nothing was begun"),
        (None, 1, "nightly: nothing was begun"),
    ],
)
def test_a_message_tells_of_the_last_night_and_no_other(results, word, since_s, told):
    if word:
        last_word.write(results, "nightly", word)
    assert last_word.message(results, "", "nightly", since_s).text.startswith(told)


def test_plan_mode_is_told_of_as_what_it_is(results):
    last_word.write(results, "nightly", Word(100, OLD, ""))
    told = last_word.message(results, "", "nightly", 101, plans_only=True).text
    assert told == "nightly: nothing was begun: with ssd_mode=plan the play only prints the plan"


def test_a_run_is_told_of_by_its_id_and_damage_is_nothing(results):
    found = last_word.message(results, OLD, "other")
    assert (found.text, found.page) == (f"{OLD}: all 2 drives passed", f"{results}/{OLD}/report/index.html")
    assert last_word.message(results, "../etc", "nightly").text.startswith("../etc: no report")
    assert last_word.message(results, "", "other").text == f"other: no run of this name in {results}"
    last_word.write(results, "../other", Word(1, OLD))
    last_word.write(results, "nightly", Word(1, OLD))
    with open(f"{results}/_nights/nightly.json", "w") as file:
        file.write("[")
    assert last_word.read(results, "nightly") is None and last_word.read(results, "../other") is None
