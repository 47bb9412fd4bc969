# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the few tests that failed beside other checks once more, with the machine to themselves."""

from __future__ import annotations

import subprocess
import sys
import time
import typing as t
from pathlib import Path

import check_results

# More failures than these are no matter of a busy machine. The second time is for what the first retry's own start
# disturbed, and must begin within this time of the checks' start, as CI ends them at 90 minutes.
RETRIED_TESTS, RETRIES, RETRY_BEFORE_S = 12, 2, 70 * 60


def to_retry(returncode: int, results: Path, root: Path) -> list[str]:
    """The tests of a check that may have failed by the load alone, as pytest names them; none where one of them can't
    have.
    """
    cases = check_results.failed_cases(results)
    # pytest ends with 1 when tests failed, and with others when it was interrupted or could not collect.
    if returncode != 1 or len(cases) > RETRIED_TESTS or not check_results.may_be_excused(cases):
        return []
    tests = list(dict.fromkeys(check_results.node_id(case, root) for case in cases))
    return tests if all(tests) else []


def pass_alone(
    tests: t.Sequence[str],
    results: Path,
    root: Path,
    before_s: float,
    start: t.Callable[[list[str]], subprocess.Popen[bytes]],
) -> bool:
    """Whether all of them pass, each in the first or the second attempt, of which the last begins before `before_s`
    (monotonic). start: starts a command that a signal to us ends too.
    """
    left = list(tests)
    for attempt in range(RETRIES):
        if not left or time.monotonic() > before_s:
            break
        alone = results / f"alone-{attempt + 1}"
        ended = start([sys.executable, "-m", "pytest", *left, f"--junitxml={alone}/tests.xml"]).wait()
        # Whatever else than failed tests ended it says nothing of those that it did not come to.
        if ended not in (0, 1) or not check_results.may_be_excused(check_results.failed_cases(alone)):
            break
        left = check_results.not_passed(left, alone, root)
    return not left
