# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes between runs and firmwares: shown, excluded, or not to be told yet."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import trends
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers.long_table import COLUMNS

RANDOM = np.random.default_rng(3)


def night(run, factor=1.0, drives=12, noise=0.005, model="M", firmware="1"):
    values = 1000 * factor * (1 + noise * RANDOM.standard_normal(drives))
    figure = ("", "iops", "", None, "c", "write_iops", "IOPS")
    rows = [
        (run, "h", f"S{n}", f"S{n}", model, firmware, 960, 512, 0, "nvme", "", *figure, value)
        for n, value in enumerate(values)
    ]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


@pytest.mark.parametrize(
    ("metric", "factor", "n", "verdict"),
    [
        ("iops", 0.9, 12, "worse"),
        ("iops", 1.1, 12, "better"),
        ("mean_latency_us", 1.1, 12, "worse"),
        ("iops", 1.0, 12, "same"),
        # Shown by the test, and nobody minds.
        ("iops", 0.98, 40, "same"),
        ("iops", 0.5, 5, "can't tell yet"),
        ("iops", 0.5, 0, "can't tell yet"),
    ],
)
def test_the_same_drives_now_and_before(metric, factor, n, verdict):
    before = 100 + RANDOM.standard_normal(n)
    change = trends.paired(metric, before * factor * (1 + 0.002 * RANDOM.standard_normal(n)), before)
    assert change.verdict == verdict and change.n == n


@pytest.mark.parametrize(
    ("factor", "nights", "verdict"),
    [(0.8, 3, "can't tell yet"), (0.8, 5, "worse"), (1.25, 5, "better"), (1.0, 8, "same"), (0.5, 4, "can't tell yet")],
)
def test_three_nights_against_three_can_never_tell(factor, nights, verdict):
    now, before = (100 * share * (1 + 0.005 * RANDOM.standard_normal(nights)) for share in (factor, 1.0))
    change = trends.compare_samples("iops", now, before)
    assert change.verdict == verdict and change.by == pytest.approx(1 / factor - 1, abs=0.03)


def test_a_large_p_is_no_proof_of_no_difference():
    wide = 100 * (1 + 0.3 * RANDOM.standard_normal(8))
    change = trends.paired("iops", wide, 100 * (1 + 0.3 * RANDOM.standard_normal(8)))
    assert change.p > 0.05 and change.verdict == "can't tell yet"


def test_a_night_against_the_nights_before_goes_drive_by_drive():
    before = [night(f"r{number}") for number in range(5)]
    [told] = trends.regressions(night("now", 0.9), before).to_dict("records")
    assert (told["verdict"], told["n"], told["nights"]) == ("worse", 12, 5) and told["by"] == pytest.approx(
        0.11, abs=0.01
    )
    [told] = trends.regressions(night("now", 0.9, drives=3), before).to_dict("records")
    assert told["verdict"] == "can't tell yet"
    assert trends.regressions(night("now"), []).empty


def test_two_firmwares_of_a_model():
    table = pandas.concat(
        [night("r"), night("r", 0.8, firmware="2").assign(serial=lambda frame: "N" + frame["serial"])]
    )
    [told] = trends.firmwares(table).to_dict("records")
    assert (told["firmware"], told["against"], told["verdict"], told["n"], told["before"]) == (
        "2",
        "1",
        "worse",
        12,
        12,
    )
    assert trends.firmwares(night("r")).empty


def test_repeatability_tells_how_little_three_runs_prove():
    three, thirty = (
        pandas.concat([night(f"r{number}", drives=1, noise=0.01) for number in range(runs)]) for runs in (3, 30)
    )
    [few], [many] = (trends.repeatability(table).to_dict("records") for table in (three, thirty))
    assert (few["drives"], few["runs"], many["runs"]) == (1, 3, 30)
    assert few["cv_at_most"] > 4 * few["cv"] and many["cv_at_most"] < 1.5 * many["cv"]


@pytest.mark.parametrize("column", ["capacity_bytes", "lba_bytes", "metadata_bytes", "link", "engine", "load"])
def test_drives_that_differ_in_more_than_their_firmware_are_not_compared(column):
    before, now = night("r").assign(**{column: "a"}), night("r", 0.8, firmware="2").assign(**{column: "b"})
    assert trends.firmwares(pandas.concat([before, now])).empty
    assert len(trends.firmwares(pandas.concat([before, now.assign(**{column: "a"})]))) == 1


def test_another_model_with_the_same_serial_is_another_drive():
    assert trends.regressions(night("r2", 0.8), [night("r1", model="N")]).empty


def test_counts_are_no_figures_that_change():
    now, before = (night(run).assign(metric="write_ios") for run in ("r2", "r1"))
    assert trends.regressions(now, [before]).empty


def test_many_rows_are_grouped_part_by_part_to_the_same_end(monkeypatch):
    table = pandas.concat([night(f"r{number}", 1 + number / 100, drives=20) for number in range(4)])
    order = ["model", "serial", "metric"]
    whole = trends.by_drive(table, cells=True).sort_values(order, ignore_index=True)
    monkeypatch.setattr(trends, "ROWS_AT_A_TIME", 9)
    parts = trends.by_drive(table, cells=True).sort_values(order, ignore_index=True)
    assert set(parts["nights"]) == {4} and len(parts) == 20
    pandas.testing.assert_frame_equal(parts, whole)
