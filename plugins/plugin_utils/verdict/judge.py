# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts: what was asked for, what was measured, and which criteria hold. Pure; shapes in docs/internals.md."""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.criterion import Criterion
from ...module_utils.records.in_service import ScrubDetails
from ...module_utils.records.measurement import SelfTestDetails
from ...module_utils.records.power_cut import PowerCutDetails
from ...module_utils.records.results import DriveRecord
from ...module_utils.run.criteria import (
    integrity_text,
    is_for,
    is_of_drive,
    is_of_model,
    may_be_of_host,
    missed_health,
    missed_in_array,
    power_cut_faults,
    power_cut_remarks,
    power_cut_text,
    scrub_text,
    self_test_text,
)
from ..common.values import integer, number
from . import (
    environment,
    fob_state,
    judged_criteria,
    other_drives,
    result_warnings,
    test_details,
)
from .invalid_reasons import Record, RunFacts, VerdictReason, colon, invalid
from .verdicts import VERDICTS

# A sentence, and what a host says in it.
MOST_REASON = 2000


def judge(
    run: Record, records: t.Iterable[Record], references: judged_criteria.References = judged_criteria.no_references
) -> Record:
    """Judge every drive that was asked for, and every other one that has records.

    `run`: run.json. `records`: the newest of each key of results.jsonl; a test record may carry `cells`
    ([{cell, metrics}]), which criteria with a `cell` need. `references`: of relative criteria. Returns `verdicts`
    ({verdict: number of drives}),
    `all_passed` (false for an empty fleet) and `drives`, in the order asked: {host, drive, serial, model, firmware,
    verdict, reasons, tests: [{test, title, verdict, reasons, outcome, counts, metrics, criteria, windows, from_fresh,
    precondition, remarks}]}, and `drive_fault` where an error of the drive's own led to the verdict. Each of a test's
    `criteria` is {criterion, metric, cell, value, min, max, met, reference};
    met: None where the reference is lacking; counts: as of valid_tests, also where the verdict is invalid for want of a
    reference; the last four of a test: test_details.details. A test that misses health criteria has `health`: what.
    """
    facts = RunFacts(run, list(records), references)
    drives = [_judge_drive(facts, host, drive) for host, drive in facts.drives()]
    counts = {verdict: sum(drive["verdict"] == verdict for drive in drives) for verdict in reversed(VERDICTS)}
    return {"verdicts": counts, "all_passed": bool(drives) and counts["pass"] == len(drives), "drives": drives}


def valid_tests(run: Record, records: t.Iterable[Record]) -> set[tuple[str, str, str]]:
    """(host, drive, test) of the tests whose figures count, for others too: of drives that were asked for. A host could
    make up as many more as it takes to move the median of the fleet.
    """
    facts = RunFacts(run, list(records), judged_criteria.no_references)
    return {
        (host, drive, name)
        for (host, drive), tests in facts.test_records.items()
        for name, record in tests.items()
        if (host, drive) in facts.asked and invalid(facts, host, drive, name, record) is None
    }


def _finite(metrics: Record) -> Record:
    """Metrics as JSON can carry them: what is not a finite number is None."""
    return {name: value if number(value) is not None else None for name, value in metrics.items()}


