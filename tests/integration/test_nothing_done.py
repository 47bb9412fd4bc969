# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays in which nothing is done, as the inventory, pattern, limit, tags or id match nothing: each fails and says what
to do.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
# Those that work on the controller alone, whatever the inventory is.
ON_CONTROLLER = {"awx", "end_night", "ingest", "notify", "render"}
PARTS = {"retest", "servers"}
PLAYBOOKS = sorted({path.stem for path in REPO.glob("playbooks/*.yml")} - ON_CONTROLLER - PARTS)
NO_SERVER, NOT_THERE, NO_TAG = "No server to work on", "is not there, so its servers", "Nothing to do: no"
UNCHECKED = "would skip the checks that this playbook begins with"
RUN = "20261121T130000Z-qualify"


@pytest.fixture
def lab(site):
    site.hosts = {"rack1-07": {"ssd_drives": []}}
    return site


def test_every_playbook_that_works_on_servers_is_among_them():
    assert {"qualify", "stop", "cleanup", "vendor", "import"} <= set(PLAYBOOKS)


@pytest.mark.variants(6)
@pytest.mark.parametrize("name", PLAYBOOKS)
def test_a_playbook_without_a_server_fails(lab, tmp_path, name):
    empty = tmp_path / "empty.ini"
    empty.write_text("")
    ways = {
        ("-e", "ssd_hosts=rakc1"): NO_SERVER,
        ("-i", str(tmp_path / "elsewhere.yml")): NOT_THERE,
        ("--tags", "deploy"): NO_TAG,
        ("--skip-tags", "always"): UNCHECKED,
    }
    # By the checkout's ansible.cfg Ansible itself ends where an inventory is not there.
    plain = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "false"}
    for arguments, told in ways.items():
        code, output = lab.play(name, *arguments, env=plain)
        assert code != 0 and told in " ".join(output.split()), output
    lab.hosts = {}
    for arguments in ((), ("--limit", "rack1-07")):
        code, output = lab.play(name, *arguments)
        assert code != 0 and NO_SERVER in " ".join(output.split()), output
    assert lab.run_folders() == [] and not lab.results.exists()


@pytest.mark.parametrize(
    ("arguments", "unknown"),
    [
        (["-e", "ssd_hosts=rack1-07,rakc1"], "rakc1"),
        (["-e", "ssd_hosts=rakc1:rack1-07"], "rakc1"),
        (["-e", '{"ssd_hosts": ["rack1-07", "rakc1"]}'], "rakc1"),
        (["--limit", "rack1-07,rack1-70"], "rack1-70"),
        (["-e", "ssd_hosts=all:!rakc1", "--limit", "rack1*,~rakc(?:1|2),ssd_servers"], ""),
        (["-e", "ssd_hosts=ssd_servers,localhost,rack9[1:3]"], ""),
    ],
)
def test_a_name_that_the_inventory_has_not_is_an_error(lab, arguments, unknown):
    """Ansible warns, and goes on without it: that night its servers are not tested."""
    code, output = lab.play("stop", *arguments)
    told = f"no host or group named {unknown}, so its servers would be left out" in " ".join(output.split())
    assert (code != 0 and told) if unknown else code == 0, output


def test_an_inventory_that_can_not_be_read_is_an_error(lab, tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text("all: {hosts: [")
    code, output = lab.play("stop", "-i", str(broken))
    assert code != 0 and "broken.yml" in output, output


def test_the_main_job_at_the_root_of_a_checkout_fails_too(lab):
    code, output = lab.play(REPO / "qualify.yml", "--tags", "deploy")
    assert code != 0 and NO_TAG in " ".join(output.split()), output


@pytest.mark.parametrize("tags", [("--skip-tags", "cpu,tagged"), ("--tags", "cpu", "--skip-tags", "always")])
def test_no_other_tags_skip_the_checks_either(lab, tags):
    code, output = lab.play("tune", *tags)
    assert code != 0 and UNCHECKED in " ".join(output.split()), output


@pytest.mark.parametrize(("arguments", "succeeds"), [(["--tags", "queue"], True), (["--tags", "queu"], False)])
def test_tuning_goes_by_its_own_tags(lab, loop_drive, arguments, succeeds):
    lab.hosts["rack1-07"]["ssd_drives"] = [loop_drive().selector]
    code, output = lab.play("tune", "-e", "ssd_mode=plan", *arguments)
    assert (code == 0) is succeeds and (NO_TAG in output) is not succeeds, output
    assert succeeds or "docs/tuning.md lists the tags" in " ".join(output.split()), output


@pytest.mark.parametrize("name", ["stop", "tune"])
@pytest.mark.parametrize("tag", ["deploy", "ssd"])
def test_a_playbook_of_the_users_own_goes_by_its_tags(lab, tmp_path, tag, name):
    """Only `ssd` selects ours, and the user's other plays are none of our business."""
    book = tmp_path / "site.yml"
    ours = {
        "import_playbook": str(REPO / f"playbooks/{name}.yml"),
        "tags": ["ssd"],
        "vars": {"ssd_other_tags": "allowed"},
    }
    own = {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {}, "tags": ["deploy"]}]}
    book.write_text(json.dumps([ours, own]))
    code, output = lab.play(book, "--tags", tag)
    task = {"stop": "List the runs on the host", "tune": "Examine the host"}[name]
    assert (task in output) == (tag == "ssd") and (code == 0 or (name, tag) == ("tune", "ssd")), output
    assert NO_TAG not in output, output


@pytest.mark.parametrize("name", ["cleanup", "restore", "stop"])
def test_a_run_that_no_host_has_is_an_error(lab, name):
    folder = lab.state / "runs" / RUN
    folder.mkdir(parents=True)
    lab.hosts["rack1-08"] = {"ssd_state_dir": str(lab.folder / "other")}
    for wrong in (RUN[:-1], str(folder), RUN + "/", "../runs/" + RUN):
        code, output = lab.play(name, "-e", f"ssd_run_id={wrong}")
        told = f"no host has a run {wrong}. Give the id as it stands here, without a path: {RUN}"
        assert code != 0 and told in " ".join(output.split()) and folder.exists(), output
    code, output = lab.play(name, "-e", f"ssd_run_id={RUN}")
    assert code == 0, output
    code, output = lab.play(name)
    assert code == 0, output


@pytest.mark.parametrize("name", ["collect", "report", "watch"])
def test_results_of_a_run_that_nobody_has_are_an_error(lab, name):
    code, output = lab.play(name, "-e", f"ssd_run_id={RUN}")
    assert code != 0 and RUN in output, output
