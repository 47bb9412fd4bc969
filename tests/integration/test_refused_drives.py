# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_refused: one odd drive is left out and told, and the others get their night."""

from __future__ import annotations

import json


def records(site, name):
    (run,) = site.results.glob(f"*/{name}")
    return json.loads(run.read_text())


def test_a_drive_with_a_byte_of_data_is_left_out_and_the_good_one_measured(site, loop_drive):
    good, old = loop_drive("good"), loop_drive("old")
    with open(old.file, "r+b") as file:
        file.seek(600_000)
        file.write(b"x")
    before = old.digest()
    site.hosts = {"rack1-07": {"ssd_drives": [good.selector, old.selector]}}
    code, output = site.play("start", "-e", "ssd_mode=plan")
    assert code == 0 and f"rack1-07: drive {old.file}: unsigned_data: " in output, output
    code, output = site.play("qualify")
    assert code != 0 and old.digest() == before, output
    found = {drive["drive"]: drive for drive in records(site, "report/summary.json")["drives"]}
    assert found[str(good.file)]["verdict"] == "pass", output
    assert found[str(old.file)]["verdict"] == "not_tested" and "unsigned_data" in found[str(old.file)]["reasons"][0]

    site.vars["ssd_refused"] = "stop"
    code, output = site.play("start", "-e", "ssd_run_name=again")
    assert code != 0 and "Nothing was erased or changed" in output and "unsigned_data" in output, output
    assert len(list(site.results.glob("*again*"))) == 0
