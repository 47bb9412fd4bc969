# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A supplier's page of a fleet whose hosts have drives of two models each: nothing of the other model is on it."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import without_plotly

RIVAL = "RIVAL 9000"
OWN_SHARE = {"test": "iops", "metric": "write_iops", "min_of_median": 0.9, "model": fleets.MODEL}
# What nobody else may read: names, and what is known of their figures, limits and findings.
SECRETS = (RIVAL, "RIVAL", "R3-1", "R5-2", "R0-0", "RF001", "54,321", "54321", "rate_of_rival", "R6-1", "R7-1")
# As hosts and kernels write such names.
OTHERWISE = {
    "S6-1": "disturbed by /dev/disk/by-id/nvme-RIVAL_9000_R6-1",
    "S6-2": "disturbed by nvme-Unknown_R7-1-part2",
    "S6-3": "disturbed by a rival  9000",
}


def both(criteria, low, slow, rival_low):
    """(run.json, records) of eight hosts with four drives of each model."""
    run, records = fleets.fleet(8, low=low, slow=slow, criteria=criteria, run_id="20261122T010000Z-qualify")
    other, theirs = fleets.fleet(8, low=rival_low, slow={(5, 2): 0.5}, seed=2, firmware="RF001")
    text = re.sub(r'"S(\d-\d)"', r'"R\1"', json.dumps([other["asked"], theirs]).replace(fleets.MODEL, RIVAL))
    asked, theirs = json.loads(text)
    return {**run, "asked": run["asked"] + asked}, records + [record for record in theirs if record["kind"] != "host"]


@pytest.fixture(name="page", scope="module")
def fixture_page(tmp_path_factory):
    rivals = [
        {"test": "iops", "metric": "write_iops", "min": 54_321, "model": "RIVAL*"},
        {"test": "iops", "metric": "write_iops", "least": 54_321, "model": "RIVAL*", "source": "rate_of_rival"},
    ]
    # h3 is lower for the other model than for this one, so that its figure names the low host.
    run, records = both([OWN_SHARE, *rivals], {3: 0.82}, {(2, 1): 0.8}, {3: 0.6})
    run["warnings"] = [
        {"level": "warning", "host": "h2", "drive": "S2-0", "check": "link", "message": "shares its link with R0-0"},
        {"level": "warning", "host": "h2", "drive": "S2-0", "check": "wear", "message": "80 % of its life is used"},
    ]
    for record in records:
        if record.get("drive") == "S6-0" and record["kind"] == "test":
            record.update(outcome="invalid", reasons=["disturbed by RIVAL 9000 (R5-2)", "throttled"])
        if record.get("drive") in OTHERWISE and record["kind"] == "test":
            record.update(outcome="invalid", reasons=[OTHERWISE[record["drive"]]])
    folder = fleets.write(tmp_path_factory.mktemp("results"), run, records)
    write_report.make(str(folder.parent), folder.name, asked=write_report.ReportOptions(supplier_model=fleets.MODEL))
    return without_plotly((folder / "report" / page_names.supplier_page(fleets.MODEL)).read_text())


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_of_another_model_is_on_it(page, secret):
    assert secret.lower() not in page.lower()


def test_what_is_known_of_its_own_drives_is(page):
    assert " of 32 drives passed" in page and "80 % of its life is used" in page
    assert page.count("the host&#39;s fault: h3 is slow as a whole") >= 4
    assert "left out here, as it names other drives" in page


def test_outliers_and_medians_are_those_of_its_own_peers(page):
    """S2-1 is held to the median of the 27 others of its model that count; of both models there are 62."""
    assert "median of 27 peers" in page and "62 peers" not in page
    limits = [int(found.replace(",", "")) for found in re.findall(r"write_iops [0-9,]+ &lt; ([0-9,]+)", page)]
    assert limits and all(88_000 < limit < 92_000 for limit in limits)


def test_a_model_whose_name_another_begins_with_is_named(tmp_path):
    """The other's is left out all the same."""
    run, records = both([OWN_SHARE], {}, {}, {})
    for record in records:
        if record["kind"] == "drive" and record["identity"]["model"] == fleets.MODEL:
            record["identity"]["model"] = RIVAL + " PRO"
        if record.get("drive") == "S6-0" and record["kind"] == "test":
            record.update(outcome="invalid", reasons=["a RIVAL 9000 PRO disturbed by a RIVAL 9000"])
    folder = fleets.write(tmp_path, run, records)
    write_report.make(str(tmp_path), folder.name, asked=write_report.ReportOptions(supplier_model=RIVAL + " PRO"))
    html = without_plotly((folder / "report" / page_names.supplier_page(RIVAL + " PRO")).read_text())
    assert html.count(RIVAL + " PRO") > 32 and RIVAL not in html.replace(RIVAL + " PRO", "")
    assert html.count("left out here") < 5
