# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what pytest wrote about the tests of a check (--junitxml): which failed and why, and which were slowest."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
# Of what a failed test said: enough to know it by where only the end of a log is kept.
FAILED_LINES = 12


def failed_cases(results: Path) -> list[ElementTree.Element]:
    """The tests that failed, from pytest's own files in a check's folder."""
    cases = [case for path in sorted(results.glob("*.xml")) for case in ElementTree.parse(path).iter("testcase")]
    return [case for case in cases if case.findall("failure") or case.findall("error")]


def failed_tests(results: Path) -> list[tuple[str, list[str]]]:
    """Name and last lines of each test that failed."""
    found = []
    for case in failed_cases(results):
        for problem in [*case.findall("failure"), *case.findall("error")]:
            said = (problem.text or problem.get("message") or "").strip().splitlines()
            found.append((f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}", said[-FAILED_LINES:]))
    return found


def node_id(case: ElementTree.Element, root: Path) -> str:
    """What pytest calls a test of its results file, as `tests/unit/test_x.py::TestX::test_y[z]`; "" where there is no
    such file below `root`.
    """
    parts = case.get("classname", "").split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length]) + ".py"
        if (root / path).is_file():
            return "::".join([path, *parts[length:], case.get("name", "")])
    return ""


def slowest_tests(output: Path) -> list[tuple[float, str]]:
    """Seconds and name of the slowest tests of all checks whose folders are in `output`, from pytest's own figures."""
    found = []
    for path in output.glob("*/*.xml"):
        for case in ElementTree.parse(path).iter("testcase"):
            found.append(
                (
                    float(case.get("time", 0)),
                    f"{path.parent.name}: {case.get('classname', '').rpartition('.')[2]}::{case.get('name')}",
                )
            )
    return sorted(found, reverse=True)[:SLOWEST]