def _judge_drive(facts: RunFacts, host: str, drive: str) -> Record:
    record = facts.drive_records.get((host, drive))
    outcome, identity = (record.outcome, record.identity or {}) if record else ("", {})
    model = facts.model(host, drive)
    measured = facts.test_records.get((host, drive), {})
    criteria = [criterion for criterion in facts.criteria if is_of_model(criterion, model)]
    tests = [
        _judge_test(facts, host, drive, name, measured.get(name), criteria) for name in facts.tests_of(host, drive)
    ]
    tests = (
        tests
        if any(check["met"] is not None for test in tests for check in test["criteria"])
        else [_unjudged(test) for test in tests]
    )
    findings = _drive_findings(facts, host, drive, record, tests)
    # What the whole campaign says, each test without a record would only repeat.
    told = [test for test in tests if test["test"] in measured or not findings]
    if outcome == "interrupted" and any(test["outcome"] == "interrupted" for test in told):
        findings = []  # The test says so already, and after how many rounds.
    findings = [
        VerdictReason(test["verdict"], f"{test['test']}: {reason}") for test in told for reason in test["reasons"]
    ] + findings
    findings += [VerdictReason("error", problem) for problem in facts.criterion_problems]
    findings += [
        VerdictReason("invalid", text)
        for text in (judged_criteria.of_unknown_model(facts.criteria, identity) if measured else [])
    ]
    asked = facts.asked.get((host, drive)) or {}
    findings += [VerdictReason("fail", asked["sick"])] if asked.get("sick") else []
    findings += [
        VerdictReason("fail", text)
        for found in (record.in_arrays if record else ())
        for text in missed_in_array(facts.health_criteria.get(host, []), model, found)
    ]
    findings += [VerdictReason("invalid", text) for text in judged_criteria.of_another_model(asked, identity)]
    findings += _not_held(facts, criteria, measured, tests, asked)
    verdict = worst([finding.verdict for finding in findings])
    own = record is not None and verdict == outcome == "error" and record.drive_fault is True
    # The worst first; what holds is only worth saying of a drive that passed.
    shown = [f for v in VERDICTS for f in findings if f.verdict == v and v != "pass"]
    shown = shown or _pass_findings(facts, host, tests)
    tests = [dict(test, reasons=[_short(reason) for reason in test["reasons"]]) for test in tests]
    spent = environment.wear_budget_remark(
        asked.get("wear_budget_bytes"), measured.values(), integer(identity.get("size_bytes"))
    )
    if spent:
        last = [test for test in tests if test["test"] in measured][-1]
        last["remarks"] = [*last["remarks"], spent]
    return {
        "host": host,
        "drive": drive,
        "serial": identity.get("serial"),
        "model": identity.get("model"),
        "firmware": identity.get("firmware"),
        "verdict": verdict,
        **({"drive_fault": True} if own else {}),
        "reasons": list(dict.fromkeys(_short(finding.reason) for finding in shown)),
        "tests": tests,
    }


def _short(reason: str) -> str:
    """Every page and file has it, often more than once: what a host reports must not fill them."""
    return reason if len(reason) <= MOST_REASON else reason[: MOST_REASON - 1] + "…"


def _not_held(
    facts: RunFacts,
    criteria: list[Criterion],
    measured: t.Mapping[str, Record],
    tests: list[Record],
    asked: Record,
) -> list[VerdictReason]:
    """Return the criteria of a drive that nothing was held against."""
    # What a test has too few I/Os for, its own verdict says.
    short = {
        judged_criteria.describe(c)
        for c in criteria
        for r in measured.values()
        if is_for(c, r["test"]) and judged_criteria.unresolved_percentile(c, r, "")
    }
    lacking = [
        VerdictReason("error", text)
        for c in criteria
        if judged_criteria.describe(c) not in short
        for text in judged_criteria.without_figure(c, tests, facts.tests)
    ]
    left_out, cells = asked.get("left_out_tests") or (), asked.get("left_out_cells") or {}
    return lacking + [
        VerdictReason("not_tested", text) for c in criteria for text in judged_criteria.of_left_out(c, left_out, cells)
    ]


def _pass_findings(facts: RunFacts, host: str, tests: list[Record]) -> list[VerdictReason]:
    """Return the criteria that a drive met and what it kept, or that it was held to nothing, or to its health alone."""
    met = [
        VerdictReason("pass", f"{test['test']}: {reason}")
        for test in tests
        for reason in test["reasons"]
        if reason not in judged_criteria.UNJUDGED
    ]
    return met or [VerdictReason("pass", _held_to(facts, host))]


def _held_to(facts: RunFacts, host: str) -> str:
    """Return what a drive of a host was held to that no other criterion applied to."""
    return judged_criteria.HEALTH_ALONE if facts.health_criteria.get(host) else judged_criteria.NO_CRITERION


def _unjudged(test: Record) -> Record:
    """Return a test of a drive that is held to nothing but what has no reference (too few peers): that is no pass."""
    lacking = [judged_criteria.comparison(check) for check in test["criteria"] if check["met"] is None]
    return dict(test, verdict="invalid", reasons=lacking) if lacking and test["verdict"] == "pass" else test


def worst(verdicts: t.Iterable[str]) -> str:
    """Return the verdict that decides: fail, error, invalid, not_tested, pass; nothing at all is not_tested."""
    given = set(verdicts)
    return next((verdict for verdict in VERDICTS if verdict in given), "not_tested")


