# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import sys

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import controller
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record


def record(*asked, started="2026-11-21T13:00:00Z", **tests):
    return {
        "schema_version": 1,
        "started": started,
        "asked": [{"host": h, "drive": d, "tests": []} for h, d in asked],
        "tests": tests,
    }


def test_a_missing_package_is_named_with_the_command():
    assert controller.missing_packages([("json", "json")]) == []
    (found,) = controller.missing_packages([("json", "json"), ("no_such_module", "No-Such")])
    assert f"{sys.executable} -m pip install No-Such" in found


def test_the_packages_of_the_project_are_in_its_requirements():
    text = (controller.__file__.rsplit("/plugins/", 1)[0]) + "/requirements.txt"
    with open(text, encoding="utf-8") as source:
        names = source.read()
    assert all(f"\n{pip}" in names for _module, pip in controller.PACKAGES)


@pytest.mark.parametrize("enabled", [["ssdlab.fleet.fleet"], ["profile_tasks", " ssdlab.fleet.fleet"]])
def test_an_enabled_callback_is_fine(enabled):
    assert controller.callback_findings(enabled, None) == []


@pytest.mark.parametrize(
    ("enabled", "line"),
    [
        (None, "callbacks_enabled = ssdlab.fleet.fleet"),
        (["timer"], "callbacks_enabled = timer, ssdlab.fleet.fleet"),
        (["fleet"], "fleet, ssdlab.fleet.fleet"),
    ],
)
def test_a_missing_callback_gets_the_lines_to_add(enabled, line):
    (found,) = controller.callback_findings(enabled, "/etc/ansible/ansible.cfg")
    assert "In /etc/ansible/ansible.cfg" in found and "[defaults]" in found and line in found


@pytest.mark.parametrize("keep", [True, False])
def test_a_folder_is_tried_and_left_as_it_was_unless_kept(tmp_path, keep):
    folder = tmp_path / "a" / "b"
    assert controller.folder_problem(str(folder), keep) == ""
    assert folder.exists() is keep and (not keep or not list(folder.iterdir())) and (tmp_path / "a").exists() is keep


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    assert "Not a directory" in controller.folder_problem(str(tmp_path / "file" / "x"), True)
    # root may write everywhere but in /proc
    assert controller.folder_problem("/proc/ssd-results", True)


def test_run_json_is_written_once_and_stays_as_it_is(tmp_path):
    folder = str(tmp_path / "run")
    assert run_record.write_run(folder, record(("h1", "A"), iops={}))
    before = os.stat(os.path.join(folder, "run.json"))
    assert not run_record.write_run(folder, record(("h1", "A"), iops={}, started="2027-01-01T00:00:00Z"))
    assert os.stat(os.path.join(folder, "run.json")).st_mtime_ns == before.st_mtime_ns


def test_a_later_play_adds_its_hosts_and_forgets_none(tmp_path):
    folder = str(tmp_path)
    run_record.write_run(folder, record(("h1", "A"), ("h2", "B"), iops={}))
    run_record.write_run(folder, record(("h2", "C"), ("h3", "D"), wsat={}, started="2027-01-01T00:00:00Z"))
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as source:
        merged = json.load(source)
    assert [(entry["host"], entry["drive"]) for entry in merged["asked"]] == [("h1", "A"), ("h2", "C"), ("h3", "D")]
    assert sorted(merged["tests"]) == ["iops", "wsat"] and merged["started"] == "2026-11-21T13:00:00Z"
