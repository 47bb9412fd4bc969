# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of summary.json over constructed fleets: known bad drives, bad hosts, and none."""

from __future__ import annotations

import random

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import SNAPSHOT, fleet
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.peers.sections import flagged, made


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


def test_a_bad_host_is_named_with_its_bios_attributes_unless_nobody_knows_them():
    def snapshot(settings="read", **attributes):
        return {**SNAPSHOT, "bios_settings": settings, "bios_attributes": attributes}

    rest = {number: snapshot(ProcC1E="Off", Delay=0) for number in range(6)}
    for mine, differs in (
        (snapshot(ProcC1E="On", Delay=0), ["BIOS attribute ProcC1E: On where 5 of 5 others have Off"]),
        (snapshot("unknown (x)"), ["BIOS attributes: unknown (x) where 5 of 5 others have read"]),
    ):
        found = made(*fleet(low={3: 0.82}, snapshots={**rest, 3: mine}))
        assert [host["differs"] for host in found["low_hosts"]] == [differs]


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
        return base.to_json(host_brief.brief({"tunables": {**tuned, "services": {"irqbalance.service": irqbalance}}}))

    snapshots = {host: short(0, "performance", "inactive") for host in range(6)}
    snapshots[3] = short(2_000_000_000, "powersave", "active")
    [host] = made(*fleet(low={3: 0.82}, snapshots=snapshots))["low_hosts"]
    assert host["differs"] == [
        "C-states: on, down to C6 where 5 of 5 others have off",
        "governor: powersave where 5 of 5 others have performance",
        "irqbalance: active where 5 of 5 others have inactive",
    ]


def test_what_changes_figures_by_stealth_is_among_the_differences():
    def short(clock, **mitigations):
        tuned = {"clock_source": clock, "nvme_poll_queues": "0", "queue": {"nvme0n1": {"hardware_queues": 8}}}
        tuned["no_turbo"] = "0" if clock == "tsc" else "1"
        return base.to_json(host_brief.brief({"tunables": tuned, "cpu": {"mitigations": mitigations}}))

    snapshots = {host: short("tsc", retbleed="Mitigation: untrained return thunk; SMT disabled") for host in range(6)}
    snapshots[3] = short("hpet", retbleed="Vulnerable")
    [host] = made(*fleet(low={3: 0.82}, snapshots=snapshots))["low_hosts"]
    assert host["differs"] == [
        "clock source: hpet where 5 of 5 others have tsc",
        "mitigation of retbleed: Vulnerable where 5 of 5 others have Mitigation: untrained return thunk",
        "turbo: off where 5 of 5 others have on",
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