def _drive_findings(
    facts: RunFacts, host: str, drive: str, record: DriveRecord | None, tests: list[Record]
) -> list[VerdictReason]:
    """Return what the campaign as a whole says: a drive passes only if its campaign was completed."""
    outcome = record.outcome if record else ""
    # Nobody asked for what a host says of it all the same.
    if (facts.asked.get((host, drive)) or {}).get("left_out"):
        return [VerdictReason("not_tested", _why_no_record(facts, host, drive, record))]
    if outcome == "complete" and tests:
        return []
    if outcome == "complete":
        return [VerdictReason("not_tested", "no test was planned for this drive")]
    verdict = {"error": "error", "interrupted": "invalid"}.get(outcome, "not_tested")
    host_record = facts.hosts.get(host)
    if not outcome and host_record and host_record.state == "lost_power":
        verdict = "error"
    if verdict == "invalid" and not facts.test_records.get((host, drive)):
        verdict = "not_tested"
    return [VerdictReason(verdict, _why_no_record(facts, host, drive, record))]


def _why_no_record(facts: RunFacts, host: str, drive: str, record: DriveRecord | None) -> str:
    """Return the most telling reason why a drive's campaign left no result."""
    outcome, message = (record.outcome, record.message) if record else ("", "")
    if (facts.asked.get((host, drive)) or {}).get("left_out"):
        return f"{drive} on {host} was left out: {facts.asked[host, drive]['left_out']}"
    if record and record.refusals:
        refusals = "; ".join(f"{entry.code} ({entry.message})" for entry in record.refusals)
        return f"{drive} was refused on {host}: {refusals}"
    if outcome == "refused":
        return f"{drive} was refused on {host}" + colon(message)
    if outcome == "error":
        return f"the campaign of {drive} on {host} ended with an error" + colon(message)
    if outcome == "interrupted":
        return f"the campaign of {drive} on {host} was interrupted" + colon(message)
    host_record = facts.hosts.get(host)
    if host_record is None:
        return f"nothing was collected from {host}: run collect.yml with this ssd_run_id"
    state = host_record.state
    said = colon(host_record.message or message)
    if state == "unfinished":
        return (
            f"{host} had not finished when its results were collected{said}; run watch.yml and collect.yml "
            "with this ssd_run_id"
        )
    if state == "lost_power":
        return f"the power cuts of {host} ended early{said}"
    if state in ("unreachable", "failed"):
        return (f"{host} was unreachable" if state == "unreachable" else f"the run failed on {host}") + said
    return f"{host} reported no result for {drive}" + colon(message)


def _judge_test(
    facts: RunFacts, host: str, drive: str, name: str, record: Record | None, criteria: list[Criterion]
) -> Record:
    about = facts.tests.get(name) or {}
    result = {
        "test": name,
        "title": fob_state.title((record or {}).get("title") or about.get("title") or name, record),
        "outcome": None,
        "counts": False,
        "metrics": {},
        "criteria": [],
        **test_details.details(None, about),
    }
    if record is None:
        campaign = facts.drive_records.get((host, drive))
        return dict(
            result, verdict="not_tested", reasons=["not measured: " + _why_no_record(facts, host, drive, campaign)]
        )
    checks = [
        judged_criteria.check(facts.references, criterion, host, drive, record)
        for criterion in criteria
        if is_for(criterion, name)
    ]
    result.update(
        outcome=record.get("outcome"),
        metrics=_finite(record.get("metrics") or {}),
        criteria=[check for check in checks if check],
        **test_details.details(record, about),
    )
    trouble = invalid(facts, host, drive, name, record)
    result["counts"] = trouble is None and (host, drive) in facts.asked
    result.update({"warnings": warned} if (warned := result_warnings.warnings(record)) else {})
    limits = (facts.asked.get((host, drive)) or {}).get("validity_limits") or {}
    result["remarks"] = [
        *result["remarks"],
        *other_drives.thread_remarks(record, facts.model(host, drive), facts.streams),
        *result_warnings.not_attained(record),
        *result_warnings.below_rate(record),
        *result_warnings.hidden_variations(record),
        *result_warnings.fast_fill(record, facts.test_records[host, drive].values()),
        *result_warnings.passed_over(record, about),
        *result_warnings.loosened(limits),
        *result_warnings.looser_rule(about),
        *(text for check in result["criteria"] for text in result_warnings.unsteady_cell(record, check["cell"])),
    ]
    judged = _with_health(_judged(facts, result, trouble, criteria, record), facts, record)
    if record.get("again"):
        again = judged_criteria.measured_again(facts.references, criteria, host, drive, record)
        return _with_the_first({**judged, "again": again})
    return judged


