# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a run and of each drive in one line: equal causes are one, whatever their numbers are. Pure."""

from __future__ import annotations

import collections
import re
import typing as t

from ...module_utils.measure import health_metrics
from ..common import units
from . import judged_criteria
from .fail_kinds import POWER_CUT, SELF_TEST_FAILED, UNREADABLE, WRONG_BLOCKS
from .reason_matching import cause_of, without_test
from .verdicts import VERDICTS

WORDS = {
    "fail": "failed",
    "error": "ended with an error",
    "invalid": "not measured validly",
    "not_tested": "not tested",
    "pass": "passed",
}
# Of one verdict of a run; the page and summary.json have all.
MOST_CAUSES = 6
LONGEST = 60
HOST_FAULT = "slow host"
# judged_criteria.comparison: "write_iops 352 < 500 (criterion iops write_iops min 500)".
_MISSED = re.compile(r"(?P<metric>[a-z][a-z0-9_]*) [^(]*? (?P<sign>[<>]) [^(]*\(criterion (?P<rest>.*)")
# criteria.missed_health: "it counted 3 more media errors (media_errors, max 0)".
_UNHEALTHY = re.compile(r".*\((?P<metric>[a-z][a-z0-9_]*)(?:, (?:max|min) [-0-9.e+]+)+\)$")
# criteria.self_test_text.
_SELF_TEST_FAILED = re.compile(r"its [a-z]+ self-test failed: ")
# What run/criteria.py says of power cuts (power_cut_faults).
_POWER_CUT = re.compile(
    r"\(in \d+ of \d+ cuts|did not come back after cut|claims power-loss protection|write cache is off, and it lost"
)
# Where none is allowed, the name alone says it.
_NONE_ALLOWED = re.compile(r" max 0(?=[ ):])")
_SICK = re.compile(r"(?:health|spare): ")

_UNJUDGED = {
    judged_criteria.NO_CRITERION: "held to no criterion",
    judged_criteria.HEALTH_ALONE: "held to health alone",
}

Mapping = t.Mapping[str, t.Any]


def of_drive(drive: Mapping) -> str:
    """Return a drive's verdict and its causes. drive: of judge.judge or summary.json."""
    verdict = drive["verdict"]
    if verdict == "pass":
        return WORDS[verdict] + "".join(f", {held}" for held in [_held(drive)] if held)
    return f"{WORDS[verdict]}: {', '.join(causes(drive)) or 'no reason known'}"


def of_run(drives: t.Sequence[Mapping]) -> str:
    """Return the verdicts of a run's drives, each with its causes: "23 of 96 drives passed; 2 failed: media errors;
    6 not measured validly: host busy 4, throttled 2".
    """
    if not drives:
        return "no drive was asked for"
    of_verdict = {verdict: [drive for drive in drives if drive["verdict"] == verdict] for verdict in VERDICTS}
    passed = len(of_verdict["pass"])
    held = collections.Counter(held for drive in of_verdict["pass"] if (held := _held(drive)))
    plural = "" if len(drives) == 1 else "s"
    head = f"{passed:,} of {len(drives):,} drive{plural} passed"
    if passed == len(drives):
        head = f"all {passed:,} drives passed" if passed > 1 else "the drive passed"
    unjudged = [f"{count:,} {text}" if len(drives) > 1 else text for text, count in held.most_common()]
    told = [head + (f" ({', '.join(unjudged)})" if unjudged else "")]
    told += [
        f"{len(those):,} {WORDS[verdict]}: {_shared(those)}"
        for verdict, those in of_verdict.items()
        if those and verdict != "pass"
    ]
    return "; ".join(told)


def causes(drive: Mapping) -> list[str]:
    """Return why a drive has its verdict, in few words each."""
    verdict, reasons = drive["verdict"], list(drive["reasons"])
    if drive.get("host_fault"):
        return [HOST_FAULT]
    # Reasons come worst first, and do not say of which verdict they are: the first one is of the drive's.
    tests = {test["test"] for test in drive.get("tests") or ()}
    known = [_cause(without_test(str(reason), tests)[1], verdict) or _sick(str(reason), verdict) for reason in reasons]
    return list(dict.fromkeys(cause or _beginning(str(reasons[0])) for cause in known[:1])) + [
        cause for cause in dict.fromkeys(known[1:]) if cause and cause != known[0]
    ]


def _cause(said: str, verdict: str) -> str:
    """Return the cause of one reason of a verdict; "" where its words are not known. said: of without_test."""
    if verdict != "fail":
        return cause_of(said, verdict)
    missed = _MISSED.match(said)
    if missed:
        words = units.metric_words(missed["metric"])
        side = "below" if missed["sign"] == "<" else "above"
        return words if _NONE_ALLOWED.search(missed["rest"]) else f"{words} {side} its limit"
    unhealthy = _UNHEALTHY.match(said)
    if unhealthy and unhealthy["metric"] in health_metrics.TABLE:
        return units.metric_words(unhealthy["metric"])
    if _SELF_TEST_FAILED.match(said):
        return SELF_TEST_FAILED
    if _POWER_CUT.search(said):
        return POWER_CUT
    if "unreadable block" in said:
        return UNREADABLE
    return WRONG_BLOCKS if "not read back as written" in said else ""


def _sick(reason: str, verdict: str) -> str:
    """Return what a check found of a sick drive; "" for any other reason. Tests may have the names of checks."""
    return reason.partition(". ")[0][:LONGEST] if verdict == "fail" and _SICK.match(reason) else ""


def _beginning(reason: str) -> str:
    """Return the first words of a reason of no known kind."""
    text = re.split(r"[;(]", reason)[0].strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _shared(drives: t.Sequence[Mapping]) -> str:
    """Return the first cause of each drive, most frequent first; with numbers where there are several."""
    counts = collections.Counter((causes(drive) or ["no reason known"])[0] for drive in drives).most_common()
    if len(counts) == 1:
        return counts[0][0]
    told = [f"{cause} {count:,}" for cause, count in counts]
    if len(told) > MOST_CAUSES:
        rest = counts[MOST_CAUSES - 1 :]
        told[MOST_CAUSES - 1 :] = [f"{len(rest)} more causes {sum(count for _cause, count in rest):,}"]
    return ", ".join(told)


def _held(drive: Mapping) -> str:
    """Return what a drive was held to that no criterion of figures applied to; "" for any other."""
    return next((text for reason, text in _UNJUDGED.items() if list(drive["reasons"]) == [reason]), "")
