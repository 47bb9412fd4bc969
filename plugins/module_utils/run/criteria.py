# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which criteria (ssd_criteria, ssd_health_criteria) a measured drive missed: the host keeps such a drive as it is, the
judge says fail. Pure.
"""

from __future__ import annotations

import contextlib
import fnmatch
import math
import typing as t

from ..measure import health_metrics
from ..records.attempt import AttemptResult
from ..records.base import WrongShape, parse
from ..records.criterion import Criterion, Limit
from ..records.health import HealthChange, HealthInArray
from ..records.in_service import ScrubDetails
from ..records.measurement import IntegrityDetails, SelfTestDetails
from ..records.power_cut import CutFault, PowerCutCycle, PowerCutDetails

Metrics = t.Mapping[str, t.Optional[float]]
# The least that is written, so that others can make one block wrong with each of them.
SECTOR_BYTES = 512
# Outcomes of a test whose figures count.
MEASURED = ("steady", "complete")
# Of the kernel's words, in a reason.
LONGEST_MESSAGE = 120
# Of a test that stands: a second job of the run keeps it and never wipes the drive for it again, but for the state that
# another test goes on from.
KEPT_OUTCOMES = (*MEASURED, "not_steady", "invalid", "error")


def number(value: t.Any) -> float | None:
    """Return a finite number, also from a numeric text (an inventory's); else None."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) and not isinstance(value, bool) else None


def usable(given: t.Iterable[t.Any]) -> list[Criterion]:
    """Return the criteria of a plan or of run.json that can be applied; what is wrong with others the judge says."""
    found = []
    for criterion in given:
        with contextlib.suppress(WrongShape):
            found.append(parse(Criterion, criterion))
    return found


def is_of_model(criterion: Criterion, model: str) -> bool:
    """Return whether a criterion is about drives of a model. Drives pad their names, and tools cut that off or don't:
    blanks at the ends, and how many stand in a row, tell no two models apart.
    """
    return fnmatch.fnmatchcase(" ".join(model.split()), " ".join((criterion.model or "*").split()) or "*")


def is_for(criterion: Criterion, test: str) -> bool:
    """Return whether a criterion is about a test."""
    return fnmatch.fnmatchcase(test, criterion.test or "*")


def metrics_of(criterion: Criterion, metrics: Metrics, cells: t.Iterable[tuple[str, Metrics]]) -> Metrics:
    """Return the metrics of a test that a criterion is about: those of its cell, else the test's. cells: of the test,
    each with its metrics.
    """
    if criterion.cell:
        return next((found for cell, found in cells if cell == criterion.cell), {})
    return metrics


def figure(criterion: Criterion, metrics: Metrics, cells: t.Iterable[tuple[str, Metrics]]) -> float | None:
    """Return the figure that a criterion is about; None when the test has none, or too few I/Os for it."""
    return number(metrics_of(criterion, metrics, cells).get(criterion.metric))


def is_met(value: float, least: Limit, most: Limit) -> bool:
    """Return whether a figure keeps limits; None: there is no such limit."""
    low, high = number(least), number(most)
    return (low is None or value >= low) and (high is None or value <= high)


def wrong_blocks(result: AttemptResult) -> list[str]:
    """Return what a drive did not keep of what an integrity test wrote, as a sentence."""
    found = result.integrity
    return [f"{result.test}: {integrity_text(found)}"] if found and is_of_drive(found, result.outcome) else []


def is_of_drive(found: IntegrityDetails, outcome: str | None) -> bool:
    """Return whether wrong blocks are the drive's, whatever became of its test: not where what others wrote, or may
    have written, explains all of them, nor where the host's own memory erred. outcome: of the test.
    """
    unreadable = found.wrong_blocks.get("unreadable", 0)
    changed = sum(found.wrong_blocks.values()) - unreadable
    others = found.other_write_bytes
    # What ended a test early may be the host's fault, and so may read errors.
    if unreadable and outcome not in ("error", "invalid"):
        return True
    return bool(changed) and not found.memory_errors and others is not None and changed > others // SECTOR_BYTES


def may_be_of_host(found: IntegrityDetails) -> bool:
    """Return whether a host too can have made all blocks wrong: not what the drive says itself that it can't read."""
    return bool(found.wrong_blocks) and not found.wrong_blocks.get("unreadable")


def integrity_text(found: IntegrityDetails) -> str:
    """Return what was read back, in one line."""
    wrong = sum(found.wrong_blocks.values())
    if not wrong:
        times = "" if found.passes == 1 else f" {found.passes} times"
        return f"all {found.bytes_written // found.passes:,} bytes were read back as written{times}"
    kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in found.wrong_blocks.items())
    first = [f"; first at byte {one.offset_bytes} in pass {one.pass_number}: {one.found}" for one in found.first[:1]]
    more = "" if found.complete else "at least "
    size, of_several = f"{found.block_size_bytes:,} bytes", "s" * (wrong != 1)
    return f"{more}{wrong:,} block{of_several} of {size} not read back as written ({kinds}){''.join(first)}"


