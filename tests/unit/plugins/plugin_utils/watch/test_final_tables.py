# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's lines at the end of a play, from the section that a constructed fleet has."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.final_tables import lines
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs

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
    return final_tables.lines(run, records, {**judgement, "fleet": found})


def test_a_fleet_has_a_line_a_model_then_what_stands_out_and_only_drives_in_need():
    text = shown(
        *fleet(noise=0.001, slow={(2, 1): 0.8}, low={4: 0.7}, criteria=[{"metric": "write_iops", "min": 90_000}])
    )
    assert text[0].split() == list(final_tables.MODEL_TITLES)
    assert text[1].split()[:5] == ["MTFDDAK960TDS", "D1MU020", "iops", "write_iops", "24"]
    assert [line.split(":")[0] for line in text[2:4]] == ["outlier", "low host"]
    assert "h2 S2-1 iops: write_" in text[2] and "h4: its 4 drives are 30 % worse" in text[3]
    assert "96 figures stand out; at most about" in text[4] and text[5].startswith("HOST")
    assert [line.split()[1] for line in text[6:-2]] == ["S2-1", "S4-0", "S4-1", "S4-2", "S4-3"]
    assert text[-2].startswith("[1] 5 drives, the first is S2-1 on h2: iops: write_iops 80,") and all(
        "[1]" in line for line in text[6:-2]
    )
    assert text[-1] == "19 of 24 drives passed; 5 failed: write IOPS below its limit"


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
    assert final_tables.fleet_lines({**NOTHING, "since": {"run": "r1", **since}}, {}) == [line]


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
    assert final_tables.fleet_lines({**NOTHING, **more}, {}) == [line]


def test_what_a_firmware_did_is_told():
    worse = {**CHANGE, "firmware": "2", "against": "1"}
    told = final_tables._longer({"firmwares": [worse, {**worse, "verdict": "can't tell yet"}]})
    assert told == ["in this run: M with firmware 2 instead of 1 iops iops is 7.1 % worse (n=9)"]


def test_a_controller_without_pandas_says_so():
    assert final_tables.fleet_lines({"problem": "the fleet is not judged: …"}, {}) == ["the fleet is not judged: …"]


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
    assert final_tables.fleet_lines({**NOTHING, "claimed_twice": twice}, {}) == [
        "serial S1: h1 and h2 both claim it in run r1"
    ]


STEADY = [{"metric": "write_iops", "average": 41200.6}]


def drive(host, name, outcome="complete", message="", model="Sim 1"):
    return judged_runs.drive_record(outcome, host=host, drive=name, message=message, identity={"model": model})


def measured(host, name, test="iops", outcome="steady", steady_state=tuple(STEADY), rounds=7, metrics=None):
    figures = {"steady_state": list(steady_state), "rounds": rounds, "metrics": metrics or {}}
    return dict({"kind": "test", "host": host, "drive": name, "test": test, "outcome": outcome}, **figures)


def asked(*keys):
    return {"asked": [{"host": host, "drive": name} for host, name in keys]}


def words(text):
    return [" ".join(line.split()) for line in text]


@pytest.mark.parametrize("name", ["x" * 4096, "/dev/" + "y" * 4000])
def test_one_hosts_long_name_pushes_nobodys_result_away(name):
    shown = lines({}, [drive("good", "A1"), drive("bad", name, model="z" * 4000)], None)
    assert all(len(line) < 600 and "complete" in line for line in shown[1:3])


def test_without_a_report_it_tells_the_outcomes():
    records = [
        drive("h1", "A1"),
        measured("h1", "A1"),
        measured("h1", "A1", "wsat", "not_steady", rounds=25),
        drive("h1", "B2", "refused", "mounted on /"),
        {**judged_runs.COMMON, "kind": "host", "host": "h2", "state": "unreachable", "message": "ssh: timed out"},
    ]
    assert words(lines(asked(("h2", "C3"), ("h1", "A1"), ("h1", "B2")), records, None)) == [
        "HOST DRIVE MODEL RESULT TESTS",
        "h2 C3 no result yet ssh: timed out",
        "h1 A1 Sim 1 complete iops steady after 7 rounds, write 41,201 IOPS; wsat not steady, write 41,201 IOPS",
        "h1 B2 Sim 1 refused mounted on /",
        "3 drives: 1 no result yet, 1 complete, 1 refused",
    ]


