# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was approved is what is erased: in AWX by the plan's artifact, elsewhere by the file that plan mode writes."""

from __future__ import annotations

import copy
import json
import re

import pytest
from awx_jobs import nightly

HOST = "rack1-07"
WRITTEN = re.compile(r"To be approved: this plan \(.*\): (/\S+\.jsonl)")


def filled(drive):
    """A drive whose content would show a write; what it is to be erased by is ssd_overwrite_data."""
    drive.selector["ssd_overwrite_data"] = True
    drive.file.write_bytes(b"\xa5" * 4096 + b"\0" * (drive.file.stat().st_size - 4096))
    return drive


@pytest.fixture
def drives(loop_drive):
    """Two drives of one server, with data."""
    return filled(loop_drive("first")), filled(loop_drive("second"))


@pytest.fixture
def awx(site, drives, tmp_path):
    """AWX whose inventory has the first drive alone."""
    made = nightly(site, tmp_path / "awx", drives[0])
    made.variables["ssd_run_name"] = "approved"
    return made


def words(said):
    """What was said, without Ansible's own line breaks."""
    return " ".join(said.split())


def test_a_drive_that_is_added_while_the_approval_waits_is_not_erased(awx, drives):
    first, second = drives
    before = first.digest(), second.digest()
    status, said = awx.run("plan")
    assert status == "successful", said
    awx.site.hosts[HOST]["ssd_drives"].append(second.selector)
    status, said = awx.run("start")
    told = f"{HOST}: drive {second.file}: ssd_approved_plan: this drive is not in the approved plan"
    assert status == "successful" and told in words(said) and "takes 1 drive of 1 host" in said, said
    awx.run("watch", ssd_watch_for_s=300)
    assert awx.run("collect")[0] == "successful"
    assert first.digest() != before[0] and second.digest() == before[1]
    status, said = awx.run("report")
    assert status == "failed" and "1 not tested" in said, said


def test_start_takes_what_was_approved_prints_it_and_needs_no_drive_that_has_gone(awx, drives):
    first, second = drives
    awx.site.hosts[HOST]["ssd_drives"].append(second.selector)
    status, said = awx.run("plan")
    assert status == "successful" and awx.artifacts["ssd_approved_plan"]["drives"] == 2, said
    awx.site.hosts[HOST]["ssd_drives"].pop()
    before = first.digest(), second.digest()
    status, said = awx.run("start")
    assert status == "successful", said
    assert (
        f"takes 1 drive of 1 host, all in the approved plan (SHA-256 {awx.artifacts['ssd_approved_plan']['sha256']})"
        in said
    )
    (line,) = [line for line in said.splitlines() if line.startswith(f"  {first.file}: ")]
    assert "tests short@" in line and "purge " in line and "overrides ssd_overwrite_data=true" in line
    assert awx.run("collect")[0] and second.digest() == before[1]
    awx.run("watch", ssd_watch_for_s=60)
    assert first.digest() != before[0]


def test_a_start_in_awx_without_the_plans_artifact_is_refused(awx, drives):
    before = drives[0].digest()
    assert awx.run("plan")[0] == "successful"
    awx.artifacts["ssd_approved_plan_2"] = awx.artifacts.pop("ssd_approved_plan", None)
    status, said = awx.run("start")
    assert drives[0].digest() == before
    assert status == "failed" and "nothing was approved, and ssd_approval is required" in words(said), said


@pytest.fixture
def approved(site, drives):
    """A site with one drive, and the file of its plan."""
    site.hosts = {HOST: {"ssd_drives": [copy.deepcopy(drives[0].selector)]}}
    return planned(site)


def planned(site, playbook="preflight"):
    code, said = site.play(playbook, "-e", "ssd_mode=plan")
    assert code == 0, said
    (path,) = WRITTEN.findall(said)
    assert "-e ssd_mode=destructive -e ssd_approved_plan=" + path in said
    return path


def other_test(site):
    site.vars["ssd_plan"] = [{**site.vars["ssd_plan"][0], "active_range_pct": 50}]


def other_purge(site):
    site.vars["purge_method"] = "overwrite"


def other_overrides(site):
    site.hosts[HOST]["ssd_drives"][0]["allow"] = ["signature"]


def other_host(site):
    site.hosts["rack1-08"] = site.hosts.pop(HOST)


@pytest.mark.parametrize(
    "change, told",
    [
        (other_test, f"{HOST}: drive FIRST: ssd_approved_plan: other tests: approved short@"),
        (other_purge, f"{HOST}: drive FIRST: ssd_approved_plan: other purge: approved "),
        (other_overrides, f"{HOST}: drive FIRST: ssd_approved_plan: other overrides: approved ssd_overwrite_data=true"),
        (other_host, "rack1-08: drive FIRST: ssd_approved_plan: this host is not in the approved plan"),
    ],
)
def test_what_differs_from_the_approved_plan_is_refused_by_name(site, approved, drives, change, told):
    before = drives[0].digest()
    change(site)
    code, said = site.play("start", "-e", f"ssd_approved_plan={approved}")
    assert drives[0].digest() == before
    assert code != 0 and told.replace("FIRST", str(drives[0].file)) in words(said), said


