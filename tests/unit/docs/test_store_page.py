# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for notebooks run as they stand, over a store that has several nights."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("scipy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """A working folder whose ssd-results has a store of six nights of ten drives: one is worn, and all are slower in
    the last night.
    """
    results = tmp_path_factory.mktemp("work") / "ssd-results"
    for day in range(15, 21):
        speed = 0.8 if day == 20 else 1.0
        drives = [
            generator.DEMO[2 if at == 4 else 0]._replace(host=f"server-{at}", serial=f"SIM{at:04}") for at in range(10)
        ]
        drives = [drive._replace(steady_iops=drive.steady_iops * speed) for drive in drives]
        generator.moved(generator.make(results, drives, rounds=12, seed=day), day)
    with database.opened(database.resolve("", str(results)), make=True) as store:
        assert [done.problems for done in importer.import_all(store, str(results))] == [[]] * 6
    return results.parent


def cell(page):
    """What the expressions of a page's example give, as a notebook would show them."""
    (text,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    names, shown = {}, []
    # What is run is an example of our own page, not input.
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Expr):
            expression = compile(ast.Expression(statement.value), page, "eval")
            shown.append(eval(expression, names))  # pylint: disable=eval-used
        else:
            exec(compile(ast.Module([statement], []), page, "exec"), names)  # pylint: disable=exec-used
    return names, [value for value in shown if value is not None]


@pytest.fixture(autouse=True)
def fixture_there(monkeypatch, folder):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(folder)


def test_reading_the_store_and_a_plot():
    names, (described, plot) = cell("store.md")
    assert set(names["figures"]["run"]) == {f"202611{day}T130000Z-qualify" for day in range(15, 21)}
    assert described["count"].tolist() == [10] and described["50%"].iloc[0] == pytest.approx(41_200 * 0.8, rel=0.05)
    assert len(names["drives"]) == 60 and len(plot.data) == 10 and {len(line.x) for line in plot.data} == {12}


def test_judging_out_of_the_store():
    names, (outliers, worse, repeats) = cell("fleet.md")
    assert outliers["serial"].iloc[0] == "SIM0004" and "write_iops" in set(outliers["metric"])
    assert set(outliers[outliers["metric"] == "write_iops"]["serial"]) == {"SIM0004"}
    assert len(names["told"].against) == 5 and "write_iops" in set(worse["metric"])
    # Of the nights that the run is compared with.
    assert repeats["runs"].max() == 5
