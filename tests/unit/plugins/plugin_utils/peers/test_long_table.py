# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The long table: from records, and as the store has it."""

from __future__ import annotations

import pandas
import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import long_table, outliers
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.frames import LONG
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import comparability, judge
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import MODEL, fleet


def table(cells=False, **options):
    run, records = fleet(**options)
    run["asked"][0]["engine"] = "io_uring"
    return long_table.of_run(run, records, judge.valid_tests(run, records), cells=cells)


@pytest.mark.parametrize("cells", [False, True])
def test_every_figure_is_a_row_with_what_makes_it_a_peer(cells):
    rows = table(cells, hosts=1, drives=2)
    assert tuple(rows.columns) == long_table.COLUMNS and len(rows) == 8 and rows["round"].isna().all()
    run, records = fleet(hosts=1)
    identity = next(record["identity"] for record in records if record["kind"] == "drive")
    first = rows.iloc[0].drop(["value", "round"]).tolist()
    assert first == [
        "r2",
        "h0",
        "S0-0",
        "S0-0",
        MODEL,
        "D1MU020",
        960,
        512,
        0,
        "nvme",
        "io_uring",
        "",
        "iops",
        comparability.conditions_key(
            comparability.of_drive({"engine": "io_uring"}, identity), comparability.definitions(run)["iops"]
        ),
        "c",
        "write_iops",
        "IOPS",
    ]
    # Measured by another engine: no peers.
    assert len(outliers.too_few(outliers.held(rows))) == 2


def test_the_stores_long_table_is_judged_alike():
    rows = table(slow={(2, 1): 0.8})
    stored = rows[list(LONG)].assign(round=0, cell=None)
    texts = ("run", "host", "serial", "model", "firmware", "link", "test", "metric", "unit")
    # Hosts' tools pad a model's name, or don't.
    stored = stored.assign(model=stored["model"].where(stored["host"] != "h1", MODEL + " "))
    stored = stored.assign(**{name: stored[name].astype("category") for name in texts})
    rounds = stored.assign(round=3, value=1.0)
    found = outliers.held(pandas.concat([stored, rounds]))
    assert len(found) == len(rows) and found.loc[found["outlier"], "drive"].unique().tolist() == ["S2-1"]


def test_drives_that_other_threads_measured_are_no_peers():
    """What the CPUs of one host allowed is no other drive's doing."""
    run, records = fleet()
    for record in records:
        if record["kind"] == "test" and record["host"] == "h1":
            record["loads"] = [{"cell": "c", "threads": 4, "queue_depth": 64, "cpus": 4}]
    rows = long_table.of_run(run, records, judge.valid_tests(run, records))
    assert set(rows["load"]) == {"", "4 threads x depth 64"}
    alone = outliers.held(rows[rows["host"] != "h1"])
    together = outliers.held(rows)
    kept = together[together["host"] != "h1"].reset_index(drop=True)
    assert kept["z"].tolist() == pytest.approx(alone["z"].tolist(), nan_ok=True)


def test_two_runs_of_a_drive_are_no_peers_of_each_other():
    with pytest.raises(ValueError, match="judge one run at a time"):
        outliers.held(pandas.concat([table(), table(run_id="r3")]))


def test_a_figure_has_the_unit_that_its_value_is_in():
    metrics = {"write_bandwidth": 5e8, "write_mean_latency_us_fitted_end": 90.0, "within_1ms_pct": 99.0}
    test = {"test": "wsat", "verdict": "pass", "counts": True, "metrics": metrics}
    told = long_table.of_summary({"run": {"id": "r"}, "drives": [{"host": "h", "drive": "d", "tests": [test]}]})
    assert list(zip(told["value"], told["unit"])) == [(5e8, "bytes/s"), (90.0, "µs"), (99.0, "%")]


def test_how_many_ios_there_were_is_no_figure_of_the_stores_table_either():
    rows = table()
    rows = pandas.concat([rows, rows[rows["metric"] == "write_iops"].assign(metric="write_ios")])
    assert "write_ios" not in set(outliers.held(rows)["metric"])


def test_two_drives_of_a_host_that_tell_one_serial_are_two():
    """As the store has them: without the name that the inventory uses."""
    stored = table()[list(LONG)].assign(round=0, cell=None)
    stored.loc[stored["host"] == "h1", "serial"] = "DUP"
    assert outliers.held(stored)["n"].unique().tolist() == [24]


def test_what_names_no_drive_in_other_runs_goes_with_its_host():
    rows = table(hosts=3, drives=1)
    rows["serial"] = rows["host"].map({"h0": "DUP", "h1": "DUP", "h2": "S2-0"})
    assert long_table.with_distinct_serials(rows)["serial"].unique().tolist() == ["h0 S0-0", "h1 S1-0", "S2-0"]
    assert long_table.with_distinct_serials(long_table.of_summary({"run": {"id": "r"}})).empty
