# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of the same tests on the same drive, held to a margin, and whether a power cycle lay between them (Micron
TN-FD-15, Reliability; a test's key `run_margin`). Pure, standard library only.

A margin is no statistics: it names each figure that differs by more, in either direction, be it one drive's alone.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure.rounds import FITTED_END
from ...module_utils.run.criteria import number
from ..verdict import comparability
from . import metric_kinds
from .fleet_record import BeyondMargin, DriveMargin, MarginComparison

Cycle = t.Literal["power cycle", "no power cycle between", "unknown"]
CYCLED: Cycle = "power cycle"
NOT_CYCLED: Cycle = "no power cycle between"
UNKNOWN: Cycle = "unknown"
# At 110 % to the digit a figure is within 10 %, whatever binary fractions make of it.
_EDGE = 1e-9

Mapping = t.Mapping[str, t.Any]


class Newest:
    """Compares with the first of the summaries that go through `note`, and keeps none. told: of `compare`."""

    def __init__(self, run: Mapping, judgement: Mapping, records: t.Sequence[Mapping]) -> None:
        self._of = (run, judgement, records)
        self._seen = False
        self.told: MarginComparison | None = None

    def note(self, summary: Mapping) -> Mapping:
        """Return the summary, unchanged."""
        if not self._seen:
            self._seen, self.told = True, compare(*self._of, summary)
        return summary


def compare(
    run: Mapping, judgement: Mapping, records: t.Collection[Mapping], before: Mapping
) -> MarginComparison | None:
    """Return the drives of a run against the run before; None where no test has a margin, or no drive was in both.

    judgement: of judge.judge. records: of the run. before: the summary.json of the run before.
    """
    margins = {
        name: margin for name, about in (run.get("tests") or {}).items() if (margin := number(about.get("run_margin")))
    }
    tests: dict[tuple[str, str], list[Mapping]] = {}
    for record in records:
        if record["kind"] == "test":
            tests.setdefault((record["host"], record["drive"]), []).append(record)
    told = {(record["host"], record["drive"]): record for record in records if record["kind"] == "drive"}
    asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
    now_defined, then_defined = comparability.definitions(run), before.get("definitions") or {}
    found: list[DriveMargin] = []
    for drive in judgement["drives"] if margins else ():
        then = _same_drive(drive, judgement["drives"], before["drives"])
        if then is None:
            continue
        key = (drive["host"], drive["drive"])
        record = told.get(key, {})
        mine = comparability.of_drive(asked.get(key, {}), record.get("identity") or {}, tests.get(key, ()))
        old = {test["test"]: test for test in then["tests"] if test["test"] in margins and test["counts"]}
        figures = 0
        beyond: list[BeyondMargin] = []
        otherwise: dict[str, str] = {}
        for test in drive["tests"]:
            name = test["test"]
            if name not in old or not test["counts"]:
                continue
            changed = comparability.changed(
                comparability.conditions_key(mine, now_defined.get(name), test.get("load")),
                comparability.conditions_key(then.get("conditions"), then_defined.get(name), old[name].get("load")),
            )
            if changed:
                otherwise[name] = changed
                continue
            pairs = _pairs(test["metrics"], old[name]["metrics"])
            figures += len(pairs)
            beyond += _beyond(name, pairs, margins[name])
        if figures or otherwise:
            cycle, why = cycled(record.get("power"), then.get("power"))
            found.append(
                DriveMargin(
                    host=drive["host"],
                    drive=drive["drive"],
                    serial=drive.get("serial"),
                    cycle=cycle,
                    why=why,
                    figures=figures,
                    beyond=beyond,
                    otherwise=otherwise,
                )
            )
    return MarginComparison(run=before["run"]["id"], drives=found) if found else None


def _beyond(test: str, pairs: t.Sequence[tuple[str, float, float]], margin: float) -> list[BeyondMargin]:
    """Return the figures of a test that differ by more than its margin."""
    changes = [(metric, was, is_now, is_now / was - 1) for metric, was, is_now in pairs]
    return [
        BeyondMargin(test=test, metric=metric, before=was, now=is_now, by=by, margin=margin)
        for metric, was, is_now, by in changes
        if abs(by) > margin + _EDGE
    ]


def cycled(now: Mapping | None, before: Mapping | None) -> tuple[Cycle, str]:
    """(whether a power cycle lay between two runs of a drive, how that is known).

    Both: {first, last: {boot_id, power_cycles}}, as a job of the run found them when it took the drive for the first
    and the last time. A boot alone may be warm, and then the drive kept its power.
    """
    one, other = (before or {}).get("last") or {}, (now or {}).get("first") or {}
    boots = one.get("boot_id"), other.get("boot_id")
    then, since = one.get("power_cycles"), other.get("power_cycles")
    if None in boots:
        return UNKNOWN, "one of the runs has no boot id"
    if boots[0] == boots[1]:
        return NOT_CYCLED, "the host was not rebooted between the runs"
    if not isinstance(then, int) or not isinstance(since, int):
        return UNKNOWN, "the host was rebooted, and the drive does not report its power cycles"
    if since > then:
        return CYCLED, f"the host was rebooted, and the drive counts {since} power cycles ({then} before)"
    if since == then == 0:
        # What answers has power, so an honest count is 1 at least.
        return UNKNOWN, "the host was rebooted, and the drive keeps no count of its power cycles (0)"
    if since == then:
        return NOT_CYCLED, f"the host was rebooted, but the drive counts {then} power cycles as before"
    return UNKNOWN, f"the drive counts {since} power cycles ({then} before)"


def _same_drive(drive: Mapping, now: t.Sequence[Mapping], then: t.Sequence[Mapping]) -> Mapping | None:
    """Return the drive in the run before: by its serial where that is one drive's alone, then and now; else by its
    place.
    """
    serial = (drive.get("model"), drive.get("serial"))
    alike = [[each for each in drives if (each.get("model"), each.get("serial")) == serial] for drives in (now, then)]
    if drive.get("serial") and [len(each) for each in alike] == [1, 1]:
        return alike[1][0]
    place = [each for each in then if (each["host"], each["drive"]) == (drive["host"], drive["drive"])]
    return next((each for each in place if each.get("serial") == drive.get("serial")), None)


def _pairs(now: Mapping, before: Mapping) -> list[tuple[str, float, float]]:
    """(metric, before, now) of rates and mean latencies: a percentile or a maximum differs by more in any two runs."""
    names = [
        name
        for name in now
        if not name.endswith(FITTED_END) and (metric_kinds.is_rate(name) or name.endswith("mean_latency_us"))
    ]
    found = [(name, number(before.get(name)), number(now[name])) for name in names]
    return [(name, was, value) for name, was, value in found if was and value and min(was, value) > 0]
