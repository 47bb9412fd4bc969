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

# How the reason begins of a test that was skipped as the machine was busy.
NOT_JUDGED = "not judged"


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


def not_judged(results: Path) -> list[tuple[str, str]]:
    """Name and reason of each test that tests/control_drive.py has not judged, as the machine was busy."""
    said = [(case, case.find("skipped").get("message", "")) for case in skipped_cases(results)]
    prefix = f"{NOT_JUDGED}: "
    return [
        (name_of(case), message.partition(prefix)[2])
        for case, message in said
        if message.removeprefix("Skipped: ").startswith(prefix)
    ]


def name_of(case: ElementTree.Element) -> str:
    """A test's module and name."""
    return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"


def doubts(results: Path, promised: list[str]) -> list[str]:
    """Why a check that ended with 0 has not passed all the same. promised: the files that its pytest was to write."""
    found = [f"pytest left no tests in {name}" for name in promised if not _exists(results / name)]
    failed = len(failed_cases(results))
    return found + [f"{failed} tests failed, and pytest ended with 0"] * bool(failed)


def _exists(path: Path) -> bool:
    return path.is_file() and bool(cases_in(path))


def failed_tests(results: Path) -> list[tuple[str, list[str]]]:
    """Name and last lines of each test that failed."""
    found = []
    for case in failed_cases(results):
        for problem in problems(case):
            said = (problem.text or problem.get("message") or "").strip().splitlines()
            found.append((name_of(case), said[-FAILED_LINES:]))
    return found


def slowest_tests(output: Path) -> list[tuple[float, str]]:
    """Seconds and name of the slowest tests of all checks whose folders are in `output`, from pytest's own figures."""
    found = []
    for path in output.glob("*/*.xml"):
        for case in cases_in(path):
            found.append((float(case.get("time", 0)), f"{path.parent.name}: {name_of(case)}"))
    return sorted(found, reverse=True)[:SLOWEST]
