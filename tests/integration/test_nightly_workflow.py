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
# How long that took decides whether drives share the line.
TIMED = re.compile(r"\s+read all \S+ \S+ in ")
LOOK = re.compile(r"\d\d:\d\d:\d\d  ")
WIDTH, CUT = 120, "…"


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with two drives."""
    return nightly(site, tmp_path / "awx", loop_drive("good"), loop_drive("bad"))


def lines(node, said):
    """What a job says to people. Of a watch only its last look: how often it looks depends on the machine."""
    kept = [line for line in FAILURE.sub("", COLOURS.sub("", said)).splitlines() if not ANSIBLE.match(line)]
    kept = [line for line in kept if not TIMED.match(line)]
    if node.startswith("watch"):
        kept = kept[[number for number, line in enumerate(kept) if LOOK.match(line)][-1] :]
    return kept


def readable(told, awx):
    """The lines of a transcript, without folders of this test, and digests, in which these are."""
    text = "\n".join(told).replace(str(awx.site.drives[0].file.parent), "…")
    text = re.sub(re.escape(str(awx.folder)) + r"/[^/\s]+", "…", text)
    return re.sub(r"(SHA-256|line) [0-9a-f]{8,}", r"\1 …", text).splitlines()


def cut(line):
    """A line that is no wider than the page."""
    return line[: WIDTH - 1] + CUT if len(line) > WIDTH else line


def shape(line):
    """A line without figures and times, and without the blanks that follow from their widths."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,:TZ-]*", "#", line)).rstrip()


def differences(page, said):
    """What of a page is not what was said: figures apart, every line in whole, or as far as the page shows it."""
    if len(page) != len(said):
        return [f"the page has {len(page)} lines, the night {len(said)}"]
    alike = (
        shape(now).startswith(shape(shown[:-1]))
        if len(shown) == WIDTH and shown.endswith(CUT)
        else shape(now) == shape(shown)
        for shown, now in zip(page, said)
    )
    return [f"page: {shown}\nnow:  {now}" for shown, now, same in zip(page, said, alike) if not same]


@pytest.mark.parametrize(
    "shown, now, same",
    [
        ("drive 1: 199.8 IOPS", "drive 1: 201 IOPS", True),
        ("drive 1: 199.8 IOPS", "drive 1: 201 MiB/s", False),
        ("a" * 90 + " 1 end", "a" * 90 + " 2 other", False),
        (cut("a 7 " * 40), "a 12345 " * 40, True),
        (cut("a 7 " * 40), "a 7 " * 20 + "b " * 40, False),
    ],
)
def test_a_line_of_the_page_is_compared_in_whole(shown, now, same):
    assert (differences([shown], [now]) == []) is same


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
    said = readable(told, awx)
    assert awx.artifacts["ssd_verdicts"]["pass"] == 1
    if os.environ.get("SSDLAB_WRITE_TRANSCRIPT"):
        shown = "".join(cut(line) + "\n" for line in said)
        PAGE.write_text(BLOCK.sub(lambda found: found[1] + shown + found[3], PAGE.read_text(), count=1))
    found = differences(BLOCK.search(PAGE.read_text())[2].splitlines(), said)
    assert found == [], "\n".join(found)