def edit(path):
    text = open(path).read()
    assert "short" in text
    open(path, "w").write(text.replace("short", "shirt"))


def truncate(path):
    text = open(path).read()
    open(path, "w").write(text[: len(text) // 2])


def of_another_kind(path):
    open(path, "w").write(json.dumps({"drives": []}))


def of_another_version(path):
    text = open(path).read()
    open(path, "w").write(text.replace('"schema_version":1', '"schema_version":9'))


@pytest.mark.parametrize(
    "damage, told",
    [
        (edit, "was changed or damaged after the plan was made"),
        (truncate, "was changed or damaged after the plan was made"),
        (of_another_kind, "is no plan that ssd_mode=plan wrote"),
        (of_another_version, "was written by another version of the collection"),
        (lambda path: None, "/missing.jsonl cannot be read"),
    ],
)
def test_a_file_that_is_not_what_plan_mode_wrote_is_refused(site, approved, drives, damage, told):
    before = drives[0].digest()
    damage(approved)
    given = approved if "missing" not in told else "/missing.jsonl"
    code, said = site.play("start", "-e", f"ssd_approved_plan={given}")
    assert drives[0].digest() == before
    assert code != 0 and told in words(said), said


def test_a_run_is_bound_to_its_own_approved_plan_to_the_end(site, approved, drives):
    code, said = site.play("start", "-e", f"ssd_approved_plan={approved}", "-e", "ssd_run_id=another")
    assert code != 0 and "ssd_approved_plan: it is of run " in words(said), said
    code, said = site.play("qualify", "-e", f"ssd_approved_plan={approved}")
    assert code == 0 and "takes 1 drive of 1 host, all in the approved plan" in said, said
    # The same plan again finds its run finished: it erases nothing twice.
    before = drives[0].digest()
    code, said = site.play("qualify", "-e", f"ssd_approved_plan={approved}")
    assert code == 0 and drives[0].digest() == before, said
    assert "this run is finished on this host, so nothing is started there" in said
    # Nor where the host has forgotten it.
    code, said = site.play("cleanup")
    assert code == 0 and not list(site.state.glob("runs/*")), said
    code, said = site.play("start", "-e", f"ssd_approved_plan={approved}")
    assert code != 0 and "has already begun with this drive; make and approve a new plan" in words(said), said
    assert drives[0].digest() == before


def test_single_steps_are_held_to_a_plan_of_their_own(site, approved, drives):
    before = drives[0].digest()
    code, said = site.play("purge", "-e", f"ssd_approved_plan={approved}")
    assert code != 0 and "it is a plan of qualify.yml, and this is purge.yml" in words(said), said
    for playbook, told in {"tune": "tuning erases nothing", "vendor": "can't be held to an approved plan"}.items():
        code, said = site.play(playbook, "-e", f"ssd_approved_plan={approved}")
        assert code != 0 and told in words(said), said
    assert drives[0].digest() == before
    code, said = site.play("purge", "-e", f"ssd_approved_plan={planned(site, 'purge')}")
    assert code == 0 and drives[0].digest() != before, said


def test_check_mode_and_a_plan_with_findings_leave_no_plan_to_approve(site, drives):
    site.hosts = {HOST: {"ssd_drives": [drives[0].selector]}}
    code, said = site.play("qualify", "--check")
    assert code == 0 and "To be approved" not in said and not site.results.exists(), said
    site.hosts[HOST]["ssd_drives"].append({"backing_file": "/no/such/drive"})
    code, said = site.play("preflight", "-e", "ssd_mode=plan", "-e", "ssd_refused=stop")
    assert code != 0 and "To be approved" not in said and not site.results.exists(), said


@pytest.mark.parametrize("place", ["inventory", "group_vars"])
def test_drives_of_all_hosts_are_refused_as_awx_never_removes_them(site, drives, place, tmp_path):
    """AWX replaces no variables of the group all, whatever a source's overwrite_vars says."""
    site.hosts = {HOST: {"ssd_drives": [drives[0].selector]}}
    given = {"ssd_drives": [drives[1].selector]}
    if place == "inventory":
        (tmp_path / "more.json").write_text(json.dumps({"all": {"vars": given}}))
        more = ["-i", str(tmp_path / "more.json")]
    else:
        (tmp_path / "group_vars").mkdir()
        (tmp_path / "group_vars/all.json").write_text(json.dumps(given))
        more = []
    code, said = site.play("preflight", "-e", "ssd_mode=plan", *more)
    assert code != 0 and "ssd_drives: is set for all hosts (group all)" in words(said), said
    assert "or as a template at a group of servers, such as ssd_servers" in words(said), said
