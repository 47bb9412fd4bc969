# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of summary.json over constructed fleets: known bad drives, bad hosts, and none."""

from __future__ import annotations

import json
import random

import jsonschema
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import summary as run_summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema as schemas
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.fleet import judging, section
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import changes, files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import closing_fleet
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import MODEL, SNAPSHOT, fleet, measured


def made(run, records, earlier=(), baseline=("", None)):
    """The section, held to its schema and to be JSON."""
    judgement = judge.judge(run, records)
    before = section.before(run, records, judgement, earlier)
    found = section.make(run, records, judge.valid_tests(run, records), judgement, before, baseline)
    schema = schemas.load("summary")
    jsonschema.Draft202012Validator({**schema["$defs"]["fleet"], "$defs": schema["$defs"]}).validate(
        json.loads(json.dumps(found, allow_nan=False))
    )
    return found


def summary(run, records, earlier=()):
    """As the report writes it."""
    judgement = judge.judge(run, records)
    drives = {(record["host"], record["drive"]): record for record in records if record["kind"] == "drive"}
    return json.loads(files.summary(run, judgement, made(run, records, earlier), None, drives))


def flagged(found):
    return sorted({(item["host"], item["drive"]) for item in found["outliers"]})


@pytest.mark.parametrize("seed", range(5))
def test_a_fleet_of_good_drives_has_nothing_to_tell(seed):
    found = made(*fleet(seed=seed))
    assert (found["outliers"], found["low_hosts"], found["too_few"], found["since"]) == ([], [], [], None)
    group = next(item for item in found["groups"] if item["metric"] == "write_iops")
    assert (group["n"], group["model"], group["firmware"]) == (24, "MTFDDAK960TDS", "D1MU020")
    assert group["median"] == pytest.approx(100_000, rel=0.01) and 0 < group["spread"] < 0.02
    assert found["comparisons"] == 24 * 4 and found["expected_false"] == pytest.approx(0.05)


def test_a_bad_drive_is_named_with_its_peers_median_and_its_host_is_not():
    found = made(*fleet(slow={(2, 1): 0.8}))
    assert flagged(found) == [("h2", "S2-1")] and found["low_hosts"] == []
    worst = next(item for item in found["outliers"] if item["metric"] == "write_iops")
    assert worst["by_pct"] == pytest.approx(20, abs=3) and worst["n"] == 24 and worst["cause"] == "drive"
    assert "worse than the median of 23 peers" in worst["reason"]


def test_a_faster_drive_is_none():
    assert made(*fleet(slow={(2, 1): 1.3}))["outliers"] == []