# What a power-cut test found wrong, in words.
_CUT_WORDS: t.Mapping[str, str] = {
    "lost_flushed": "acknowledged and flushed, and lost",
    "stale": "not written in that cycle, and changed or older than before",
    "resurrected": "trimmed and read as blank, and back with old data",
    "misplaced": "holding what was written to another place",
    "foreign": "holding data of another run or drive",
    "corrupt": "damaged",
    "unreadable": "unreadable",
}


def power_cut_faults(found: PowerCutDetails) -> list[str]:
    """Return what a drive did wrong at power cuts, a sentence for each kind; [] where it kept what it had to."""
    texts = []
    gone = [cycle.cycle for cycle in found.cycles if not cycle.found]
    if gone:
        texts.append(f"the drive did not come back after cut {gone[0]}")
    for kind in t.get_args(CutFault):
        texts += _of_cycles(found, kind, _CUT_WORDS[kind])
    claimed = [cycle for cycle in found.cycles if cycle.lost_acknowledged and _keeps_all(cycle)]
    if claimed:
        why = "its write cache is off"
        if claimed[0].plp_claimed:
            no_cache = claimed[0].vwc is False
            why = f"it claims power-loss protection ({'no volatile write cache' if no_cache else 'plp: true'})"
        blocks = sum(cycle.lost_acknowledged for cycle in claimed)
        texts.append(f"{why}, and it lost {blocks:,} block{'s' * (blocks != 1)} that it had acknowledged, unflushed")
    elif texts and any(cycle.lost_flushed and cycle.plp_claimed for cycle in found.cycles):
        texts.append("it claims power-loss protection, and lost even what was flushed")
    return texts


def _keeps_all(cycle: PowerCutCycle) -> bool:
    """Return whether a drive has to keep what it acknowledged without a flush."""
    return cycle.plp_claimed or cycle.write_cache == "off"


def _of_cycles(found: PowerCutDetails, kind: str, words: str) -> list[str]:
    having = [cycle for cycle in found.cycles if getattr(cycle, kind)]
    if not having:
        return []
    blocks = sum(getattr(cycle, kind) for cycle in having)
    first = next((one for one in having[0].first or () if one.kind == kind), None)
    where = f", first at byte {first.offset_bytes}: {first.found}" if first else ""
    return [f"{blocks:,} block{'s' * (blocks != 1)} {words} (in {len(having)} of {_cuts(found)} cuts{where})"]


def _cuts(found: PowerCutDetails) -> int:
    return sum(cycle.cut for cycle in found.cycles)


def power_cut_remarks(found: PowerCutDetails) -> list[str]:
    """Return what of power cuts speaks against no drive, and is worth a word."""
    texts, done = [], [cycle for cycle in found.cycles if cycle.cut]
    torn = sum(cycle.torn for cycle in found.cycles)
    if torn:
        stated = next((cycle.atomic_write_bytes for cycle in found.cycles if cycle.torn), None)
        promised = f"a write of up to {stated:,} bytes is whole" if stated else "a logical block is whole"
        texts.append(f"{torn:,} write{'s were' if torn != 1 else ' was'} torn, though by its own statement {promised}")
    lost = sum(cycle.lost_acknowledged for cycle in found.cycles if not _keeps_all(cycle))
    if lost:
        texts.append(f"{lost:,} acknowledged block{'s' * (lost != 1)} that no flush covered lost, as is allowed")
    clean = sum(cycle.clean is True for cycle in done)
    if clean:
        texts.append(f"{clean} of {len(done)} cuts count as clean: the drive's unsafe shutdowns did not rise")
    if any(cycle.clean is None for cycle in done):
        texts.append("the drive does not count unsafe shutdowns, so nothing proves that each cut reached it")
    slower = [cycle for cycle in done if cycle.found and cycle.link_before != cycle.link_after]
    if slower:
        texts.append(f"its link was {slower[0].link_before} before a cut, and {slower[0].link_after} after it")
    if any(cycle.fua == "kernel" for cycle in done):
        texts.append("FUA was tried as a write and a flush: the kernel sends the drive no FUA")
    return texts


def power_cut_text(found: PowerCutDetails) -> str:
    """Return what power cuts came to, in one line."""
    faults = power_cut_faults(found)
    if faults:
        return "; ".join(faults)
    flushed, done = sum(cycle.writes_flushed for cycle in found.cycles), _cuts(found)
    return f"all of {flushed:,} acknowledged and flushed writes survived {done} power cut{'s' * (done != 1)}"


