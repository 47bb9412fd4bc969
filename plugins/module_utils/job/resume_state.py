# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands of a drive's tests by its journal records, those of jobs before too, and how long at most the rest takes.
Pure.
"""

from __future__ import annotations

import typing as t

from ..drive import self_test
from ..measure import disturbances, precondition_curve
from ..measure.kernel_faults import OF_HOST
from ..measure.rounds import bound_s, cell_s
from ..purge import methods
from ..records.attempt import AttemptResult
from ..records.plan import PlannedTest
from ..run.criteria import KEPT_OUTCOMES, MEASURED
from ..run.folder import Event

# The first reason of a test that was not begun, as the host could not be tuned.
NOT_BEGUN = "neither purged nor measured"
# Of a drive in a run; after so many its tests end.
MOST_HOST_FAULTS = 3


def crash_text(error: Exception) -> str:
    """Return an exception that nobody foresaw, in one line."""
    return f"{type(error).__name__}: {error}"


def not_begun(results: t.Iterable[AttemptResult]) -> list[str]:
    """Return why a test of one drive was not begun, in this job or one before, from its results.

    What comes after may build on it.
    """
    reasons = (result.reasons for result in results)
    return next((texts[1:] for texts in reasons if texts[:1] == [NOT_BEGUN]), [])


def prepares(test: PlannedTest) -> bool:
    """Return whether a test purges or fills its drive itself."""
    return test.purge.method != "none" or bool(test.precondition)


def may_keep_data(test: PlannedTest, method: str) -> bool:
    """Return whether old data after a purge by this method is only told of: it was a hint, for a test that writes to
    the drive itself. Where the purge is all that was asked for, it has to do its work.
    """
    known = methods.METHODS.get(method)
    writes = test.precondition or test.integrity or test.power_cut or any(cell.read_pct < 100 for cell in test.cells)
    return bool(known and known.is_hint and writes)


def failed(name: str) -> str:
    """Return why what builds on a test is not measured."""
    text = (
        "not measured: the test before it, {0}, did not complete its purge and fill, so what the drive holds is unknown"
    )
    return text.format(name)


def discarded(name: str, seen: str) -> str:
    """Return why what builds on a test is not measured, once somebody else gave back what the drive held."""
    return f"not measured: in test {name} before it {seen}"


def broken_off(name: str) -> str:
    """Return why what builds on a test that an error ended is not measured."""
    return f"not measured: in test {name} before it an error left the drive in an unknown state"


def not_kept(name: str) -> str:
    """Return why what builds on a test is not measured whose fill was not read back as written."""
    return f"not measured: the drive did not keep what the fill of test {name} before it wrote"


def may_go_on(results: t.Sequence[AttemptResult]) -> bool:
    """Return whether the next test of a drive may be done though the last one of these ended with an error: it was a
    fault of the host, and not yet the last that is borne.
    """
    of_host = [
        result.outcome == "error" and any(reason.startswith(OF_HOST) for reason in result.reasons) for result in results
    ]
    return of_host[-1:] == [True] and sum(of_host) < MOST_HOST_FAULTS


def unprepared(tests: t.Iterable[PlannedTest], history: t.Sequence[Event], results: t.Iterable[AttemptResult]) -> str:
    """Return why a test that neither purges nor fills can't build on what is before it; "" where it can.

    tests: of the drive's plan. history: its journal records; results: of its attempts; both in order. A purge or a fill
    after that puts it right.
    """
    specs, why = {test.name: test for test in tests}, ""
    for end in results:
        spec = specs[end.test]
        if prepares(spec):
            attempt = (end.test, end.attempt)
            mine = [record for record in history if (record.get("test"), record.get("attempt")) == attempt]
            done = {record["event"]: record for record in mine}
            purge = done.get("purge") or {}
            kept = purge and may_keep_data(spec, purge["method"])
            purged = spec.purge.method == "none" or kept or purge.get("verified")
            filled = not spec.precondition or _is_filled(done.get("precondition"))
            why = "" if purged and filled else failed(end.test)
        lost = [item.first for item in end.validity if item.cause == disturbances.DISCARDED]
        why = discarded(end.test, lost[0]) if lost else why
        why = broken_off(end.test) if end.outcome == "error" else why
        why = not_kept(end.test) if spec.cells and end.integrity and end.integrity.wrong_blocks else why
    return why


def _is_filled(record: Event | None) -> bool:
    try:
        precondition_curve.check((record or {}).get("kernel_bytes_written"), (record or {}).get("bytes_written") or 0)
    except precondition_curve.Short:
        return False
    return record is not None


def under_way(history: t.Iterable[Event], test: str) -> int:
    """Return the attempt at a power-cut test that jobs before this one armed and did not end: it goes on, whatever they
    died of. 0: there is none.
    """
    armed, ended = 0, set()
    for event in history:
        if event.get("test") == test and event["event"] == "power_cut_armed":
            armed = event["attempt"]
        elif event.get("test") == test and event["event"] == "test_finished":
            ended.add(event["attempt"])
    return 0 if armed in ended else armed


def finished_tests(results: t.Iterable[AttemptResult]) -> set[str]:
    """Return the tests of one drive that stand, from its results."""
    return {result.test for result in results if result.outcome in KEPT_OUTCOMES}


def waiting(tests: t.Sequence[PlannedTest], kept: t.Collection[str]) -> list[PlannedTest]:
    """Return the tests still to do, in order. One that goes on from another's state (`follows`) needs that state again.

    So of a chain of them all are done anew where one is missing: a drive that idled in between is in another state.
    """
    chains: dict[str, str] = {}
    for test in tests:
        before = test.follows
        chains[test.name] = chains.get(before, before) if before else test.name
    broken = {chains[test.name] for test in tests if test.name not in kept}
    return [test for test in tests if chains[test.name] in broken]


def without_its_state(test: PlannedTest, finished: t.Sequence[AttemptResult]) -> str:
    """Return why a test can't go on from the one that it follows; "" where it can.

    finished: results of tests, the newest last.
    """
    before = test.follows
    if not before:
        return ""
    ended = (result.outcome for result in reversed(finished) if result.test == before)
    outcome: str = next(ended, "not measured")
    if outcome in MEASURED:
        return ""
    return "not measured: it builds on the drive state that test {0} leaves, and that test is {1}".format(
        before, outcome.replace("_", " ")
    )


def longest_test_s(test: PlannedTest, size_bytes: int, bytes_per_s: float | None) -> float | None:
    """Return an upper bound, but for a purge by command, of which nobody knows how long it takes, and an extended
    self-test, which takes about as long as to read the drive; None while the write rate is unknown and counts.
    """
    fill, active_bytes = test.precondition, test.active_range_bytes(size_bytes, 1)
    written = fill.passes * active_bytes if fill else 0
    written += size_bytes * (test.purge.method == "overwrite")
    written += size_bytes * (test.self_test == self_test.EXTENDED)
    # It reads as much as it writes, and no slower.
    passes = test.integrity.most_passes(2 * active_bytes / bytes_per_s if bytes_per_s else 0) if test.integrity else 0
    written += 2 * passes * active_bytes
    round_s = sum(cell_s(cell) for cell in test.cells)
    rounds_s = bound_s(test.rounds, round_s, size_bytes) if test.cells else 0.0
    if rounds_s is None and bytes_per_s and test.rounds.capacity_multiple:
        rounds_s = test.rounds.capacity_multiple * size_bytes / bytes_per_s + round_s
    least = test.rounds.least_capacity_multiple
    if rounds_s is not None and least:
        rounds_s = rounds_s + least * size_bytes / bytes_per_s + round_s if bytes_per_s else None
    if rounds_s is None or (written and not bytes_per_s):
        return None
    pauses_s = test.integrity.between_s(passes) if test.integrity else 0.0
    cut = test.power_cut
    pauses_s += cut.cycles * (cut.max_write_s + cut.back_s) if cut else 0
    pauses_s += self_test.SHORT_S * (test.self_test == self_test.SHORT)
    pauses_s += test.in_service_s()
    return rounds_s + pauses_s + (written / bytes_per_s if written and bytes_per_s else 0.0)


def longest_tests_s(tests: t.Iterable[PlannedTest], size_bytes: int, bytes_per_s: float | None) -> float | None:
    """Return the sum over tests; None where one of them has no bound."""
    bounds = [longest_test_s(test, size_bytes, bytes_per_s) for test in tests]
    return None if any(bound is None for bound in bounds) else round(sum(bound or 0.0 for bound in bounds), 1)