def test_a_bad_host_is_named_with_what_differs_and_its_drives_are_not_blamed():
    other = {**SNAPSHOT, "bios": "AMI 2.4", "command_line": "root=UUID=2 quiet intel_idle.max_cstate=9"}
    found = made(*fleet(low={3: 0.82}, snapshots={3: other}))
    assert found["outliers"] == []
    [host] = found["low_hosts"]
    assert (
        host["host"] == "h3"
        and host["by_pct"] == pytest.approx(18, abs=3)
        and sorted(host["drives"]) == ["S3-0", "S3-1", "S3-2", "S3-3"]
    )
    assert host["differs"] == [
        "bios: AMI 2.4 where 5 of 5 others have AMI 2.6",
        "kernel argument intel_idle.max_cstate: 9 where 5 of 5 others have none",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_records_changes_nothing_that_is_told(seed):
    """Figures that say the same, IOPS and bandwidth of one block size, are as far off to the last digit but rounding;
    two hosts are as low as each other.
    """
    run, records = fleet(hosts=10, noise=0, low={3: 0.8, 7: 0.8}, slow={(5, 1): 0.7, (2, 2): 0.7})
    first = made(run, records)
    shuffled = random.Random(seed).sample(records, len(records))
    again = made({**run, "asked": random.Random(seed).sample(run["asked"], len(run["asked"]))}, shuffled)
    assert [(host["host"], host["metric"]) for host in first["low_hosts"]] == [
        ("h3", "write_iops"),
        ("h7", "write_iops"),
    ]
    assert first["low_hosts"][0]["drives"] == [f"S3-{number}" for number in range(4)]
    for key in ("low_hosts", "outliers", "claimed_twice"):
        assert again[key] == first[key]


def test_c_states_governor_and_irqbalance_are_among_the_differences():
    """From the whole snapshot of a host, through the short one that goes with its records."""

    def short(limit_us, governor, irqbalance):
        states = [
            {"name": "POLL", "latency_us": 0, "disabled": False},
            {"name": "C6", "latency_us": 133, "disabled": False},
        ]
        tuned = {"idle_states": states, "cpu_dma_latency_us": limit_us, "governor": {governor: "0-7"}}
        return run_summary.brief({"tunables": {**tuned, "services": {"irqbalance.service": irqbalance}}})

    snapshots = {host: short(0, "performance", "inactive") for host in range(6)}
    snapshots[3] = short(2_000_000_000, "powersave", "active")
    [host] = made(*fleet(low={3: 0.82}, snapshots=snapshots))["low_hosts"]
    assert host["differs"] == [
        "C-states: on, down to C6 where 5 of 5 others have off",
        "governor: powersave where 5 of 5 others have performance",
        "irqbalance: active where 5 of 5 others have inactive",
    ]


def test_a_host_is_not_low_where_others_are_as_far_off_on_the_good_side():
    """Of many hosts with long-tailed noise one is always far off; where none is fast, none is slow by chance."""
    assert [item["host"] for item in made(*fleet(hosts=12, low={3: 0.93}, noise=0.003))["low_hosts"]] == ["h3"]
    assert made(*fleet(hosts=12, low={3: 0.93, 5: 1.075, 7: 1.07}, noise=0.003))["low_hosts"] == []


def test_a_host_whose_rates_are_low_comes_before_one_that_has_worse_tails():
    run, records = fleet(hosts=10, low={3: 0.85})
    for record in records:
        if (record["kind"], record["host"]) == ("test", "h5"):
            record["metrics"]["write_p99_9_latency_us"] *= 3
    low = made(run, records)["low_hosts"]
    assert [item["host"] for item in low] == ["h3", "h5"] and low[0]["by_pct"] < low[1]["by_pct"]


def test_a_bad_drive_on_a_bad_host_is_still_named():
    found = made(*fleet(hosts=8, low={3: 0.82}, slow={(3, 0): 0.6, (5, 2): 0.8}))
    assert [item["host"] for item in found["low_hosts"]] == ["h3"] and flagged(found) == [
        ("h3", "S3-0"),
        ("h5", "S5-2"),
    ]


def test_two_bad_drives_of_four_do_not_make_a_bad_host():
    found = made(*fleet(slow={(1, 0): 0.7, (1, 1): 0.7}))
    assert found["low_hosts"] == [] and flagged(found) == [("h1", "S1-0"), ("h1", "S1-1")]


def test_a_host_with_few_drives_cannot_be_told_from_its_drive():
    found = made(*fleet(hosts=12, drives=1, slow={(4, 0): 0.7}))
    assert {item["cause"] for item in found["outliers"]} == {"can't tell"}


def night(name, began, host, label="S4-0", until="", serial="S4-0", low=True):
    """An earlier run's summary: one drive of one host."""
    drive = {"host": host, "drive": label, "serial": serial, "verdict": "pass", "tests": []}
    outliers = [{"serial": serial, "host": host, "drive": label, "until": until}] if low else []
    return {"run": {"id": name, "started": began}, "drives": [drive], "fleet": {"outliers": outliers}}


BEFORE = night("r1", "2026-11-20T01:00:00Z", "h9", until="2026-11-20T03:00:00Z")


def test_a_drive_that_was_low_on_two_hosts_is_the_drive():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    found = made(run, records, [BEFORE])
    assert {(item["cause"], item["why"]) for item in found["outliers"]} == {("drive", "it was low on h9 and on h4")}
    assert found["claimed_twice"] == []


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        # The operator calls the drive of h9 otherwise: only h9 says that it is this one.
        ([night("r1", "2026-11-20T01:00:00Z", "h9", "wwn-1", "2026-11-20T03:00:00Z")], ""),
        # When h9 had it nobody knows.
        ([night("r1", "2026-11-20T01:00:00Z", "h9")], ""),
        ([night("r1", "", "h9", until="2026-11-20T03:00:00Z")], ""),
        # Still measured on h9 as this run began.
        (
            [night("r1", "2026-11-20T01:00:00Z", "h9", until="2026-11-22T01:30:00Z")],
            "h9 measured it until 2026-11-22T01:30:00Z, and h4 claims it since 2026-11-22T01:00:00Z",
        ),
        # There and back, also where it was not low every time.
        (
            [BEFORE, night("r0", "2026-11-19T01:00:00Z", "h4", low=False)],
            "it is claimed by h4, then h9, then h4",
        ),
        # Of both in a run before, by a drive that was no outlier.
        (
            [
                {**BEFORE, "drives": [*BEFORE["drives"], *night("r1", "", "h4", low=False)["drives"]]},
                night("r0", "2026-11-19T01:00:00Z", "h8", until="2026-11-19T03:00:00Z"),
            ],
            "h9 and h4 both claim it in run r1",
        ),
    ],
)
def test_a_serial_that_a_host_may_have_made_up_blames_no_drive(earlier, told):
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    found = made(run, records, earlier)
    assert {item["cause"] for item in found["outliers"]} == {"can't tell"}
    assert [item["told"] for item in found["claimed_twice"]] == ([told] if told else [])
    assert all(told in item["why"] and "low on" not in item["why"] for item in found["outliers"])