def lost_in_cuts(result: AttemptResult) -> list[str]:
    """Return what a drive did wrong at the power cuts of a test, as a sentence."""
    found = result.power_cut
    return [f"{result.test}: {power_cut_text(found)}"] if found and power_cut_faults(found) else []


def failed_self_test(result: AttemptResult) -> list[str]:
    """Return what a drive's own self-test found, which the run had it do, as a sentence; [] where it failed not."""
    found = result.self_test
    return [f"{result.test}: {self_test_text(found)}"] if found and found.result == "failed" else []


def self_test_text(found: SelfTestDetails) -> str:
    """Return what a self-test came to, in one line."""
    return f"its {found.kind} self-test {found.result}: {found.message}"


def unreadable(result: AttemptResult) -> list[str]:
    """Return where a scrub could not read a drive, as a sentence; [] where it could."""
    found = result.scrub
    return [f"{result.test}: {scrub_text(found)}"] if found and found.unreadable_blocks else []


def scrub_text(found: ScrubDetails) -> str:
    """Return what a scrub read, in one line."""
    part = f"bytes {found.from_bytes:,} to {found.from_bytes + found.bytes_read:,}"
    if not found.unreadable_blocks:
        return f"{part} could be read"
    places = ", ".join(f"{one.offset_bytes} ({one.length_bytes} bytes: {one.error})" for one in found.first[:3])
    more = "; there may be more" if not found.complete else ""
    blocks = f"{found.unreadable_blocks:,} unreadable block{'s' * (found.unreadable_blocks != 1)}"
    return f"{blocks} in {part}, the first at byte {places}{more}"


def missed_health(
    criteria: t.Iterable[Criterion],
    model: str,
    metrics: Metrics,
    io_timeout_s: float | None,
    kernel_message: str | None = None,
) -> list[str]:
    """Return what speaks against a drive itself, whatever became of the test, as sentences. A figure that is unknown
    says nothing. io_timeout_s: the kernel's, which limits an I/O too; kernel_message: the evidence of its log.
    """
    found = []
    for criterion in criteria:
        name, most = criterion.metric, number(criterion.max)
        if name == health_metrics.LONGEST_IO and most is not None and io_timeout_s:
            most = min(most, io_timeout_s)
        limits = {word: limit for word, limit in (("min", criterion.min), ("max", most)) if limit is not None}
        value = number(metrics.get(name))
        if value is not None and is_of_model(criterion, model) and not is_met(value, criterion.min, most):
            row = health_metrics.TABLE.get(name)
            said = row.said(value) if row else f"{name} is {value:.6g}"
            if kernel_message and name in health_metrics.OF_KERNEL_LOG:
                said += f', the kernel\'s log says "{kernel_message[:LONGEST_MESSAGE]}"'
            found.append(f"{said} ({name}, {', '.join(f'{word} {number(limit):g}' for word, limit in limits.items())})")
    return found


def missed_in_array(criteria: t.Iterable[Criterion], model: str, found: HealthInArray) -> list[str]:
    """Return what speaks against a drive by a test on an array that another drive carries, as sentences."""
    health = found.health
    figures = health_metrics.metrics(health, None, None)
    texts = missed_health(criteria, model, figures, health.io_timeout_s, health.kernel_message)
    return [f"{found.test}: {text}" for text in texts]


def missed(
    criteria: t.Iterable[Criterion],
    model: str,
    finished: t.Sequence[AttemptResult],
    of_health: t.Sequence[Criterion] = (),
) -> list[str]:
    """Return what a drive of a model missed, or did not keep, as sentences. finished: the results of its tests."""
    found = [
        text
        for result in finished
        for found_wrong in (wrong_blocks, lost_in_cuts, failed_self_test, unreadable)
        for text in found_wrong(result)
    ]
    found += [
        f"{result.test}: {text}"
        for result in finished
        for health in [result.health or HealthChange()]
        for text in missed_health(of_health, model, result.metrics, health.io_timeout_s, health.kernel_message)
    ]
    for criterion in criteria:
        for result in finished if is_of_model(criterion, model) else ():
            cells = ((cell.cell, cell.metrics) for cell in result.cells)
            value = (
                figure(criterion, result.metrics, cells)
                if result.outcome in MEASURED and is_for(criterion, result.test)
                else None
            )
            if value is not None and not is_met(value, criterion.min, criterion.max):
                given = (("min", criterion.min), ("max", criterion.max))
                limits = ", ".join(f"{word} {limit}" for word, limit in given if limit is not None)
                found.append(f"{result.test}: {criterion.metric} is {value:.6g} ({limits})")
    return found
