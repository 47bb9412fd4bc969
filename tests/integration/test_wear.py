# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test wears a drive by, from the drive's own counts to the report: a host job with real fio on a loop device
that is shown as an NVMe drive, whose emulated log pages count what the kernel saw written to it.
"""

from __future__ import annotations

import json
import os

import pytest
from emulated_nvme import CONTROLLER, SIZE, benched
from host_jobs import QUICK

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, run_results
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

# So many times what was written counts: a small drive's test has to be above the least of which a quotient is told.
SCALE = 100
AMPLIFICATION = 2.5


@pytest.fixture
def bench(loop_drive, tmp_path, monkeypatch):
    yield from benched(loop_drive(size_bytes=SIZE), tmp_path, monkeypatch)


def measured(bench, logs, **sysfs):
    """The record of a test of a drive that was written before, which is not in it."""
    stat = f"/sys/block/{bench.loop.name}/stat"
    counts = {"stat": stat, "base": 10**15, "scale": SCALE, "amplification": AMPLIFICATION}
    bench.set(writes=counts, logs=logs, nodes=[bench.loop.path])
    bench.sysfs = sysfs
    tests = planning.load_plan([{**QUICK, "precondition": {"passes": 1}}])
    bench.job(bench.plan("auto", tests)).run()
    records = run_results.records(bench.run_dir, bench.server())
    for record in records:
        documents.validate(json.loads(json.dumps(record)), "results")
    return next(record for record in records if record["kind"] == "test")


def shown(record, folder):
    """The page of a drive whose record tells that wear."""
    made = generator.make(folder, generator.DEMO, ("wsat",))
    lines = [json.loads(line) for line in (made / "results.jsonl").read_text().splitlines()]
    of_drive = [{**line, "wear": record["wear"]} if line["kind"] == "test" else line for line in lines]
    (made / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in of_drive))
    write_report.make(str(made.parent), made.name)
    return (made / "report" / page_names.drive_page("server-1", "SIM0001")).read_text()


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("logs", "sysfs", "error"),
    [
        (["ocp"], {}, 0.001),
        # In units of 32 MiB.
        (["intel"], {CONTROLLER + "/device/vendor": "0x8086"}, 0.02),
    ],
)
def test_a_test_costs_what_the_drive_counted(bench, tmp_path, logs, sysfs, error):
    record = measured(bench, logs, **sysfs)
    wear = record["wear"]
    # The fill, and less than as much again: sentinels, five rounds of a second.
    assert SIZE * SCALE <= wear["host_bytes"] < 1.5 * SIZE * SCALE
    assert wear["media_bytes"] == pytest.approx(AMPLIFICATION * wear["host_bytes"], rel=error)
    assert wear["write_amplification"] == pytest.approx(AMPLIFICATION, rel=error) and wear["used_pct"] == 1
    page = shown(record, tmp_path / "results")
    quotient = f"{wear['write_amplification']:g}"
    assert f"to its flash, write amplification {quotient}, 1 % of its rated life is used" in page


def test_a_drive_without_such_a_log_tells_what_the_host_wrote(bench, tmp_path):
    record = measured(bench, [])
    assert record["wear"]["host_bytes"] >= SIZE * SCALE
    assert record["wear"]["media_bytes"] is record["wear"]["write_amplification"] is None
    page = shown(record, tmp_path / "results")
    assert "were written to it, purge and fill included, 1 % of its rated life is used" in page
    assert "write amplification" not in page
