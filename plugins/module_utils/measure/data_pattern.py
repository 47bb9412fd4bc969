# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the data that a job writes say of its figures: what compresses, or repeats, flatters a controller that
compresses or deduplicates. Pure.
"""

from __future__ import annotations

import typing as t

from ..records.plan import PlannedTest
from .fio_sanity import sections

# Options of fio (HOWTO, "Buffers and memory") that make data which a controller can shrink; of a flag, what it has to
# be for that.
SHRINKING: dict[str, t.Callable[[str], bool]] = {
    "zero_buffers": lambda value: value != "0",
    "buffer_pattern": lambda _value: True,
    "buffer_compress_percentage": lambda value: value.rstrip("%") not in ("", "0"),
    "dedupe_percentage": lambda value: value.rstrip("%") not in ("", "0"),
    "verify_pattern": lambda _value: True,
}
WRITES = ("write", "randwrite", "rw", "readwrite", "randrw", "trimwrite", "randtrimwrite")


def compressible(job: str) -> list[str]:
    """Return the options of a job that writes by which its data compress or repeat: zero_buffers=1.

    Without refill_buffers fio scrambles its buffers for each write, so that no block repeats and none compresses alone;
    without scramble_buffers too, it writes the same blocks again and again.
    """
    asked = sections(job)
    shared = asked.pop("global", {})
    found: dict[str, None] = {}
    for own in asked.values():
        options = dict(shared, **own)
        if options.get("rw") not in WRITES:
            continue
        found.update(
            {
                f"{key}={options[key]}": None
                for key, shrinks in SHRINKING.items()
                if key in options and shrinks(options[key])
            }
        )
        if options.get("refill_buffers", "0") == "0" == options.get("scramble_buffers"):
            found["scramble_buffers=0"] = None
    return list(found)


def remarks(test: PlannedTest) -> list[str]:
    """Return what of a rendered test's jobs writes such data, as sentences; once for a step, and for the cells
    together.

    data told: the job's `zero_buffers`, `buffer_pattern`, `buffer_compress_percentage`, `dedupe_percentage`,
      `scramble_buffers=0` without `refill_buffers`: data that can be compressed or repeats. Limit: any
    """
    jobs = [("its preconditioning", [test.precondition.job] if test.precondition else [])]
    jobs.append(("its cells", [cell.job for cell in test.cells]))
    found = []
    for what, texts in jobs:
        options = list(dict.fromkeys(option for text in texts for option in compressible(text)))
        if options:
            found.append(
                "{0} wrote data that compress or repeat ({1}): a controller that compresses is faster with them".format(
                    what, ", ".join(options)
                )
            )
    return found
