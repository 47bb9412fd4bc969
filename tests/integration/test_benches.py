# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each bench that the docs cite runs: in its shortest form, on any machine. What it measures is not judged here."""

from __future__ import annotations

import re

import pytest
import shortest


def cited():
    """The benches that the pages name."""
    pages = [*(shortest.ROOT / "docs").rglob("*.md"), shortest.ROOT / "README.md", shortest.ROOT / "CONTRIBUTING.md"]
    texts = (page.read_text(encoding="utf-8") for page in pages)
    return {name for text in texts for name in re.findall(r"tests/bench/(\w+)\.py", text)} - {"shortest"}


def test_each_bench_that_the_docs_cite_is_started_here():
    started = {*shortest.BENCHES, *shortest.IN_A_GUEST}
    assert cited() <= started, "give it a line of the table with its shortest form, or take it out of the table"


@pytest.mark.parametrize("name", shortest.BENCHES)
def test_it_runs_in_its_shortest_form(tmp_path, name):
    shortest.run(name, shortest.BENCHES[name], tmp_path)
