# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways in which a play of a user's own uses a role: included, imported, with tags, on localhost, under another
strategy, without become. Each purges what was asked for, or nothing and says why.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = {"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks" / "collections")}
PURGE = {"name": "ssdlab.fleet.purge"}


@pytest.fixture
def lab(site, loop_drive, tmp_path):
    """One server with a drive full of what the operator gave up; own(play, *args) plays one of the user's own."""
    drive = loop_drive(size_bytes=32 << 20)
    drive.file.write_bytes(b"\xa5" * drive.file.stat().st_size)
    site.drive = drive
    site.entry = dict(drive.selector, ssd_overwrite_data=True)
    site.hosts = {"rack1-07": {"ssd_drives": [site.entry]}}
    site.purged = lambda: set(drive.file.read_bytes()) == {0}

    def own(play, *args):
        book = tmp_path / "own.yml"
        book.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, **play}]))
        return site.play(book, *args, env=COLLECTIONS, cwd=tmp_path)

    site.own = own
    return site


# Each of them purges, with these arguments.
ACTS = {
    "include_role": ({"tasks": [{"ansible.builtin.include_role": PURGE}]},),
    "include_role with its tag": (
        {"tasks": [{"ansible.builtin.include_role": {**PURGE, "apply": {"tags": ["wipe"]}}, "tags": ["wipe"]}]},
        "--tags=wipe",
    ),
    "import_role in a block": (
        {"tasks": [{"block": [{"ansible.builtin.import_role": PURGE}], "rescue": [{"ansible.builtin.fail": None}]}]},
    ),
    "a role with its tag": ({"roles": [{"role": "ssdlab.fleet.purge", "tags": ["wipe"]}]}, "--tags=wipe"),
    "after facts, without become": (
        {"gather_facts": True, "become": False, "any_errors_fatal": True, "roles": ["ssdlab.fleet.purge"]},
    ),
    "a tuned host": ({"roles": ["ssdlab.fleet.tune", "ssdlab.fleet.purge"]},),
    "a free strategy with one host": ({"strategy": "free", "roles": ["ssdlab.fleet.purge"]},),
}
# Each of them ends ok and leaves all as it is, as the play asks for it.
LEAVES = {
    "a role in check mode": ({"roles": [{"role": "ssdlab.fleet.purge", "check_mode": True}]},),
    "an included role in check mode": (
        {"tasks": [{"ansible.builtin.include_role": {**PURGE, "apply": {"check_mode": True}}}]},
    ),
    "another tag": ({"roles": [{"role": "ssdlab.fleet.purge", "tags": ["wipe"]}]}, "--tags=deploy"),
    "a tag that Ansible does not pass on": (
        {"tasks": [{"ansible.builtin.include_role": PURGE, "tags": ["wipe"]}]},
        "--tags=wipe",
    ),
}
# Each leaves out a host of the play, or looks at one for all.
REFUSED = {
    "when": {"roles": [{"role": "ssdlab.fleet.purge", "when": "inventory_hostname == 'rack1-07'"}]},
    "include_role when": {
        "tasks": [{"ansible.builtin.include_role": PURGE, "when": "inventory_hostname == 'rack1-07'"}]
    },
    "run_once": {"roles": [{"role": "ssdlab.fleet.purge", "run_once": True}]},
    # The other host comes late, else the first one could find it looked at, too.
    "strategy": {
        "strategy": "free",
        "pre_tasks": [{"ansible.builtin.command": "sleep 10", "when": "inventory_hostname == 'rack1-08'"}],
        "roles": ["ssdlab.fleet.purge"],
    },
}


@pytest.mark.variants(2)
@pytest.mark.parametrize("way", ACTS)
def test_it_acts(lab, way):
    try:
        code, output = lab.own(*ACTS[way])
        assert code == 0 and lab.purged(), output
        runs = [json.loads(path.read_text()) for path in lab.results.glob("*-purge/report/summary.json")]
        assert [run["verdicts"]["pass"] for run in runs] == [1]
    finally:
        if "tuned" in way:
            assert lab.play("restore")[0] == 0


def test_it_acts_on_localhost(lab):
    variables = {**lab.vars, "ssd_drives": [lab.entry]}
    lab.hosts = {}
    code, output = lab.own(
        {"hosts": "localhost", "connection": "local", "vars": variables, "roles": ["ssdlab.fleet.purge"]}
    )
    assert code == 0 and lab.purged(), output


@pytest.mark.parametrize("way", LEAVES)
def test_it_leaves_what_the_play_leaves_out(lab, way):
    code, output = lab.own(*LEAVES[way])
    assert code == 0 and not lab.purged() and lab.run_folders() == [], output
    assert ("leave out ssdlab.fleet.purge, so it did nothing" in output) == ("tag" in way), output


@pytest.mark.parametrize("way", REFUSED)
def test_a_play_that_leaves_out_hosts_is_refused(lab, loop_drive, way):
    other = loop_drive("other")
    before = other.digest()
    lab.hosts["rack1-08"] = {"ssd_drives": [dict(other.selector, ssd_overwrite_data=True)]}
    code, output = lab.own(REFUSED[way])
    assert code != 0 and not lab.purged() and other.digest() == before and lab.run_folders() == [], output
    told = "duplicate" if way == "run_once" else "conditions (when) that leave out hosts"
    assert told in " ".join(output.split()), output


TUNE = {"vars": {"tune_queue": {"nomerges": 2}}}


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "tag, tunes", [("deploy", False), ("cpu", False), ("tuning", True), ("queue", True), ("all", True)]
)
def test_the_role_tune_tunes_only_where_a_tag_of_it_or_of_a_concern_says_so(lab, tag, tunes):
    nomerges = Path("/sys/block", lab.drive.name, "queue/nomerges")
    before = nomerges.read_text()
    try:
        code, output = lab.own({**TUNE, "roles": [{"role": "ssdlab.fleet.tune", "tags": ["tuning"]}]}, "--tags", tag)
        assert code == 0 and (nomerges.read_text() == "2\n") == tunes, output
        assert bool(lab.run_folders()) == (tag != "deploy")
        assert ("leave out ssdlab.fleet.tune, so it did nothing" in output) == (tag == "deploy"), output
    finally:
        code, output = lab.play("restore")
    assert code == 0 and nomerges.read_text() == before, output