def test_an_outlier_of_tonight_tells_later_runs_until_when_its_drive_was_there():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    for record in records:
        if record["kind"] == "test":
            record["finished"] = "2026-11-22T02:00:00.5Z"
    before = {**summary(run, records), "run": {"id": "r2", "name": "qualify", "started": run["started"]}}
    later, more = fleet(hosts=12, drives=1, slow={(7, 0): 0.7}, run_id="r3")
    later["started"] = "2026-11-23T01:00:00Z"
    # The operator moved S4-0 from h4 to h7.
    for each in [*later["asked"], *more]:
        if each.get("drive") in ("S4-0", "S7-0"):
            each["drive"] = {"S4-0": "S7-0", "S7-0": "S4-0"}[each["drive"]]
        if each.get("kind") == "drive":
            each["identity"]["serial"] = each["drive"]
    found = made(later, more, [before])["outliers"]
    assert {item["why"] for item in found} == {"it was low on h4 and on h7"}
    for record in records:
        record.pop("finished", None)
    found = made(later, more, [{**summary(run, records), "run": before["run"]}])["outliers"]
    assert {item["cause"] for item in found} == {"can't tell"}


@pytest.mark.parametrize(("drives", "few"), [(7, [(7, 8)]), (8, [])])
def test_fewer_than_eight_are_reported_and_not_judged(drives, few):
    found = made(*fleet(hosts=1, drives=drives, slow={(0, 0): 0.5}))
    assert [(item["n"], item["needed"]) for item in found["too_few"]] == few and found["groups"][0]["n"] == drives
    assert (flagged(found) == []) == bool(few)


