# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says of the threads that hosts chose, and which drives are compared."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import comparability, judge
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs

SEQUENTIAL, RANDOM = "seq-128k-r100-tcauto-load32", "rand-4k-w100-tcauto-load128"


def load(cell, threads):
    depth = int(cell.rpartition("load")[2])
    return {"cell": cell, "threads": threads, "queue_depth": depth // threads, "cpus": 8}


def remarks(*drives):
    """{drive: remarks on its threads}. drives: (name, loads)."""
    names = [name for name, _loads in drives]
    run = judged_runs.run_json(asked=[("h1", name) for name in names])
    records = [judged_runs.test_record(drive=name, loads=loads) for name, loads in drives]
    records += [judged_runs.drive_record(drive=name, identity={"model": judged_runs.MODEL}) for name in names]
    found = judge.judge(run, records)["drives"]
    return {each["drive"]: each["tests"][0]["remarks"] for each in found}


def test_the_chosen_threads_are_told_of_each_test():
    told = remarks(("S1", [load(SEQUENTIAL, 2), load(RANDOM, 4)]), ("S2", [load(SEQUENTIAL, 2), load(RANDOM, 8)]))
    assert told == {
        drive: [
            f"fio had as many threads as it needed for this drive: {SEQUENTIAL} 2 x depth 16, {RANDOM} {random}",
        ]
        for drive, random in (("S1", "4 x depth 32"), ("S2", "8 x depth 16"))
    }


def test_drives_of_a_model_with_other_numbers_of_sequential_streams_are_told():
    told = remarks(*((f"S{count}", [load(SEQUENTIAL, count)]) for count in (1, 2, 4)))
    assert told["S1"][1:] == [
        f"{SEQUENTIAL}: 1 stream here, 2 or 4 on other drives of this model; several sequential streams are another "
        "load than one"
    ]
    assert "2 streams here, 1 or 4 on other drives" in told["S2"][1]


def test_random_cells_and_other_models_are_no_other_load():
    assert all(len(told) == 1 for told in remarks(("S1", [load(RANDOM, 1)]), ("S2", [load(RANDOM, 4)])).values())
    run = judged_runs.run_json(asked=[("h1", "S1"), ("h1", "S2")])
    records = [judged_runs.test_record(drive=f"S{count}", loads=[load(SEQUENTIAL, count)]) for count in (1, 2)]
    records += [judged_runs.drive_record(drive=f"S{count}", identity={"model": f"M{count}"}) for count in (1, 2)]
    assert all(len(each["tests"][0]["remarks"]) == 1 for each in judge.judge(run, records)["drives"])


@pytest.mark.parametrize(
    "loads", [None, [], [{"cell": "rand-4k-w100-tc1to8-load256", "threads": 4, "queue_depth": 64}]]
)
def test_a_test_that_fixes_its_threads_has_no_remark(loads):
    assert remarks(("S1", loads)) == {"S1": []}


def test_drives_are_peers_whatever_number_was_chosen_but_for_sequential_streams():
    one, other = ({"loads": [load(RANDOM, count)]} for count in (1, 2))
    assert comparability.load(one) == comparability.load(other) == ""
    one, other = ({"loads": [load(SEQUENTIAL, count), load(RANDOM, 1)]} for count in (1, 2))
    assert comparability.load(one) == "1 threads x depth 32" and comparability.load(other) == "2 threads x depth 16"
