# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nightly workflow, node by node along its edges, with one bad drive: its transcript is docs/nightly-transcript.md.

With SSDLAB_WRITE_TRANSCRIPT=1 in the environment the test writes that anew.
"""

from __future__ import annotations

import os
import re

import pytest
import yaml
from awx_jobs import REPO, Loader, nightly, webhook

PAGE = REPO / "docs/nightly-transcript.md"
BLOCK = re.compile(r"(```\n)(.*?)(```\n)", re.DOTALL)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# What Ansible says of each task, warnings about this machine, and a failure that the report tells too.
ANSIBLE = re.compile(
    r"(PLAY|TASK) |(ok|changed|included|fatal): |\S+ +: ok=|\d+ warnings|- |HOST |MODEL |\s*[\[\]{}]|\s*$"
)
FAILURE = re.compile(r"^\[ERROR\].*?(?=^fatal: )", re.DOTALL | re.MULTILINE)
LOOK = re.compile(r"\d\d:\d\d:\d\d  ")
WIDTH, COMPARED = 120, 60


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with two drives."""
    return nightly(site, tmp_path / "awx", loop_drive("good"), loop_drive("bad"))


def lines(node, said):
    """What a job says to people. Of a watch only its last look: how often it looks depends on the machine."""
    kept = [line for line in FAILURE.sub("", COLOURS.sub("", said)).splitlines() if not ANSIBLE.match(line)]
    if node.startswith("watch"):
        kept = kept[[number for number, line in enumerate(kept) if LOOK.match(line)][-1] :]
    return kept


def readable(told, awx):
    """A transcript as people read it: no folders of this test, no long lines."""
    text = "\n".join(told).replace(str(awx.site.drives[0].file.parent), "…")
    text = re.sub(re.escape(str(awx.folder)) + r"/[^/\s]+", "…", text)
    return "".join(line[: WIDTH - 1] + "…\n" if len(line) > WIDTH else line + "\n" for line in text.splitlines())


def shape(transcript):
    """How a transcript's lines begin, without figures and times, and the blanks that follow from their widths."""
    masked = [re.sub(r"\s+", " ", re.sub(r"\d[\d.,:TZ-]*", "#", line)) for line in transcript.splitlines()]
    return [line[:COMPARED] for line in masked]


@pytest.mark.long
def test_a_night_goes_along_the_workflows_edges_as_its_transcript_shows(awx):
    schedule = yaml.load((REPO / "roles/awx/defaults/main.yml").read_text(), Loader)["awx_schedule"]
    told = [f"schedule: {schedule}"]
    with webhook() as (address, posted):
        for node, status, said in awx.workflow("nightly", notify={"report_webhook_url": address}):
            told += ["", f"{node}: {status}", *("  " + line for line in lines(node, said))]
            if node == "start":
                awx.site.drives[1].detach()  # It dies before its turn comes.
    (message,) = posted
    told += ["", "posted to the chat:", *("  " + line for line in message["text"].splitlines())]
    transcript = readable(told, awx)
    assert awx.artifacts["ssd_verdicts"]["pass"] == 1
    if os.environ.get("SSDLAB_WRITE_TRANSCRIPT"):
        PAGE.write_text(BLOCK.sub(lambda found: found[1] + transcript + found[3], PAGE.read_text(), count=1))
    assert shape(BLOCK.search(PAGE.read_text())[2]) == shape(transcript), transcript