def test_another_firmware_is_no_peer_and_both_are_compared():
    run, records = fleet(hosts=4)
    other, newer = fleet(hosts=4, firmware="D1MU030", low=dict.fromkeys(range(4), 0.8), seed=2)
    for record in newer + other["asked"]:
        record["host"] = "n" + record["host"]
    run["asked"] += other["asked"]
    found = made(run, records + newer)
    assert found["outliers"] == [] and {item["n"] for item in found["groups"]} == {16}
    told = next(item for item in found["firmwares"] if item["metric"] == "write_iops")
    assert (told["firmware"], told["against"], told["verdict"]) == ("D1MU030", "D1MU020", "worse") and told[
        "by"
    ] == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize(("names", "told"), [(("1.9", "1.10"), ("1.10", "1.9")), (("1.9", None), None)])
def test_the_newer_firmware_is_the_one_that_people_count_as_newer(names, told):
    run, records = fleet(hosts=4)
    for record in records:
        if record["kind"] == "drive":
            record["identity"]["firmware"] = names[record["host"] in ("h2", "h3")]
    found = {(item["firmware"], item["against"]) for item in made(run, records)["firmwares"]}
    assert found == ({told} if told else set())


def test_how_a_tool_pads_a_model_makes_no_peers_of_their_own():
    run, records = fleet(hosts=2, slow={(1, 1): 0.5})
    padded, plain = f"{MODEL[:4]}   {MODEL[4:]} ", f"{MODEL[:4]} {MODEL[4:]}"
    for record in records:
        if record["kind"] == "drive":
            record["identity"]["model"] = padded if record["host"] == "h1" else plain
    found = made(run, records)
    assert not found["too_few"] and {item["drive"] for item in found["outliers"]} == {"S1-1"}


def test_what_did_not_count_is_nobodys_peer():
    run, records = fleet(hosts=2)
    next(record for record in records if record["kind"] == "test")["outcome"] = "invalid"
    found = made(run, records)
    assert [item["n"] for item in found["too_few"]] == [7]


def test_since_the_last_run_a_verdict_and_a_model_changed():
    limit = [{"metric": "write_iops", "min": 95_000}]
    before = summary(*fleet(run_id="r1", criteria=limit, noise=0.001))
    run, records = fleet(criteria=limit, low=dict.fromkeys(range(6), 0.9), noise=0.001)
    found = made(run, records, [before])["since"]
    assert (
        found["run"] == "r1"
        and len(found["verdicts"]) == 24
        and found["verdicts"][0] == {"host": "h0", "drive": "S0-0", "before": "pass", "now": "fail"}
    )
    told = next(item for item in found["changes"] if item["metric"] == "write_iops")
    assert told["verdict"] == "worse" and told["n"] == 24 and told["by"] == pytest.approx(1 / 0.9 - 1, abs=0.01)


def test_since_the_last_run_a_host_became_slow_and_one_is_well():
    # And h5, which is slow now, was measured nowhere before; h1 was slow, and nothing of it counts now.
    run, records = fleet(low={1: 0.8, 3: 0.8}, run_id="r1")
    before = summary(run, [record for record in records if record["host"] != "h5"])
    assert [entry["host"] for entry in before["fleet"]["low_hosts"]] == ["h1", "h3"]
    now, records = fleet(low={4: 0.8, 5: 0.8}, seed=2)
    found = made(now, [each for each in records if each["kind"] != "test" or each["host"] != "h1"], [before])
    assert {entry["host"] for entry in found["low_hosts"]} == {"h4", "h5"}
    assert (found["since"]["hosts_low"], found["since"]["hosts_well"]) == (["h4"], ["h3"])
    told = changes.news(found, {})["told"]
    assert told[:2] == ["host h4 is slow as a whole now", "host h3 is no longer slow"]
    text = "\n".join(closing_fleet.lines(found, {"iops": "write_iops"}))
    assert "since r1: h4 is slow as a whole now" in text and "since r1: h3 is no longer slow" in text


