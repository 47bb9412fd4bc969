# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that fails night after night, on loop devices with the store of the results folder: it is left out until it
is released, and the other drive is measured all the same.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/simulator"))

import simulated_ssd

# A drive that is found, told and read, and that answers every write with an I/O error.
WRITES_FAIL = ["--filter=error", "memory", str(64 << 20), "error-pwrite=EIO", "error-pwrite-rate=100%"]

MISSED, MET = [{"metric": "write_iops", "min": 1e9}], [{"metric": "write_iops", "min": 1}]


def verdicts(site):
    newest = max(site.results.glob("*/report/summary.json"), key=lambda path: path.parent.parent.name)
    return {drive["drive"]: (drive["verdict"], drive["reasons"]) for drive in json.loads(newest.read_text())["drives"]}


def newest_run(site):
    return max(site.results.glob("*/report")).parent.name


def test_a_drive_that_failed_night_after_night_is_left_out_until_it_is_released(site, loop_drive):
    bad, good = loop_drive("bad"), loop_drive("good")
    name, other = str(bad.file), str(good.file)
    site.vars.update(ssd_quarantine_after=2, ssd_criteria=MISSED)
    site.hosts = {"rack1-07": {"ssd_drives": [bad.selector]}}
    code, said = site.play("qualify")
    assert code != 0 and verdicts(site)[name][0] == "fail", said

    # From here on it would pass. It is evidence, so only the others are measured.
    before = bad.digest()
    site.vars["ssd_criteria"] = MET
    site.hosts["rack1-07"]["ssd_drives"] = [bad.selector, good.selector]
    code, said = site.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0 and f"drive {name}: evidence: " in said, said
    first = newest_run(site)
    code, said = site.play("qualify")
    found = verdicts(site)
    assert code != 0 and found[other][0] == "pass" and bad.digest() == before, said
    assert found[name][0] == "not_tested" and f"it is kept as evidence: run {first}" in found[name][1][0], said

    # Released and failed again: the second night that told of it.
    site.vars["ssd_criteria"] = MISSED
    site.hosts["rack1-07"]["ssd_drives"] = [{**bad.selector, "release_evidence": first}]
    code, said = site.play("qualify")
    assert code != 0 and verdicts(site)[name][0] == "fail", said
    site.vars["ssd_criteria"] = MET
    site.hosts["rack1-07"]["ssd_drives"] = [{**bad.selector, "release_evidence": newest_run(site)}]
    before, runs = bad.digest(), len(site.run_folders())
    code, said = site.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0 and f"drive {name}: quarantined: failed 2 nights in a row" in said, said
    code, said = site.play("qualify")
    assert code != 0 and len(site.run_folders()) == runs and bad.digest() == before, said
    verdict, (reason, *_more) = verdicts(site)[name]
    assert verdict == "not_tested" and "quarantined: failed 2 nights in a row" in reason, said
    assert "write_iops" in reason
    code, said = site.play("release", "-e", json.dumps({"ssd_release_drive": "nobody"}))
    assert code != 0 and "is not in quarantine" in said and name in said
    code, said = site.play("release", "-e", json.dumps({"ssd_release_drive": name}))
    assert code == 0 and "changed=1" in said, said
    code, said = site.play("qualify")
    assert code == 0 and verdicts(site)[name][0] == "pass" and bad.digest() != before, said


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("nbdfuse"), reason="needs nbdkit and nbdfuse for a drive that fails")
def test_a_drive_whose_io_fails_night_after_night_is_left_out_too(site, loop_drive):
    good = loop_drive("good")
    site.vars.update(ssd_quarantine_after=2, ssd_criteria=MET)
    with simulated_ssd.simulated_ssd(site.folder / "served", "bad", WRITES_FAIL) as bad:
        name = bad["backing_file"]
        site.hosts = {"rack1-07": {"ssd_drives": [{"backing_file": name}, good.selector]}}
        for _night in range(2):
            code, said = site.play("qualify")
            found = verdicts(site)
            assert code != 0 and found[name][0] == "error" and found[str(good.file)][0] == "pass", said
            assert "fio reports error 5" in found[name][1][0], found
        code, said = site.play("qualify", "-e", "ssd_mode=plan")
        assert code == 0 and f"drive {name}: quarantined: failed 2 nights in a row" in said, said
