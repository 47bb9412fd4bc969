# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drives `ssd_retest` measures again before anything of them fails. Pure; nothing here touches a host.

The seam: a play that is to measure again calls `wanted` on the fleet section of summary.json once all hosts are
collected, and starts the host job
of the named hosts again with those tests as a further attempt (records carry `attempt`; the newest of a test wins, so
the judge needs no change).
"""

from __future__ import annotations

import typing as t

Mapping = t.Mapping[str, t.Any]
# More at once than this share of the drives is no matter of single drives: the run or the criterion is at fault.
MOST_OF_FLEET = 0.25


class Again(t.NamedTuple):
    """A drive to measure again, the tests, and why."""

    host: str
    drive: str
    tests: tuple[str, ...]
    why: str


def wanted(section: Mapping, attempts: t.Mapping[tuple[str, str, str], int], drives: int, retest: int) -> list[Again]:
    """The outliers that were measured again fewer than `retest` times.

    section: the fleet of summary.json. attempts: how often (host, drive, test) was measured, 1 where it is not named.
      drives: how many the run has.
    A drive of a low host is not measured again, as the host would be the same; nor is any where most of the fleet would
    be.
    """
    tests: dict[tuple[str, str], list[str]] = {}
    for outlier in section.get("outliers") or []:
        key = (outlier["host"], outlier["drive"], outlier["test"])
        if attempts.get(key, 1) <= retest and outlier["test"] not in tests.get(key[:2], []):
            tests.setdefault(key[:2], []).append(outlier["test"])
    if len(tests) > max(1, MOST_OF_FLEET * drives):
        return []
    return [Again(*key, tuple(names), "worse than its peers in " + ", ".join(names)) for key, names in tests.items()]