def test_the_last_nights_tell_more_than_the_last_one():
    """The night before was as bad as this one: only the nights before that say that the drives were better."""
    low = dict.fromkeys(range(6), 0.9)
    nights = [
        summary(*fleet(run_id=f"r{night}", low=low if night == 4 else None, seed=night)) for night in (4, 3, 2, 1, 0)
    ]
    found = made(*fleet(run_id="r5", low=low), nights)
    assert {item["verdict"] for item in found["since"]["changes"]} == {"same"} and found["nights"]["runs"] == [
        "r4",
        "r3",
        "r2",
        "r1",
        "r0",
    ]
    told = next(item for item in found["nights"]["changes"] if item["metric"] == "write_iops")
    assert (told["verdict"], told["n"], told["nights"]) == ("worse", 24, 5) and told["by"] == pytest.approx(
        1 / 0.9 - 1, abs=0.02
    )
    repeats = next(item for item in found["repeatability"] if item["metric"] == "write_iops")
    assert (repeats["drives"], repeats["runs"]) == (24, 6) and 0.01 < repeats["cv"] < repeats["cv_at_most"] < 0.1
    assert made(*fleet())["nights"] is None and made(*fleet())["repeatability"] == []


def test_a_firmware_that_the_same_drives_got_is_named():
    before = summary(*fleet(run_id="r1"))
    found = made(*fleet(firmware="D1MU030", low=dict.fromkeys(range(6), 0.9)), [before])["since"]["changes"]
    assert {(item["firmware"], item["against"], item["verdict"]) for item in found} == {("D1MU030", "D1MU020", "worse")}


def test_a_baseline_is_compared_with_and_one_without_a_report_is_told():
    accepted = summary(*fleet(run_id="r0", noise=0.001))
    run, records = fleet(low=dict.fromkeys(range(6), 0.9), noise=0.001)
    found = made(run, records, (), ("r0", accepted))["baseline"]
    assert found["run"] == "r0" and {item["verdict"] for item in found["changes"]} == {"worse"}
    lost = made(run, records, (), ("r0", None))["baseline"]
    assert "run report.yml with ssd_run_id=r0" in lost["problem"] and made(run, records)["baseline"] is None


def test_an_empty_run_has_an_empty_fleet():
    found = made({"run": {"id": "r"}, "asked": [], "tests": {}}, [])
    assert found["groups"] == [] and found["too_few"] == [] and found["comparisons"] == 0


def test_without_pandas_the_run_is_judged_and_says_what_to_install(monkeypatch):
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}])
    monkeypatch.setattr(judging.packages, "PACKAGES", ("pandas", "no_such_package"))
    judged = judging.judge_run("/nowhere", run, records)
    assert "lacks no_such_package; run: " in judged.fleet["problem"] and judged.fleet["groups"] == []
    assert judged.judgement["verdicts"]["invalid"] == 24


def test_relative_criteria_are_judged_by_the_peers(tmp_path):
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}], slow={(2, 1): 0.8})
    drives = {drive["drive"]: drive for drive in judging.judge_run(str(tmp_path), run, records).judgement["drives"]}
    assert [name for name, drive in drives.items() if drive["verdict"] != "pass"] == ["S2-1"]
    assert "min_of_median 0.9: median of 23 peers)" in drives["S2-1"]["reasons"][0]
    # Of a single cell too.
    run["criteria"] = [{"test": "iops", "cell": "c", "metric": "write_iops", "min_of_median": 0.9}]
    assert judging.judge_run(str(tmp_path), run, records).judgement["verdicts"]["fail"] == 1


@pytest.mark.parametrize(
    ("more", "verdict", "reason"),
    [
        ([], "invalid", "iops: too few peers: 4 like it, 8 are needed (criterion write_iops min_of_median 0.9)"),
        (
            [{"metric": "write_iops", "min": 5}],
            "pass",
            "iops: too few peers: 4 like it, 8 are needed (criterion write_iops min_of_median 0.9)",
        ),
    ],
)
def test_too_few_peers_are_no_pass_where_nothing_else_is_held(tmp_path, more, verdict, reason):
    run, records = fleet(hosts=1, criteria=[{"metric": "write_iops", "min_of_median": 0.9}, *more])
    drives = judging.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert {drive["verdict"] for drive in drives} == {verdict} and all(reason in drive["reasons"] for drive in drives)


