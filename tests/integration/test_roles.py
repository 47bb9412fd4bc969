# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles in a play of a user's own, with nothing else imported: each does its step, through the same guard and host
job as the playbooks.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = {"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks" / "collections")}

PURGE = """\
- name: Purge the drives that we are about to sell
  hosts: ssd_servers
  gather_facts: false
  become: "{{ ssd_become }}"
  roles:
    - ssdlab.fleet.purge
"""
TWO_STEPS = """\
- hosts: ssd_servers
  tasks:
    - name: Overwrite them
      ansible.builtin.include_role:
        name: ssdlab.fleet.purge
      vars:
        purge_method: overwrite
    - name: Fill them once
      ansible.builtin.include_role:
        name: ssdlab.fleet.precondition
      vars:
        precondition_passes: 1
"""
QUALIFY = """\
- hosts: ssd_servers
  gather_facts: false
  roles:
    - role: ssdlab.fleet.workload
      workload_ioengine: io_uring
  tasks:
    - name: Show the progress
      ansible.builtin.import_role: {name: ssdlab.fleet.workload, tasks_from: watch}
    - name: Collect the results
      ansible.builtin.import_role: {name: ssdlab.fleet.workload, tasks_from: collect}
    - name: Judge
      ansible.builtin.import_role: {name: ssdlab.fleet.report}
"""
TUNE = """\
- hosts: ssd_servers
  gather_facts: false
  vars:
    tune_queue: {nomerges: 2}
  roles:
    - ssdlab.fleet.tune
"""


@pytest.fixture
def lab(site, loop_drive, tmp_path):
    """One server with a drive that holds nothing but what the operator gave up; own(text) plays a playbook of the
    user's, outside of the repository.
    """
    drive = loop_drive()
    drive.file.write_bytes(b"\xa5" * drive.file.stat().st_size)
    site.drive = drive
    site.hosts = {"rack1-07": {"ssd_drives": [dict(drive.selector, ssd_overwrite_data=True)]}}

    def own(text, *args):
        book = tmp_path / "own.yml"
        book.write_text(text)
        return site.play(book, *args, env=COLLECTIONS, cwd=tmp_path)

    site.own = own
    return site


def full(drive):
    return set(drive.file.read_bytes()) == {0xA5}


def test_the_role_purge_erases_in_destructive_mode_and_leaves_the_data_in_plan_mode(lab):
    for plan in (("-e", "ssd_mode=plan"), ("--check",)):
        code, output = lab.own(PURGE, *plan)
        assert code == 0 and "purge by deallocate" in output and "would erase" in output, output
        assert full(lab.drive) and lab.run_folders() == []
    code, output = lab.own(PURGE)
    assert code == 0, output
    assert set(lab.drive.file.read_bytes()) == {0}
    (purge,) = lab.journal("purge")
    assert purge["verified"] is True and lab.journal("precondition") == [] and lab.summary()["verdicts"]["pass"] == 1


def test_the_role_purge_goes_through_the_guard(lab):
    lab.hosts["rack1-07"]["ssd_drives"] = [lab.drive.selector]
    code, output = lab.own(PURGE)
    assert code != 0 and "unsigned_data" in output, output
    assert full(lab.drive) and lab.run_folders() == []


@pytest.mark.parametrize(
    "result",
    [{"ssd_decision": {"run": {"id": "r", "name": "r", "results_dir": "/tmp", "destructive": True}}}, {"ssd_seen": {}}],
)
def test_what_was_decided_cannot_be_given(lab, result):
    code, output = lab.own(PURGE, "-e", "ssd_mode=plan", "-e", json.dumps(result))
    assert code != 0 and "is set by preflight and the roles and cannot be passed in" in " ".join(output.split()), output
    assert full(lab.drive) and lab.run_folders() == []


def test_a_play_in_batches_is_refused(lab, loop_drive):
    lab.hosts["rack1-08"] = {"ssd_drives": [loop_drive("other").selector]}
    code, output = lab.own(PURGE.replace("  roles:", "  serial: 1\n  roles:"))
    assert code != 0 and "remove serial, strategy: free" in " ".join(output.split()), output
    assert full(lab.drive) and lab.run_folders() == []


def test_included_roles_do_their_step_each_after_the_other(lab):
    code, output = lab.own(TWO_STEPS)
    assert code == 0, output
    purged, filled = sorted(lab.run_folders(), key=lambda folder: folder.name.endswith("-precondition"))
    assert purged.name.endswith("-purge") and '"method": "overwrite"' in (purged / "journal.jsonl").read_text()
    assert (
        '"passes": 1' in (filled / "journal.jsonl").read_text()
        and '"event": "purge"' not in (filled / "journal.jsonl").read_text()
    )


def test_the_role_workload_submits_with_the_defaults_of_roles_that_take_no_part(lab):
    code, output = lab.own(QUALIFY)
    assert code == 0, output
    (purge,) = lab.journal("purge")
    assert purge["method"] == "deallocate"  # the default, auto
    assert lab.summary()["verdicts"]["pass"] == 1
    assert "ioengine=io_uring" in (lab.run_folders()[0] / "plan.json").read_text()


def test_the_role_tune_tunes_and_says_in_plan_mode_what_it_would_change(lab):
    nomerges = Path("/sys/block", lab.drive.name, "queue/nomerges")
    before = nomerges.read_text()
    code, output = lab.own(TUNE, "--check", "--diff")
    assert code == 0 and "queue/nomerges: 2" in output and nomerges.read_text() == before, output
    try:
        code, output = lab.own(TUNE)
        assert code == 0 and nomerges.read_text() == "2\n", output
    finally:
        code, output = lab.play("restore")
    assert code == 0 and nomerges.read_text() == before and full(lab.drive), output
