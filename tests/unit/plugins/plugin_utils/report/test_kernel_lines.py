# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel logged of a drive stands on its page, where the drive did not pass."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import host_journal
from ansible_collections.ssdlab.fleet.tests.fixtures.report.records import event_of
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import drive_page, made

HOSTILE = "nvme nvme0: <script>alert(1)</script> " + "x" * 400


def logged(run_dir, host, drive, messages):
    """Have the kernel log messages in the middle of the drive's wsat."""
    journal = run_dir / "raw" / host / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    about = {"drive": drive, "test": "wsat", "attempt": 1, "kind": "reset", "name": "nvme0", "is_own": True}
    new = [event_of(host, "kernel_event", **about, boot_s=5140.93, message=message) for message in messages]
    place = next(index for index, line in enumerate(lines) if json.loads(line)["event"] == "round")
    lines[place + 1 : place + 1] = [json.dumps(event) + "\n" for event in new]
    journal.write_text("".join(lines))


def quoted(html):
    """The kernel's lines on a page, escaped as there."""
    return re.findall(r"<q><code>(.*?)</code></q>", html)


@pytest.mark.parametrize("count, more", [(1, 0), (host_journal.MOST_KERNEL_LINES + 3, 3)])
def test_the_first_lines_stand_beside_a_drive_that_failed(mixed, count, more):
    logged(mixed, "server-3", "SIM0003", ["nvme nvme0: resetting controller"] * count)
    made(mixed)
    html = drive_page(mixed, "server-3", "SIM0003")
    assert quoted(html) == ["[5140.9] nvme nvme0: resetting controller"] * (count - more)
    assert (f"and {more} more, <code>kernel_event</code> of the journal" in html) == bool(more)


def test_a_line_is_escaped_and_cut(mixed):
    logged(mixed, "server-3", "SIM0003", [HOSTILE])
    made(mixed)
    html = drive_page(mixed, "server-3", "SIM0003")
    (line,) = quoted(html)
    assert line.startswith("[5140.9] nvme nvme0: &lt;script&gt;alert(1)&lt;/script&gt; xxx")
    assert line.count("x") < host_journal.LONGEST_KERNEL_LINE and "<script>alert" not in html


def test_the_page_of_a_drive_that_passed_has_none(mixed):
    logged(mixed, "server-1", "SIM0001", ["ata3: hard resetting link"])
    made(mixed)
    html = drive_page(mixed, "server-1", "SIM0001")
    assert quoted(html) == [] and "The kernel logged" not in html
