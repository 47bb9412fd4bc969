# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import random
import shlex

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import approval

TESTS = {name: f"{number:016x}" for number, name in enumerate(("wsat", "iops", "throughput", "latency"))}
LINE = approval.Line("h1", "S1", "model M, serial S1", TESTS, dict.fromkeys(TESTS, "auto"), ["ssd_overwrite_data=true"])
PLAN = approval.ApprovedPlan(
    "20261121T130000Z-nightly",
    "nightly",
    "qualify",
    "2026-11-21T13:00:00Z",
    [LINE],
    {("h1", "S2"): "quarantined"},
    {"h2": "the host is unreachable"},
)
# AWX leaves a task's result out of the events where it has more characters.
EVENT_LIMIT = 700_000


def changed(head=None, **fields):
    """The plan's text with other values in its head or in its first line, as a hand would make it."""
    first, second, *rest = approval.dump(PLAN).splitlines()
    head = {**json.loads(first), **(head or {})}
    return "\n".join([json.dumps(head), json.dumps({**json.loads(second), **fields}), *rest])


def test_a_plan_is_the_same_as_a_file_and_as_an_artifact(tmp_path):
    path = approval.write(PLAN, str(tmp_path))
    assert approval.load(path) == approval.load(approval.artifact(PLAN)) == PLAN
    assert path.startswith(str(tmp_path / "_plans" / PLAN.run_id))
    head, row, *_more = map(json.loads, open(path))
    assert row["digest"] == LINE.digest() and head["sha256"] == approval.artifact(PLAN)["sha256"] == approval.sha256(
        PLAN
    )


@pytest.mark.parametrize("given", [None, "", {}])
def test_nothing_is_no_plan(given):
    assert approval.load(given) is None


@pytest.mark.parametrize(
    "content, told",
    [
        ("", "is no plan"),
        ("\n\n", "is no plan"),
        ("[1]\n", "is no plan"),
        (json.dumps({"format": "another"}), "is no plan"),
        (changed(drive="S9"), "SHA-256 differs"),
        (changed(overrides=[]), "SHA-256 differs"),
        (changed(head={"run": {"id": "r", "name": "n", "step": "qualify"}}), "SHA-256 differs"),
        (changed(head={"drives": 2}), "SHA-256 differs"),
        (changed(head={"sha256": None}), "SHA-256 differs"),
        (changed(head={"schema_version": 2}), "another version of the collection"),
        (approval.dump(PLAN).rsplit("\n", 2)[0], "SHA-256 differs"),
        (approval.dump(PLAN) * 2, "changed or damaged"),
        (approval.dump(PLAN) + "\n", "changed or damaged"),
        (approval.dump(PLAN)[:-20], "changed or damaged"),
        (changed(digest="0" * 12), "the digest of the line of drive S1 differs"),
    ],
)
def test_a_plan_that_nobody_wrote_so_is_refused(content, told):
    with pytest.raises(ValueError, match=told):
        approval.parse(content, "/plan.jsonl")


@pytest.mark.parametrize(
    "given, told",
    [
        ({"packed": "no base64"}, "artifact is damaged"),
        ({"sha256": "1"}, "neither the path of a file nor the artifact"),
        ([1], "neither the path of a file nor the artifact"),
        ("/no/such/plan.jsonl", "/no/such/plan.jsonl cannot be read"),
        ("/", "/ cannot be read"),
    ],
)
def test_what_is_no_plan_at_all_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        approval.load(given)


def test_another_plan_of_a_run_does_not_replace_an_approved_one(tmp_path):
    other = PLAN._replace(lines=[LINE, LINE._replace(drive="S3")])
    paths = {approval.write(plan, str(tmp_path)) for plan in (PLAN, other, PLAN)}
    assert len(paths) == 2 and {approval.load(path).lines[-1].drive for path in paths} == {"S1", "S3"}


@pytest.mark.parametrize("path", ["/plain/path.jsonl", '/a folder/it\'s "quoted".jsonl'])
def test_the_command_that_is_printed_gives_the_path(path):
    (_what, line) = approval.command_text(PLAN, path)
    assert "qualify.yml -i <inventory> -e ssd_mode=destructive" in line
    given = shlex.split(line[line.index("-e ssd_mode") :])[3]
    assert given == f"ssd_approved_plan={path}" or json.loads(given) == {"ssd_approved_plan": path}


def test_a_thousand_hosts_of_24_drives_fit_into_what_awx_shows_of_a_task():
    """The names are as makers give them. Of names that nothing can be saved on, AWX still passes the artifact on: its
    limit is for what a task returned.
    """
    draw = random.Random(1)
    lines = []
    for host in range(1000):
        for _drive in range(24):
            serial = f"2212{draw.getrandbits(32):08X}"
            identity = f"model Micron_7450_MTFDKCC3T8TFR, serial {serial}, wwn eui.00a07501{draw.getrandbits(32):08x}"
            lines.append(LINE._replace(host=f"rack{host // 40}-{host % 40:02d}", drive=serial, identity=identity))
    plan = PLAN._replace(lines=lines)
    made = approval.artifact(plan)
    assert len(json.dumps(made)) < EVENT_LIMIT and approval.load(made) == plan


def test_in_awx_no_file_is_named_that_is_gone_with_its_job():
    (line,) = approval.command_text(PLAN, "")
    assert "1 drive, SHA-256 " + approval.sha256(PLAN) in line and "artifact ssd_approved_plan" in line
