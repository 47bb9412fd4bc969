# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a run and its fleet. Works without pandas and scipy too: then there is no fleet, and it says so."""

from __future__ import annotations

import itertools
import typing as t

from ..run_folder import earlier_reports
from ..verdict import judge, judged_criteria
from . import statistics_requirements

# Earlier runs that show whether a drive was low elsewhere, which decides verdicts: not an option, so that the report
# and the store agree. Also the default number of runs that figures are compared with.
EARLIER_RUNS = 10
# The section of a fleet that nobody looked at.
NOTHING: t.Mapping[str, t.Any] = {
    "groups": [],
    "outliers": [],
    "claimed_twice": [],
    "low_hosts": [],
    "too_few": [],
    "comparisons": 0,
    "flagged": 0,
    "expected_false": 0.0,
    "firmwares": [],
    "since": None,
    "margin": None,
    "nights": None,
    "baseline": None,
    "repeatability": [],
}
Record = dict[str, t.Any]


class Baseline(t.NamedTuple):
    """What figures are compared with: the run `baseline` ("": none), and so many runs of its name before it.

    stored: (run.json, how many) to the runs before (a previous_runs.Past, or None), where none has its report on this
    controller.
    """

    baseline: str = ""
    nights: int = EARLIER_RUNS
    stored: t.Callable[[Record, int], t.Any] | None = None


class Judged(t.NamedTuple):
    """judgement: of judge.judge. fleet: the section of summary.json."""

    judgement: Record
    fleet: Record


def judge_run(results_dir: str, run: Record, records: t.Sequence[Record], against: Baseline = Baseline()) -> Judged:
    """results_dir: where the runs before and the baselines are. records: the newest of each key; with `cells`, where
    criteria need them.
    """
    judgement = judge.judge(run, records, references(results_dir, run, records))
    lacking = statistics_requirements.missing_requirements()
    if lacking:
        return Judged(judgement, {**NOTHING, "problem": lacking})
    # What imports pandas waits until it is known to be there.
    from . import fleet_summary, host_fault, moved_drives

    reports = earlier_reports.earlier(results_dir, run, against.nights)
    newest = next(reports, None)
    stored = against.stored(run, against.nights) if newest is None and against.stored else None
    given = itertools.chain(filter(None, [newest]), reports)
    del newest  # else it would stay while the others are read
    earlier = (
        fleet_summary.EarlierRuns(stored, None) if stored else fleet_summary.before(run, records, judgement, given)
    )
    if not stored and against.nights != EARLIER_RUNS:
        earlier = earlier._replace(past=earlier.past._replace(claims=_claims(results_dir, run)))
    baseline = against.baseline, earlier_reports.read(results_dir, against.baseline)
    fleet = fleet_summary.make(run, records, judge.valid_tests(run, records), judgement, earlier, baseline)
    return Judged(
        host_fault.marked(run, judgement, fleet, earlier.past.claims, moved_drives.last_measured(records)), fleet
    )


def judgement_of(results_dir: str, run: Record, records: t.Sequence[Record]) -> Record:
    """Return the judgement of judge_run, without a look at the fleet where no verdict or fault hangs on it."""
    judgement = judge.judge(run, records, references(results_dir, run, records))
    if statistics_requirements.missing_requirements():
        return judgement
    from . import fleet_summary, host_fault, moved_drives

    if not host_fault.suspects(run, judgement):
        return judgement
    claims = _claims(results_dir, run)
    standing = fleet_summary.standing(run, records, judge.valid_tests(run, records), judgement, claims)
    return host_fault.marked(run, judgement, standing.section(), claims, moved_drives.last_measured(records))


def _claims(results_dir: str, run: Record) -> list[t.Any]:
    """Return where drives were in the runs before, and which were low there (moved_drives.of_summary)."""
    from . import moved_drives

    earlier = earlier_reports.earlier(results_dir, run, EARLIER_RUNS)
    return [claim for summary in earlier for claim in moved_drives.of_summary(summary)]


def references(results_dir: str, run: Record, records: t.Sequence[Record]) -> judged_criteria.References:
    """Return what relative criteria of a run are shares of; results_dir and records as of judge_run."""
    lacking = statistics_requirements.missing_requirements()
    if lacking:
        return lambda *_of: judged_criteria.Reference(None, lacking)
    from . import relative_criteria

    return relative_criteria.references(
        run, records, judge.valid_tests(run, records), lambda run_id: earlier_reports.read(results_dir, run_id)
    )