def test_a_baseline_run_is_held_drive_by_drive(tmp_path):
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary(*fleet(hosts=1, run_id="r1"))))
    run, records = fleet(
        hosts=1, slow={(0, 2): 0.7}, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    )
    drives = judging.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert [drive["verdict"] for drive in drives] == ["pass", "pass", "fail", "pass"] and "in run r1" in drives[2][
        "reasons"
    ][0]
    run["criteria"][0]["baseline"] = "r0"
    assert judging.judge_run(str(tmp_path), run, records).judgement["verdicts"]["invalid"] == 4


def test_a_host_outvotes_nobody_with_drives_that_nobody_asked_for(tmp_path):
    """As many as the gate takes of them, of the fleet's own model and far faster: the others would miss the median."""
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}])
    claimed = [dict(record, host="h5", drive="made up") for record in records if record["kind"] == "drive"][:1]
    for number in range(200):
        records.append(dict(claimed[0], drive=f"F{number}", identity=dict(claimed[0]["identity"], serial=f"F{number}")))
        records.append(measured("h5", f"F{number}", 300_000 + number))
    judged = judging.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert {drive["verdict"] for drive in judged if not drive["drive"].startswith("F")} == {"pass"}
    found = made(run, records)
    assert (found["outliers"], found["low_hosts"]) == ([], [])


def test_a_host_that_claims_anothers_serial_takes_it_no_baseline(tmp_path):
    """The inventory names S0-0 by its serial; h1 says the same of a drive that is called otherwise."""
    run, records = fleet(hosts=2, run_id="r1")
    for record in records:
        if record["kind"] == "drive" and record["host"] == "h1":
            record["identity"]["serial"] = "S0-0"
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    for order in (1, -1):
        told = summary(run, records)
        told["drives"] = told["drives"][::order]
        (folder / "summary.json").write_text(json.dumps(told))
        of_now = fleet(hosts=1, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}])
        drives = judging.judge_run(str(tmp_path), *of_now).judgement["drives"]
        assert {drive["verdict"] for drive in drives} == {"pass"}


def test_an_outlier_alone_fails_nothing():
    run, records = fleet(slow={(2, 1): 0.5}, criteria=[{"metric": "write_iops", "min": 1}])
    assert judge.judge(run, records)["verdicts"]["pass"] == 24 and flagged(made(run, records))


def test_a_tail_alone_says_nothing_against_a_drive_of_a_low_host():
    run, records = fleet(hosts=8, low={3: 0.82})
    odd = next(record for record in records if record["kind"] == "test" and record["drive"] == "S3-1")
    for metrics in (odd["metrics"], odd["cells"][0]["metrics"]):
        metrics["write_p99_9_latency_us"] *= 2
    (outlier,) = made(run, records)["outliers"]
    assert (outlier["drive"], outlier["metric"]) == ("S3-1", "write_p99_9_latency_us")
    assert outlier["cause"] == "can't tell" and "h3 is low as a whole" in outlier["why"]


def test_a_record_of_a_test_without_its_drive_is_still_a_figure():
    run, records = fleet(hosts=1, drives=0)
    run["asked"] = [{"host": "h0", "drive": "S9"}]
    assert made(run, [*records, measured("h0", "S9", 5.0)])["too_few"][0]["model"] == ""


def of_files(run, records):
    """The same fleet of loop devices: no serial numbers, and the same file on every host."""
    for each in [*records, *run["asked"]]:
        if "drive" in each:
            each["drive"] = f"/var/ssd{each['drive'][-1]}"
        if each.get("kind") == "drive":
            each["identity"]["serial"] = None
    return run, records


