# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_log
from ansible_collections.ssdlab.fleet.tests.fixtures import kmsg

LINES = Path(__file__).parents[4] / "fixtures" / "kernel_log" / "lines.yml"
SOURCES = yaml.safe_load(LINES.read_text(encoding="utf-8"))
ALL = [line for source in SOURCES for line in source["lines"]]


@pytest.mark.parametrize("line", ALL, ids=lambda line: f"{line['linux']}: {line['text'][:60]}")
def test_what_a_line_means(line):
    (record,) = kernel_log.records(kmsg.record(line["text"], time_s=12.5))
    found = kernel_log.events(record)
    assert [f"{event.kind} {event.name}" for event in found] == line["means"]
    assert {event.time_s for event in found} <= {12.5}


def test_every_pattern_has_a_line():
    texts = [" ".join(line["text"].split()) for line in ALL]
    patterns = [pattern for _kinds, pattern in kernel_log.PATTERNS]
    used = {next((pattern for pattern in patterns if pattern.match(text)), None) for text in texts}
    assert [pattern.pattern for pattern in patterns if pattern not in used] == []


def test_records_with_properties_and_escapes():
    data = kmsg.record("ata3.00: cmd 60\n  res Emask 0x4 (timeout)", 1, sequence=7) + kmsg.record(
        "nvme nvme0: resetting controller", 2.000003, sequence=8, SUBSYSTEM="nvme", DEVICE="c241:0"
    )
    assert b"\\x0a" in data and b"\n SUBSYSTEM=nvme\n DEVICE=c241:0\n" in data
    assert kernel_log.records(data) == [
        kernel_log.LogRecord(7, 1.0, "ata3.00: cmd 60\n  res Emask 0x4 (timeout)"),
        kernel_log.LogRecord(8, 2.000003, "nvme nvme0: resetting controller"),
    ]


@pytest.mark.parametrize(
    "data",
    [
        kmsg.record("nvme nvme0: resetting controller", facility=1),  # echo … > /dev/kmsg
        kmsg.record("nvme nvme0: resetting controller", facility=3),  # systemd
        b" SUBSYSTEM=nvme\n",
        b"nvme nvme0: resetting controller\n",
        b"6,1;nvme nvme0: resetting controller\n",
        b"",
    ],
)
def test_only_the_kernel_is_heard(data):
    assert kernel_log.records(data) == []


def test_newer_records_have_more_fields():
    """CONFIG_PRINTK_CALLER."""
    (record,) = kernel_log.records(b"4,339,5140900,-,caller=T1;nvme nvme0: resetting controller\n")
    assert (record.sequence, record.time_s) == (339, 5.1409)


@given(st.binary(max_size=200))
def test_nothing_that_is_read_raises(data):
    for record in kernel_log.records(data + b"\n6,1,1,-;" + data):
        kernel_log.events(record)
