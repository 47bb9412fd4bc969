# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_refused: one odd drive is left out and told, and the others get their night."""

from __future__ import annotations

import json
import subprocess

import pytest


def records(site, name):
    (run,) = site.results.glob(f"*/{name}")
    return json.loads(run.read_text())


@pytest.fixture
def mounted(loop_drive, tmp_path):
    """A drive whose file system is mounted."""
    drive, place = loop_drive("mounted"), tmp_path / "mnt"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", drive.path], check=True)
    subprocess.run(["mount", drive.path, place], check=True)
    try:
        (place / "file").write_text("somebody's")
        # So that nothing but a test writes to it from here on.
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        yield drive
    finally:
        subprocess.run(["umount", place], check=True)


def test_beside_a_drive_in_use_the_good_one_is_measured_and_no_override_counts(site, loop_drive, mounted):
    good, given_up = loop_drive("good"), loop_drive("given_up")
    given_up.file.write_bytes(b"\xa5" * given_up.file.stat().st_size)
    before = mounted.digest(), given_up.digest()
    overridden = {**given_up.selector, "ssd_overwrite_data": True}
    site.hosts = {"rack1-07": {"ssd_drives": [good.selector, mounted.selector, overridden]}}
    code, output = site.play("qualify")
    assert code != 0 and (mounted.digest(), given_up.digest()) == before, output
    found = {drive["drive"]: drive for drive in records(site, "report/summary.json")["drives"]}
    told = {
        name: (drive["verdict"], drive["reasons"][0].partition("left out: ")[2][:10]) for name, drive in found.items()
    }
    assert told == {
        str(good.file): ("pass", ""),
        str(mounted.file): ("not_tested", "mounted: i"),
        str(given_up.file): ("not_tested", "wrong_list"),
    }


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
