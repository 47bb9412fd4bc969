# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers that a spreadsheet takes for numbers.

A line that begins with "Wrong:" names a known fault (tests/machines/README.md).
"""

from __future__ import annotations

import csv
from pathlib import Path

from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import made

SERIALS = Path(__file__).resolve().parents[4] / "fixtures" / "reports" / "serials-like-numbers.txt"


def test_a_serial_number_that_looks_like_a_number_is_written_as_it_is(tmp_path):
    """Wrong: Excel and LibreOffice take quoted digits for a number, of 15 digits at most."""
    serials = SERIALS.read_text(encoding="utf-8").split()
    drives = [generator.Drive("server-1", serial, generator.MODEL, 92_000, 41_200, "steady") for serial in serials]
    run_dir = generator.make(tmp_path, drives, rounds=6)
    made(run_dir)
    with (run_dir / "report" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["drive"], row["serial"]) for row in rows] == [(serial, serial) for serial in serials]
    shown = ["{:.15g}".format(float(row["serial"])) for row in rows]
    assert shown == ["12345", "2.2123e+49", "1.23456789012346e+17"]
