# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a job that fio is to run on a drive in service (ssd_mode: read_only) does nothing but read. Pure. The plan
was looked at before (run/read_only.py); this is looked at where fio is started, whatever the plan was.
"""

from __future__ import annotations

import typing as t

READS = ("read", "randread")
# Options of a job that can't write, whatever they are set to; what is not listed is not run.
HARMLESS = frozenset(
    "thread exitall_on_error randrepeat randseed cpus_allowed numa_mem_policy group_reporting lat_percentiles "
    "clat_percentiles percentile_list filename norandommap bs bssplit ba random_distribution iodepth numjobs offset "
    "offset_increment size hipri iodepth_batch iodepth_batch_complete ramp_time thinktime thinktime_iotime time_based "
    "runtime rate rate_iops".split()
)
# What each job has to say: without invalidate=0 fio flushes and drops the page cache of a drive in use.
DEMANDED = {"invalidate": "0", "direct": "1", "allow_file_create": "0"}
ENGINES = ("libaio", "io_uring", "sync", "psync")


def job_problem(argv: t.Sequence[str], job: str) -> str:
    """Return why fio must not be started so on a drive in service; "" if it may. job: as fio reads it."""
    if "--readonly" not in argv:
        return "fio is not told to refuse writes (--readonly)"
    sections: list[dict[str, str]] = []
    for line in (one.strip() for one in job.splitlines()):
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            sections.append({"[": line.strip("[]")})
            continue
        key, _sign, value = (part.strip() for part in line.partition("="))
        if not sections:
            return f"the line {line!r} stands in no section"
        if key not in HARMLESS and key not in DEMANDED and key not in ("rw", "ioengine"):
            return f"{key} is no option of a job that only reads"
        sections[-1][key] = value
    if sum(one["["] == "global" for one in sections) > 1:
        return "it has a second section [global]"
    shared = next((one for one in sections if one["["] == "global"), {})
    jobs = [{**shared, **one} for one in sections if one["["] != "global"]
    if not jobs:
        return "it has no job"
    return next((problem for one in jobs if (problem := _section_problem(one))), "")


def _section_problem(options: t.Mapping[str, str]) -> str:
    """Return why one job, with what all share, may do more than read."""
    name, does = options["["], options.get("rw")
    if does not in READS:
        return f"job {name} has rw={does}, and only {' and '.join(READS)} read"
    if options.get("ioengine") not in ENGINES:
        return f"job {name} has ioengine={options.get('ioengine')}, not one of {', '.join(ENGINES)}"
    wrong = [key for key, value in DEMANDED.items() if options.get(key) != value]
    return f"job {name} has not {wrong[0]}={DEMANDED[wrong[0]]}" if wrong else ""
