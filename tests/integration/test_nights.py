# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nightly runs on the same drive need no excuse: whole qualifications, one after the other, with no option that lifts
anything.
"""

from __future__ import annotations

import json
from pathlib import Path

import own_machine
import pytest


def qualify(site, night):
    """One night; the records of its journal."""
    code, output = site.play("qualify", "-e", "ssd_run_id=" + night)
    assert code == 0, output
    summary = json.loads((site.results / night / "report/summary.json").read_text())
    assert summary["verdicts"]["pass"] == 1, summary
    return [json.loads(line) for line in (site.state / "runs" / night / "journal.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize(
    "leave, anew", [(None, True), ("as_is", False)], ids=["left blank, attached again", "left as it is, same boot"]
)
def test_two_nights_pass(site, loop_drive, leave, anew):
    drive = loop_drive()
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    site.vars.update({"ssd_criteria": [{"metric": "write_iops", "min": 1}]}, **({"ssd_leave": leave} if leave else {}))
    attachments = []
    for night in ("one", "two"):
        attachments.append(Path("/sys/block", drive.name, "diskseq").read_text())
        journal = qualify(site, night)
        left = [record["state"] for record in journal if record["event"] == "left"]
        overridden = [record["overridden"] for record in journal if record["event"] == "guard"]
        assert left == ([] if leave else ["blank"]) and not any(overridden)
        print([record for record in journal if record["event"] == "left"])
        if anew:
            drive.detach()
            drive.path = own_machine.attach(drive.file, "--direct-io=on")
    assert (len(set(attachments)) == 2) is anew
