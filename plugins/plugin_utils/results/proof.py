# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's journal proves of its figures: taken record by record (taken.py), they are computed again at the end of
the test (figures.py). Pure.
"""

from __future__ import annotations

import contextlib
import typing as t

from ...module_utils.measure import sampler
from ...module_utils.measure.limits import Limits
from ...module_utils.measure.seeds import seed
from ...module_utils.run.criteria import KEPT_OUTCOMES, MEASURED
from . import asked_cells
from .figures import MOST_SAID, NOT_AGAIN, Figures
from .points import Points, Sweeps
from .sequence import Sequence
from .taken import UNKNOWN_FORM, Taken

Mapping = t.Mapping[str, t.Any]
# What the record of a test and the end of its test in the journal both tell.
TOLD_TWICE = ("outcome", "rounds", "steady_state", "saturation", "validity", "metrics", "loads")
MOST_KEPT = 100


class Attempt(t.NamedTuple):
    """Which measurement a journal's records have to be of. run_id: of the folder; attempt: as that journal counts."""

    run_id: str
    drive: str
    test: str
    attempt: int


class Proof:
    """One attempt at one test of one drive, event by event.

    cells: of its rendered test, by id. about: of the test in run.json. limits: of causes (ssd_validity_limits); None:
    nobody knows which, so causes are not looked for again. After test_finished: `wrong`, what contradicts what is told,
    and `unproved`, what could not be computed again, as sentences; `told`: what the journal says of TOLD_TWICE.
    sequence: of its records; None: by the cells alone. points: its cells that follow a sweep; None: nobody knows which.
    place: which attempt it is; None: nobody asks. in_chain: that the test is measured again where a test of the same
    state breaks off.
    """

    def __init__(
        self,
        cells: t.Mapping[str, Mapping],
        about: Mapping,
        limits: Limits | None,
        strict: bool = False,
        sequence: Sequence | None = None,
        points: Points | None = None,
        place: Attempt | None = None,
        in_chain: bool = False,
    ) -> None:
        self.place, self.in_chain = place, in_chain
        self._sequence = sequence or Sequence(cells)
        self._taken = Taken(cells, limits, strict, points)
        self._figures, self._points = Figures(self._taken, about), points
        self._first: dict[str, t.Any] = {}
        self._seen: dict[str, str] = {}
        self.wrong, self.unproved = self._taken.wrong, self._taken.unproved
        self.wrong += asked_cells.problems(cells, about)
        self.told: Mapping | None = None
        self.written_bytes: int | None = None

    def take(self, event: Mapping) -> None:
        """Add a journal record of this attempt."""
        kind = event["event"]
        self._sequence.take(event)
        if kind == "sample":
            self._take_sample(event)
        elif kind == "cell" and event.get("accepted"):
            self._taken.take_cell(event)
        elif kind == "round":
            self._taken.take_round(event)
        elif kind == "histogram":
            self._taken.take_histogram(event)
        elif kind == "test_finished":
            self._end(event)
        del self.wrong[MOST_KEPT:]

    def _take_sample(self, event: Mapping) -> None:
        """What a look at the drive shows against the first one: a record's conditions may leave it out."""
        self._first = self._first or dict(event)
        with contextlib.suppress(*UNKNOWN_FORM):
            self._seen.update(sampler.spoilt(self._first, dict(event)))

    def _end(self, event: Mapping) -> None:
        self.told = {key: event.get(key) for key in TOLD_TWICE}
        self.written_bytes = sum(self._taken.written.values())
        if event["outcome"] in MEASURED:
            self.wrong += self._sequence.wrong
            self.wrong += [f"by its samples {text}" for text in self._seen.values()]
            self._figures.judge(event)
            self._judge_loads(event)
            if self._points and not self.wrong:
                self._points.keep(event["cells"], self._figures.averages)
        self._taken.forget()

    def _judge_loads(self, event: Mapping) -> None:
        """Drives are peers by the loads that the end tells."""
        told = {item["cell"]: {key: item[key] for key in item if key != "cell"} for item in event.get("loads") or []}
        if told != self._taken.loads:
            self.wrong.append("its end reports other loads than its cells")