def _with_health(test: Record, facts: RunFacts, record: Record) -> Record:
    """Return a test with what its drive's own health missed: it fails, whatever became of the test."""
    model, health = facts.model(record["host"], record["drive"]), record.get("health") or {}
    timeout_s, message = number(health.get("io_timeout_s")), health.get("kernel_message")
    sick = missed_health(
        facts.health_criteria.get(record["host"], []), model, record.get("metrics") or {}, timeout_s, message
    )
    if not sick:
        return test
    others = test["reasons"] if test["verdict"] != "pass" else []
    return dict(test, verdict="fail", health=sick, reasons=[*sick, *others])


def _with_the_first(test: Record) -> Record:
    """Return a test that was measured again, or was to be: its reasons say so."""
    return dict(test, reasons=[*test["reasons"], test["again"]["told"]])


def _judged(
    facts: RunFacts, result: Record, trouble: VerdictReason | None, criteria: list[Criterion], record: Record
) -> Record:
    """Return the verdict of a test that has a record. trouble: why its figures don't count."""
    name = result["test"]
    kept = other_drives.read_back(record)
    read_back = [integrity_text(kept)] if kept else []
    # Whatever else is unknown of the drive.
    if kept and is_of_drive(kept, record.get("outcome")):
        shared = other_drives.host_fault(record["host"], facts.wrong_drives.get(record["host"], ()))
        if shared and may_be_of_host(kept):
            return dict(result, verdict="error", reasons=[f"{shared}: {read_back[0]}"])
        return dict(result, verdict="fail", reasons=read_back)
    cuts = base.parse(PowerCutDetails, record["power_cut"]) if record.get("power_cut") else None
    survived = [power_cut_text(cuts)] if cuts and cuts.cycles else []
    if cuts:
        result["remarks"] = [*result["remarks"], *power_cut_remarks(cuts)]
    if cuts and power_cut_faults(cuts):
        return dict(result, verdict="fail", reasons=power_cut_faults(cuts))
    tested = base.parse(SelfTestDetails, record["self_test"]) if record.get("self_test") else None
    scrubbed = base.parse(ScrubDetails, record["scrub"]) if record.get("scrub") else None
    own = ([self_test_text(tested)] if tested else []) + ([scrub_text(scrubbed)] if scrubbed else [])
    if (tested and tested.result == "failed") or (scrubbed and scrubbed.unreadable_blocks):
        return dict(result, verdict="fail", reasons=own)
    if trouble:
        return dict(result, verdict=trouble.verdict, reasons=[trouble.reason])
    if kept and kept.wrong_blocks:
        # Its host should have said so itself.
        return dict(result, verdict="invalid", reasons=[f"somebody else wrote, or the memory erred: {read_back[0]}"])
    missed = [check for check in result["criteria"] if check["met"] is False]
    if missed:
        return dict(result, verdict="fail", reasons=[judged_criteria.comparison(check) for check in missed])
    mine = [criterion for criterion in criteria if is_for(criterion, name)]
    unknown = [text for criterion in mine for text in _without_figure(criterion, record)]
    unknown = unknown or [text for criterion in mine for text in _measured_apart(facts, criterion, record)]
    if unknown:
        return dict(result, verdict="invalid", reasons=unknown)
    reasons = read_back + survived + own + [judged_criteria.comparison(check) for check in result["criteria"]]
    return dict(result, verdict="pass", reasons=reasons or [_held_to(facts, record["host"])])


def _without_figure(criterion: Criterion, record: Record) -> list[str]:
    """Return why a test gave no figure for a criterion though it has the metric; empty where it gave one."""
    return judged_criteria.unresolved_percentile(
        criterion, record, judged_criteria.describe(criterion)
    ) or judged_criteria.null_figure(criterion, record)


def _measured_apart(facts: RunFacts, criterion: Criterion, record: Record) -> list[str]:
    """Return why a criterion was not judged that others of the model are held to: no drive gets around it by what its
    host tells of how it measured. Empty for any other.
    """
    if judged_criteria.figure_of(criterion, record) is None:
        return []
    asked = judged_criteria.limits_of(criterion, judged_criteria.RELATIVE)
    found = [facts.references(criterion, limit, record["host"], record["drive"], record["test"]) for limit in asked]
    told = dict.fromkeys(reference.of for reference in found if reference.apart)
    return [f"{text} ({judged_criteria.describe(criterion)})" for text in told]
