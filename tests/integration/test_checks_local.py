# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks and samples against this machine and a loop drive: a warning lets a run pass, what the inventory wants blocked
blocks.
"""

from __future__ import annotations

import json
import math

import pytest


@pytest.fixture
def lab(site, loop_drive):
    """One server with one drive."""
    site.drive = loop_drive()
    site.hosts = {"rack1-07": {"ssd_drives": [site.drive.selector]}}
    return site


def told(output):
    return " ".join(output.split())


def test_warnings_are_shown_in_plan_mode_and_stop_nothing(lab):
    code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    assert code == 0, output
    assert "1 warning, also shown in the report" in output
    # What a loop drive lacks is one line, with the checks that wanted it.
    (line,) = [line for line in output.splitlines() if "pcie_link" in line]
    assert line.startswith("- virtual: ") and " 1 drive (" in line
    assert "pcie_link, health, media_errors, spare, wear, temperature)" in line
    assert "drives report no health" not in output


def test_what_the_inventory_wants_blocked_blocks_with_all_other_findings(lab):
    digest = lab.drive.digest()
    lab.vars["preflight_levels"] = {"pcie_link": "blocks", "health": "ok"}
    lab.vars["preflight_versions"] = {"fio": ">=99", "kernel": "*"}
    code, output = lab.play("qualify")
    assert code != 0
    assert "Preflight found 2 things to fix. Nothing was erased or changed." in told(output)
    assert "versions: fio has version" in told(output) and "preflight_versions requires >=99" in told(output)
    assert f"drive {lab.drive.file}: pcie_link: loop drives have no PCI Express link" in told(output)
    assert "media_errors, spare, wear, temperature" in told(output)
    assert lab.drive.digest() == digest and lab.run_folders() == []


def test_wrong_words_are_told_before_anything_is_spent(lab):
    lab.vars["preflight_levels"] = {"pcie_lnik": "warning", "health": "block"}
    lab.vars["preflight_firmware"] = {"*": 3.3}
    code, output = lab.play("preflight")
    assert code != 0
    assert "there is no check 'pcie_lnik'; did you mean pcie_link?" in told(output)
    assert (
        "preflight_levels.health: 'block' must be one of the words: ok, warning, blocks; did you mean blocks?"
        in told(output)
    )
    assert "preflight_firmware.*: 3.3 must be a string, or a list of strings, in quotes" in told(output)


def test_a_run_takes_samples_and_loop_drives_tell_why_theirs_are_empty(lab):
    lab.vars["ssd_sample_interval_s"] = 1
    code, output = lab.play("qualify", "-v")
    assert code == 0, output
    # All that -v prints of this host and of the fleet's decisions, on a screen of 120 columns.
    printed = [line for line in output.splitlines() if line.startswith(("ok: [rack1-07", "changed: [rack1-07"))]
    assert len(printed) > 10 and sum(math.ceil(len(line) / 120) for line in printed) < 50, printed
    samples = lab.journal("sample")
    (end,) = lab.ended()
    rounds = lab.journal("round")
    # One before the fill, one after the last cell, and one a second between them.
    assert (
        len(samples) >= 2 + len(rounds) // 2
        and samples[0]["time"] < rounds[0]["time"]
        and samples[-1]["time"] > rounds[-1]["time"]
    )
    assert {sample["error"] for sample in samples} == {"loop drives report no health", ""}
    assert end["outcome"] == "steady", end["reasons"]
    assert all(sample["seconds"] < 0.5 for sample in samples)
    record = json.loads(next(lab.results.glob("*/run.json")).read_text())
    assert {"host", "check", "drive", "level", "message", "remedy"} == set(record["warnings"][0])
    page = "".join(path.read_text() for path in lab.results.glob("*/report/**/*.html"))
    assert "drives have no PCI Express link" in page