def begin(run: Mapping, host: str, spec: Mapping, of: Attempt, sweeps: Sweeps) -> Proof:
    """For one attempt at a test of a run (run.json). spec: the test as the host had it; what it is held to is the
    controller's own. sweeps: what all attempts of the host share, in the order of its journals.
    """
    entries = [entry for entry in run.get("asked") or [] if (entry["host"], entry["drive"]) == (host, of.drive)]
    asked: Mapping = entries[0] if entries else {}
    limits, skipped = asked.get("validity_limits"), asked.get("not_applicable")
    cells = {cell["id"]: cell for cell in spec.get("cells") or []}
    set_here = {name: float(limit) for name, limit in (limits or {}).items() if name in Limits._fields}
    known = None if limits is None else Limits(**set_here)

    def about_of(test: str) -> Mapping:
        left_out = None if skipped is None else skipped.get(test, [])
        given = (run.get("tests") or {}).get(test) or {}
        return asked_cells.on_drive(
            given, asked.get("preferred_write_bytes"), spec if test == of.test else {}, left_out
        )

    def seed_of(number: int, cell: str) -> int:
        return seed(of.run_id, of.drive, of.test, of.attempt, number, cell)

    about = about_of(of.test)
    # Without the host's plan its cells are those that the controller asked for, where it knows which it left out.
    names = cells or ([] if skipped is None else asked_cells.expected(about))
    points = Points((of.run_id, of.drive, of.test), about.get("points") or {}, about_of, sweeps)
    strict = run.get("unknown_causes") == "spoil"
    chained = {str(given["follows"]) for given in (run.get("tests") or {}).values() if given.get("follows")}
    in_chain = of.test in chained or bool(about.get("follows"))
    return Proof(cells, about, known, strict, Sequence(names, seed_of), points, of, in_chain)


def of(record: Mapping, seen: Proof | None, others: t.Sequence[Proof] = ()) -> dict[str, t.Any]:
    """A record's `proof`, {wrong, unproved: sentences, written_bytes: by its cells}. seen: of its attempt's journal;
    None where none was collected. others: of the other attempts at that test.
    """
    wrong = [*seen.wrong, *_chosen_among(seen, others)] if seen else []
    if seen is None and others and not record.get("again"):
        wrong = [f"its journal has other attempts, but none with the number {record.get('attempt')}"]
    if seen is None or seen.told is None:
        return {"wrong": wrong, "unproved": [NOT_AGAIN.format("its journal was not collected")]}
    other = [key for key in TOLD_TWICE if _text(record.get(key)) != _text(seen.told.get(key))]
    return {
        "wrong": [f"its journal has another {', '.join(other)}"] * bool(other) + wrong,
        "unproved": list(seen.unproved),
        "written_bytes": seen.written_bytes,
    }


def _chosen_among(seen: Proof, others: t.Sequence[Proof]) -> list[str]:
    """Whether a host may have measured several times, to report the best: what has a result is not measured again, but
    in a chain, of which the newest attempt counts.
    """
    if seen.place is None:
        return []
    rivals = [each for each in others if each.place and each.place[:-1] == seen.place[:-1] and each is not seen]
    newer = sorted(each.place.attempt for each in rivals if each.place and each.place.attempt > seen.place.attempt)
    if newer:
        return [f"its journal has a newer attempt, number {newer[-1]}"]
    ended = [each for each in rivals if (each.told or {}).get("outcome") in KEPT_OUTCOMES]
    return ["its journal has an earlier result of the same test"] if ended and not seen.in_chain else []


def problem(record: Mapping, strict: bool = False) -> str:
    """Why a steady or complete record can't count by its journal; "" when it may, or where no journal was looked at.

    record: with its `proof`. strict: what could not be computed again does not count (ssd_unknown_causes).
    """
    said = (record.get("proof") or {}).get("wrong", []) + (lacking(record) if strict else [])
    return "; ".join(said[:MOST_SAID])


def lacking(record: Mapping) -> list[str]:
    """What could not be computed again of a record that counts, as sentences."""
    return (record.get("proof") or {}).get("unproved", []) if record.get("outcome") in MEASURED else []


def _text(value: t.Any) -> t.Any:
    """Values that JSON tells alike: what is missing and what is null or empty."""
    return value if value not in ({}, []) else None
