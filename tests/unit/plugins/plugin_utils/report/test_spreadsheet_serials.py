# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers that a spreadsheet takes for numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import download_files
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import made

SERIALS = Path(__file__).resolve().parents[4] / "fixtures" / "reports" / "serials-like-numbers.txt"


def test_a_serial_number_that_looks_like_a_number_stays_a_text(tmp_path):
    """Excel and LibreOffice take quoted digits for a number, of 15 digits at most."""
    serials = SERIALS.read_text(encoding="utf-8").split()
    drives = [generator.Drive("server-1", serial, generator.MODEL, 92_000, 41_200, "steady") for serial in serials]
    run_dir = generator.make(tmp_path, drives, rounds=6)
    made(run_dir)
    with (run_dir / "report" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["drive"], row["serial"]) for row in rows] == [(serial, serial) for serial in serials]
    data = (run_dir / "report" / "results-spreadsheet.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    shown = list(csv.DictReader(data.decode("utf-8-sig").splitlines()))
    assert [(row["drive"], row["serial"]) for row in shown] == [(f'="{serial}"', f'="{serial}"') for serial in serials]
    assert [{**row, **identities(other)} for row, other in zip(shown, rows)] == rows


def identities(row):
    return {name: row[name] for name in ("host", "drive", "serial", "model", "firmware")}


@pytest.mark.parametrize(
    "model, cell", [('2.5" SSD', '="2.5"" SSD"'), ("", ""), ("=1+1", '="\'=1+1"'), ("x" * 300, "x" * 300)]
)
def test_a_name_can_not_leave_its_quotes(model, cell):
    table = csv_line("model", "iops") + csv_line(download_files.spreadsheet_cell(model), "7")
    shown = list(csv.reader(io.StringIO(download_files.spreadsheet_text(table).lstrip("\ufeff"))))
    assert shown == [["model", "iops"], [cell, "7"]]


def csv_line(*cells):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow(cells)
    return out.getvalue()
