# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a run and its fleet. Works without pandas and scipy too: then there is no fleet, and it says so."""

from __future__ import annotations

import typing as t

from ..results import held_to, judge, summaries
from . import packages

# How many earlier runs tell whether a drive was low elsewhere.
EARLIER_RUNS = 10
# The section of a fleet that nobody looked at.
NOTHING: t.Mapping[str, t.Any] = {
    "groups": [], "outliers": [], "low_hosts": [], "too_few": [], "comparisons": 0, "flagged": 0, "expected_false": 0.0, "firmwares": [], "since": None,
}
Mapping = t.Dict[str, t.Any]


class Judged(t.NamedTuple):
    """judgement: of judge.judge. fleet: the section of summary.json."""

    judgement: Mapping
    fleet: Mapping


def judge_run(results_dir: str, run: Mapping, records: t.Sequence[Mapping]) -> Judged:
    """results_dir: where the runs before and the baselines are. records: the newest of each key; with `cells`, where criteria need them."""
    lacking = packages.problem()
    if lacking:
        return Judged(judge.judge(run, records, lambda *_of: held_to.Reference(None, lacking)), {**NOTHING, "problem": lacking})
    # What imports pandas waits until it is known to be there.
    from . import relative, section

    valid = judge.valid_tests(run, records)
    references = relative.references(run, records, valid, lambda run_id: summaries.read(results_dir, run_id))
    judgement = judge.judge(run, records, references)
    earlier = summaries.earlier(results_dir, run, EARLIER_RUNS)
    return Judged(judgement, section.make(run, records, valid, judgement, earlier))