def test_the_same_file_on_another_host_is_another_drive():
    now = of_files(*fleet(hosts=12, drives=1, slow={(4, 0): 0.7, (7, 0): 0.7}))
    before = summary(*of_files(*fleet(hosts=12, drives=1, slow={(9, 0): 0.7}, run_id="r1", seed=5)))
    found = made(*now, earlier=[before])
    assert before["fleet"]["outliers"] and {item["cause"] for item in found["outliers"]} == {"can't tell"}
    assert {change["n"] for change in found["since"]["changes"]} == {12}
    assert {(item["drives"], item["runs"]) for item in found["repeatability"]} == {(12, 2)}


def test_two_drives_of_one_serial_were_not_swapped():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7, (7, 0): 0.7})
    for record in records:
        if record["kind"] == "drive" and record["host"] in ("h4", "h7"):
            record["identity"]["serial"] = "0123456789"
    assert {item["cause"] for item in made(run, records)["outliers"]} == {"can't tell"}


def test_a_baseline_of_the_same_file_on_another_host_is_none(tmp_path):
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    before = of_files(*fleet(hosts=1, drives=1, run_id="r1"))
    (folder / "summary.json").write_text(json.dumps(summary(*before)))
    run, records = of_files(
        *fleet(hosts=2, drives=1, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}])
    )
    told = judging.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert [drive["verdict"] for drive in told] == ["pass", "invalid"]


def test_a_low_host_has_all_of_its_low_drives_of_whatever_model():
    run, records = fleet(low={4: 0.8})
    other, more = fleet(low={4: 0.7}, seed=2)
    for each in more + other["asked"]:
        each.update({"drive": "T" + each["drive"]} if "drive" in each else {})
        if each.get("kind") == "drive":
            each["identity"].update(model="OTHER", serial=each["drive"])
    run["asked"] += other["asked"]
    [low] = made(run, records + [record for record in more if record["kind"] != "host"])["low_hosts"]
    assert low["model"] == "OTHER" and len(low["drives"]) == 8


def test_what_has_too_few_peers_is_a_baseline_and_a_night_all_the_same(tmp_path):
    """Its verdict is invalid, and its figures are as good as any."""
    share = {"metric": "write_iops", "min_of_median": 0.9}
    before = summary(*fleet(hosts=1, drives=7, run_id="r1", criteria=[share]))
    assert {drive["verdict"] for drive in before["drives"]} == {"invalid"}
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(before))
    run, records = fleet(
        hosts=1, drives=7, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    )
    judged = judging.judge_run(str(tmp_path), run, records)
    assert judged.judgement["verdicts"]["pass"] == 7
    assert {change["n"] for change in made(run, records, [before])["since"]["changes"]} == {7}


def test_drives_with_metadata_beside_their_blocks_are_peers_of_their_own():
    """512+8 is another LBA format than 512+0; before Linux 6.8 the drive's own word after its purge tells it."""
    run, records = fleet(hosts=5)
    for record in records:
        if record["kind"] == "drive" and record["host"] == "h0":
            record["identity"]["metadata_bytes"] = 8
        elif record["kind"] == "drive" and record["host"] == "h1":
            record["identity"]["metadata_bytes"] = None
        elif record["kind"] == "test" and record["host"] == "h1":
            record["purge"] = {"lba_format_after": {"index": 1, "data_bytes": 512, "metadata_bytes": 8}}
    assert {(group["metadata_bytes"], group["n"]) for group in made(run, records)["groups"]} == {(0, 12), (8, 8)}


def test_drives_on_links_of_other_speeds_are_no_peers():
    run, records = fleet(hosts=5)
    for record in records:
        if record["kind"] == "test":
            record["link"] = "8 GT/s x2" if record["host"] in ("h0", "h1") else "8 GT/s x4"
    assert {(group["link"], group["n"]) for group in made(run, records)["groups"]} == {
        ("8 GT/s x2", 8),
        ("8 GT/s x4", 12),
    }
