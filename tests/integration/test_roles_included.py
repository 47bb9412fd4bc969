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


# Each of them purges.
ACTS = {
    "include_role": {"tasks": [{"ansible.builtin.include_role": PURGE}]},
    "import_role": {"tasks": [{"ansible.builtin.import_role": PURGE}]},
    "include_role with apply and a tag": {
        "tasks": [{"ansible.builtin.include_role": {**PURGE, "apply": {"tags": ["wipe"]}}, "tags": ["wipe"]}]
    },
    "include_role in a loop": {"tasks": [{"ansible.builtin.include_role": PURGE, "loop": ["once"]}]},
    "in a block with a handler": {
        "tasks": [{"block": [{"ansible.builtin.include_role": PURGE}], "rescue": [{"ansible.builtin.fail": None}]}]
    },
    "pre_tasks and facts": {
        "gather_facts": True,
        "pre_tasks": [{"ansible.builtin.include_role": {"name": "ssdlab.fleet.ssd"}}],
        "roles": ["ssdlab.fleet.purge"],
    },
    "become: false": {"become": False, "roles": ["ssdlab.fleet.purge"]},
    "strategy: free": {"strategy": "free", "roles": ["ssdlab.fleet.purge"]},
    "strategy: host_pinned": {"strategy": "host_pinned", "roles": ["ssdlab.fleet.purge"]},
    "strategy: debug, order and throttle": {
        "order": "reverse_sorted",
        "roles": [{"role": "ssdlab.fleet.purge", "throttle": 1}],
    },
    "any_errors_fatal": {"any_errors_fatal": True, "roles": ["ssdlab.fleet.purge"]},
    "run_once": {"roles": [{"role": "ssdlab.fleet.purge", "run_once": True}]},
    "delegate_to": {"roles": [{"role": "ssdlab.fleet.purge", "delegate_to": "rack1-07"}]},
    "a tag of its own": {"roles": [{"role": "ssdlab.fleet.purge", "tags": ["wipe"]}]},
}


@pytest.mark.parametrize("way", ACTS)
def test_it_acts(lab, way):
    args = ("--tags", "wipe") if "tag" in way else ()
    code, output = lab.own(ACTS[way], *args)
    print(code, output)
    assert code == 0 and lab.purged(), output
    assert lab.summary()["verdicts"]["pass"] == 1
