# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules in a play of the user's own: their documented examples."""

from __future__ import annotations

import ast
import json

import pytest
import yaml
from conftest import REPO, SHORT_TEST

RUN_ID = "20261121T130000Z-qualify"
# In an order in which each has what it needs; together they make a run.
SHOWN = (
    "steady_state",
    "host_checks",
    "drive_list",
    "tunables",
    "host_job",
    "watch",
    "run_info",
    "collect",
    "find_run",
)
ENDING = (
    "End the run; its unfinished tests count as interrupted",
    "Put back what ended runs left changed",
    "Remove the ended run from the host",
)


def examples(module: str) -> str:
    tree = ast.parse((REPO / f"plugins/modules/{module}.py").read_text(encoding="utf-8"))
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "EXAMPLES"
    )


@pytest.fixture
def lab(site, loop_drive, tmp_path):
    """One server with one drive, and plays of the test's own: lab.run(tasks, …)."""
    site.drive = loop_drive()
    site.vars["ansible_become"] = False
    del site.vars["ssd_plan"]
    site.hosts = {"rack1-07": {"ssd_drives": [site.drive.selector]}}

    def run(tasks, *args, **keywords):
        path = tmp_path / "own.yml"
        path.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, "tasks": tasks, **keywords}]))
        return site.play(path, *args, env={"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks/collections")})

    site.run = run
    return site


def test_the_examples_work_as_they_stand(lab, tmp_path):
    text = "\n".join(examples(module) for module in SHOWN)
    for documented, here in (
        ("/var/lib/ssdlab-fleet", str(lab.state)),
        ("{{ playbook_dir }}/ssd-results", str(lab.results)),
    ):
        text = text.replace(documented, here)
    tasks = yaml.safe_load(text)
    ending = [task for task in tasks if task["name"] in ENDING]
    assert len(ending) == len(ENDING)
    where = {
        f"ssdlab.fleet.{name}": {"state_dir": str(lab.state)} for name in ("host_job", "run_info", "watch", "collect")
    }
    where["ssdlab.fleet.watch"]["interval_s"] = 1
    # What the examples would measure takes hours.
    short = json.dumps({"ssd_plan": [SHORT_TEST], "ssd_tests_dirs": [], "ssd_leave": "as_is"})
    before = lab.drive.digest()
    code, output = lab.run([task for task in tasks if task not in ending] + ending, "-e", short, module_defaults=where)
    assert code == 0, output
    assert f"{lab.drive.file}: complete" in output and lab.drive.digest() != before
    assert lab.run_folders() == []
    records = [json.loads(line) for line in (lab.results / RUN_ID / "results.jsonl").read_text().splitlines()]
    assert [record["outcome"] for record in records if record["kind"] == "test"] == ["steady"]


@pytest.mark.parametrize(
    ("given", "says"),
    [({}, "all of the following are missing: run_id"), ({"run_id": "r"}, "preflight of this play did not approve")],
)
def test_a_host_job_is_never_started_without_preflight(lab, given, says):
    code, output = lab.run([{"ssdlab.fleet.host_job": {**given, "state_dir": str(lab.state)}}])
    assert code != 0 and says in " ".join(output.split()), output
    assert not lab.state.exists()
