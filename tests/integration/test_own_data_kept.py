# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that missed a criterion is kept as evidence, whatever becomes of its run."""

from __future__ import annotations

import own_data_lab
import pytest
from own_data_lab import QUICK

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, engine
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning


@pytest.fixture(name="lab")
def fixture_lab(tmp_path, monkeypatch, loop_drive):
    with own_data_lab.standing(tmp_path, monkeypatch, loop_drive) as lab:
        yield lab


@pytest.mark.case(57)
def test_case_57_kept_as_evidence_until_it_is_released(lab):
    """A missed criterion: neither a later run nor another night erases it (evidence), until its entry names the run."""
    outcome, journal = lab.run(
        "one", tests=planning.load_plan([QUICK]), criteria=[{"metric": "write_iops", "min": 1e9}], leave="blank"
    )
    assert outcome == "complete" and [record["state"] for record in journal if record["event"] == "left"] == [
        "evidence"
    ]
    lab.refused("two", "evidence")
    assert (
        "write_iops" in lab.inspect()["refusals"][0]["message"] and "run one" in lab.inspect()["refusals"][0]["message"]
    )
    lab.reattach()
    lab.refused("three", "evidence")
    lab.options = {"release_evidence": "another-run"}
    lab.refused("four", "evidence")
    lab.options = {"release_evidence": "one"}
    assert lab.codes() == [] and lab.run("five")[0] == "complete"
    lab.options = {}
    assert lab.codes() == []


MISSED = [{"test": "quick", "metric": "write_iops", "min": 1e9}]


@pytest.mark.case(57)
@pytest.mark.parametrize("end", ["stop", "nothing"])
def test_case_57_evidence_of_a_run_that_was_killed(lab, end):
    """One test missed a criterion, then the job died in the next: evidence, also once the run is stopped. The run
    itself may go on.
    """
    run = lab.kill_one("one", QUICK, criteria=MISSED)
    assert "evidence" in lab.codes() and "write_iops" in lab.entry()["reason"]
    (seen,) = guard_check.inspect(Host(), [parse(lab.drive.selector)], state_dir=lab.state, run_id="one")
    assert seen["eligible"], seen["refusals"]
    if end == "stop":
        control.stop(Host(), run)
        assert lab.entry()["state"] == "evidence"
        lab.refused("two", "evidence")
        lab.options = {"release_evidence": "one"}
        assert lab.codes() == []
    else:
        lab.refused("two", "evidence")


@pytest.mark.case(57)
def test_case_57_evidence_of_a_run_that_died_at_its_end(lab):
    """Between its last result and how it leaves the drive: the same run, played again, has nothing left to do, and the
    drive stays evidence.
    """
    run = lab.kill_one("one", QUICK, criteria=MISSED, dies="campaign.Campaign._leave = lambda self: os._exit(9)")
    assert lab.entry()["state"] == "writing"
    engine.HostJob(run, Host()).run()
    assert run.read_status()["drives"][0]["outcome"] == "complete" and lab.entry()["state"] == "evidence"
    lab.refused("two", "evidence")
