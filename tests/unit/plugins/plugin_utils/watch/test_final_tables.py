# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's lines at the end of a play, from the section that a constructed fleet has."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_table, final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet

CHANGE = {
    "model": "M",
    "test": "iops",
    "metric": "iops",
    "by": 0.071,
    "verdict": "worse",
    "n": 9,
    "firmware": "1",
    "against": "1",
}


def shown(run, records, earlier=()):
    judgement = judge.judge(run, records)
    before = fleet_summary.before(run, records, judgement, earlier)
    found = fleet_summary.make(run, records, judge.valid_tests(run, records), judgement, before)
    return final_table.lines(run, records, {**judgement, "fleet": found})


def test_a_fleet_has_a_line_a_model_then_what_stands_out_and_only_drives_in_need():
    text = shown(
        *fleet(noise=0.001, slow={(2, 1): 0.8}, low={4: 0.7}, criteria=[{"metric": "write_iops", "min": 90_000}])
    )
    assert text[0].split() == list(final_tables.TITLES)
    assert text[1].split()[:5] == ["MTFDDAK960TDS", "D1MU020", "iops", "write_iops", "24"]
    assert [line.split(":")[0] for line in text[2:4]] == ["outlier", "low host"]
    assert "h2 S2-1 iops: write_" in text[2] and "h4: its 4 drives are 30 % worse" in text[3]
    assert "96 figures stand out; at most about" in text[4] and text[5].startswith("HOST")
    assert [line.split()[1] for line in text[6:-1]] == ["S2-1", "S4-0", "S4-1", "S4-2", "S4-3"] and text[
        -1
    ] == "24 drives: 19 pass, 5 fail"


def test_a_small_fleet_says_that_it_is_too_small_to_judge():
    text = shown(*fleet(hosts=1))
    assert text[2] == "too few peers to judge by, 8 are needed: MTFDDAK960TDS D1MU020 (4)" and text[3].startswith(
        "HOST"
    )


NOTHING = {
    "groups": [],
    "outliers": [],
    "low_hosts": [],
    "too_few": [],
    "comparisons": 0,
    "flagged": 0,
    "expected_false": 0,
}


@pytest.mark.parametrize(
    ("since", "line"),
    [
        (
            {"verdicts": [{"host": "h", "drive": "S", "before": "pass", "now": "not_tested"}], "changes": []},
            "since r1: h S: pass, now not tested",
        ),
        ({"verdicts": [], "changes": []}, "since r1: no verdict changed, and no figure was shown to"),
        (
            {
                "verdicts": [],
                "changes": [
                    {"model": "M", "test": "iops", "metric": "iops", "by": -0.071, "verdict": "better", "n": 9}
                ],
            },
            "since r1: M iops iops is 7.1 % better (n=9)",
        ),
    ],
)
def test_what_changed_since_the_last_run(since, line):
    assert final_tables.lines({**NOTHING, "since": {"run": "r1", **since}}, {}) == [line]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"nights": {"runs": ["r3", "r2"], "changes": [CHANGE]}},
            "against the 2 runs before: M iops iops is 7.1 % worse (n=9)",
        ),
        ({"baseline": {"run": "r0", "changes": []}}, "against the baseline r0: no figure was shown to change"),
        ({"baseline": {"run": "r0", "changes": [], "problem": "there is no report of it"}}, "there is no report of it"),
        (
            {"baseline": {"run": "r0", "changes": [{**CHANGE, "firmware": "2", "against": "1"}]}},
            "against the baseline r0: M with firmware 2 instead of 1 iops iops is 7.1 % worse (n=9)",
        ),
    ],
)
def test_what_changed_over_more_than_a_night(more, line):
    assert final_tables.lines({**NOTHING, **more}, {}) == [line]


def test_what_a_firmware_did_is_told():
    worse = {**CHANGE, "firmware": "2", "against": "1"}
    told = final_tables._longer({"firmwares": [worse, {**worse, "verdict": "can't tell yet"}]})
    assert told == ["in this run: M with firmware 2 instead of 1 iops iops is 7.1 % worse (n=9)"]


def test_a_controller_without_pandas_says_so():
    assert final_tables.lines({"problem": "the fleet is not judged: …"}, {}) == ["the fleet is not judged: …"]


def test_what_was_measured_otherwise_is_named_once_for_a_test():
    changes = [
        {"model": "M", "test": "iops", "metric": name, "by": 0.2, "verdict": "conditions changed", "n": 9}
        for name in ("iops", "mean_latency_us")
    ]
    for change in changes:
        change["changed"] = "LBA format 512 → 4096"
    told = final_tables._since({"since": {"run": "r1", "verdicts": [], "changes": changes}})
    assert told[1:] == ["since r1: M iops was not compared (n=9): conditions changed: LBA format 512 → 4096"]
    longer = {"nights": {"runs": ["r1", "r2"], "changes": changes}, "baseline": {"run": "r0", "changes": changes}}
    assert len([line for line in final_tables._longer(longer) if "conditions changed: LBA" in line]) == 2


def test_a_serial_that_two_hosts_claim_is_named():
    twice = [{"serial": "S1", "told": "h1 and h2 both claim it in run r1"}]
    assert final_tables.lines({**NOTHING, "claimed_twice": twice}, {}) == [
        "serial S1: h1 and h2 both claim it in run r1"
    ]