def test_with_a_report_its_verdicts_count():
    verdicts = [("A1", "pass", ["steady"]), ("B2", "not_tested", ["the host did not answer", "twice", "thrice"])]
    summary = {
        "drives": [
            {"host": "h1", "drive": name, "model": "Sim 2", "verdict": verdict, "reasons": reasons}
            for name, verdict, reasons in verdicts
        ]
    }
    assert words(lines({}, [drive("h1", "A1"), measured("h1", "A1")], summary)) == [
        "HOST DRIVE MODEL RESULT TESTS",
        "h1 A1 Sim 1 pass iops steady after 7 rounds, write 41,201 IOPS",
        "h1 B2 Sim 2 not tested the host did not answer; twice",
        "1 of 2 drives passed; 1 not tested: the host did not answer",
    ]


@pytest.mark.parametrize(
    "record, text",
    [
        (
            measured("h", "d", steady_state=[], metrics={"read_bandwidth": 5e8}, outcome="complete"),
            "iops complete, read 500 MB/s",
        ),
        (
            measured("h", "d", steady_state=[{"metric": "iops", "average": None}], outcome="interrupted"),
            "iops interrupted",
        ),
        (measured("h", "d", steady_state=[], outcome="error"), "iops error"),
    ],
)
def test_a_test_shows_the_figure_that_it_has(record, text):
    assert lines({}, [drive("h", "d"), record], None)[1].endswith(text)


def test_a_large_fleet_shows_only_what_did_not_pass():
    records = [drive(f"h{n}", "A1") for n in range(300)] + [drive("bad", "A1", "error", "fio")]
    text = lines({}, records, None)
    assert len(text) == 3 and text[1].startswith("bad") and text[2] == "301 drives: 300 complete, 1 error"
    text = lines(asked(*[(f"h{n}", "A1") for n in range(300)]), [], None)
    assert text[-2:] == ["… and 260 more drives that need attention", "300 drives: 300 no result yet"]


def test_of_too_many_bad_drives_those_that_failed_by_themselves_come_first():
    keys = [("a", f"S{n}") for n in range(60)] + [("b", "T0"), ("b", "T1")]
    verdicts = {"T0": ("error", "fio"), "T1": ("fail", "worn")}
    judged = []
    for host, name in keys:
        verdict, why = verdicts.get(name, ("fail", "the host's fault"))
        of_host = {"host_fault": True} if host == "a" else {}
        judged.append({"host": host, "drive": name, "verdict": verdict, "reasons": [why], **of_host})
    text = words(lines(asked(*keys), [], {"drives": judged}))
    names = ", ".join(name for host, name in keys if host == "a")
    assert text[1:3] == ["b T1 fail worn", f"a 60 drives fail [1]: {names}"] and text[3].startswith("b T0 error")
    assert text[-2] == "[1] 60 drives: the host's fault"


def test_drives_of_one_host_that_have_figures_of_their_own_keep_their_lines():
    keys = [("a", f"S{n}") for n in range(30)]
    records = [measured(host, name, rounds=n, metrics={}) for n, (host, name) in enumerate(keys, start=1)]
    judged = [{"host": host, "drive": name, "verdict": "fail", "reasons": ["worn"]} for host, name in keys]
    text = words(lines(asked(*keys), records, {"drives": judged}))
    assert len([line for line in text if line.startswith("a S")]) == 30


def test_an_empty_run_has_no_table():
    assert lines({}, [], None) == ["0 drives"]


BOTH = {"bandwidth": 5e8, "iops": 122070.0, "write_bandwidth": 5e8, "write_iops": 122070.0}


@pytest.mark.parametrize(
    ("cells", "metrics", "text"),
    [
        (["rand-4k-w100-tc1-qd32", "seq-1024k-w100-tc1-qd32"], BOTH, "write 122,070 IOPS"),
        (["rand-512b-w100-tc1-qd32"], BOTH, "write 122,070 IOPS"),
        (["seq-128k-w100-tc1-qd32"], BOTH, "write 500 MB/s"),
        (["rand-64k-r65-tc1-qd32"], {**BOTH, "read_iops": 1.0}, "122,070 IOPS"),
        ([], BOTH, "write 122,070 IOPS"),
    ],
)
def test_a_test_without_steady_state_shows_what_its_block_size_makes_telling(cells, metrics, text):
    run = {**asked(("h", "d")), "tests": {"iops": {"cells": cells}}}
    shown = lines(
        run, [drive("h", "d"), measured("h", "d", steady_state=[], metrics=metrics, outcome="complete")], None
    )[1]
    assert shown.endswith(f"iops complete, {text}")


def test_a_pass_against_nothing_says_so():
    drives = [
        {"host": "h1", "drive": name, "verdict": "pass", "reasons": [reason]}
        for name, reason in (("A1", "no criterion applied"), ("B2", "met"))
    ]
    text = words(lines({}, [], {"drives": drives}))
    assert text[1:] == ["h1 A1 pass no criterion applied", "h1 B2 pass", "all 2 drives passed (1 held to no criterion)"]
