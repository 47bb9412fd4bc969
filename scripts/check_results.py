# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what pytest wrote about the tests of a check (--junitxml): which failed and why, which were skipped, and which
were slowest.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
# Of what a failed test said: enough to know it by where only the end of a log is kept.
FAILED_LINES = 12
# What no busy machine makes: a process of the tests died, with who knows how many tests unrun, or data was destroyed
# (tests/integration/wrong_drive.py).
NEVER_EXCUSED = re.compile(r"worker '\w+' crashed|^(?:[\w.]+\.)?Destroyed\b")


def cases_in(path: Path) -> list[ElementTree.Element]:
    """The tests of one of pytest's files; none where it is damaged."""
    try:
        return list(ElementTree.parse(path).iter("testcase"))
    except ElementTree.ParseError:
        return []


def all_cases(results: Path) -> list[ElementTree.Element]:
    """The tests, from pytest's own files in a check's folder."""
    return [case for path in sorted(results.glob("*.xml")) for case in cases_in(path)]


def problems(case: ElementTree.Element) -> list[ElementTree.Element]:
    """How a test failed; empty where it did not."""
    return [*case.findall("failure"), *case.findall("error")]


def failed_cases(results: Path) -> list[ElementTree.Element]:
    """The tests that failed."""
    return [case for case in all_cases(results) if problems(case)]


def skipped_cases(results: Path) -> list[ElementTree.Element]:
    """The tests that were skipped."""
    return [case for case in all_cases(results) if case.findall("skipped")]


def doubts(results: Path, promised: list[str]) -> list[str]:
    """Why a check that ended with 0 has not passed all the same. promised: the files that its pytest was to write."""
    found = [f"pytest left no tests in {name}" for name in promised if not _exists(results / name)]
    failed = len(failed_cases(results))
    return found + [f"{failed} tests failed, and pytest ended with 0"] * bool(failed)


def _exists(path: Path) -> bool:
    return path.is_file() and bool(cases_in(path))


def may_be_excused(cases: list[ElementTree.Element]) -> bool:
    """Whether a busy machine may have made all of these failures."""
    said = (problem.get("message", "") for case in cases for problem in problems(case))
    return not any(NEVER_EXCUSED.search(message) for message in said)


def not_passed(asked: list[str], results: Path, root: Path) -> list[str]:
    """Those of the asked tests (node ids) that did not run and pass; one that was skipped shows nothing."""
    cases = all_cases(results)
    bad = {node_id(case, root) for case in cases if problems(case) or case.findall("skipped")}
    ran = {node_id(case, root) for case in cases}
    return [name for name in asked if name in bad or name not in ran]


def failed_tests(results: Path) -> list[tuple[str, list[str]]]:
    """Name and last lines of each test that failed."""
    found = []
    for case in failed_cases(results):
        for problem in problems(case):
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
        for case in cases_in(path):
            found.append(
                (
                    float(case.get("time", 0)),
                    f"{path.parent.name}: {case.get('classname', '').rpartition('.')[2]}::{case.get('name')}",
                )
            )
    return sorted(found, reverse=True)[:SLOWEST]
