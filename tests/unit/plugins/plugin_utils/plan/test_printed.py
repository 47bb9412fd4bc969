# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job of the suites whose sources print jobs, held option by option to what they print (golden/printed.yml).
docs/workloads.md lists every difference, for the jobs that have it and no other.
"""

from __future__ import annotations

import copy
import fnmatch
import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_sanity
from ansible_collections.ssdlab.fleet.tests.fixtures import printed as sources
from ansible_collections.ssdlab.fleet.tests.fixtures.printed import PRINTED, UNPRINTED, label
from ansible_collections.ssdlab.fleet.tests.fixtures.suites import PLACEHOLDERS, SIZE, jobs_of, rendered_tests

WORKLOADS = Path(__file__).parents[5] / "docs" / "workloads.md"
SUITES = sorted({entry["suite"] for entry in PRINTED})
ALIASES = {"readwrite": "rw", "blocksize": "bs", "rwmixwrite": "rwmixread"}
# What fio takes where nothing is said (its HOWTO), of the options that only one of both has.
DEFAULTS = {
    "iodepth": "1",
    "iodepth_batch": "1",
    "iodepth_batch_complete": "1",
    "numjobs": "1",
    "thread": "0",
    "ramp_time": "0",
    "end_fsync": "0",
    "invalidate": "1",
    "loops": "1",
    "direct": "0",
    "randrepeat": "1",
    "size": "100%",
    "group_reporting": "0",
    "refill_buffers": "0",
}
# Not how a drive is loaded: names, and what fio reports.
NAMES = {"filename", "name", "description"}
NOT_SAID = "not said"


def all_jobs():
    """[(suite, test, name of its job)] of the suites that have printed jobs."""
    return [(suite, test, name) for suite in SUITES for test in rendered_tests(suite) for name in jobs_of(test)]


def stands_for(entry, suite, test, name):
    """Whether a list's entry is of this job; without `cell` it is of every cell and of no fill."""
    fill = name.startswith("precondition")
    return (
        entry["suite"] == suite
        and fnmatch.fnmatchcase(test["name"], entry.get("test", "*"))
        and ("cell" in entry or not fill)
        and fnmatch.fnmatchcase(name, entry.get("cell", "*"))
    )


def normal(options):
    """Options by fio's own names, sizes in bytes, and a mix of one direction alone as that direction."""
    found = {}
    for key, value in options.items():
        value = str(100 - int(value)) if key == "rwmixwrite" else value
        found[ALIASES.get(key, key)] = value
    for key in ("bs", "blockalign", "size"):
        match = re.fullmatch(r"(\d+)([kKMG])", found.get(key, ""))
        if match:
            found[key] = str(int(match[1]) << {"k": 10, "K": 10, "M": 20, "G": 30}[match[2]])
    mix = found.get("rwmixread")
    if found["rw"] in ("rw", "randrw") and mix in ("0", "100"):
        found["rw"] = {"rw": "", "randrw": "rand"}[found["rw"]] + ("write" if mix == "0" else "read")
    if found["rw"] not in ("rw", "randrw"):
        found.pop("rwmixread", None)
    if found.get("size") == str(SIZE):
        found["size"] = "100%"
    return {key: value for key, value in found.items() if key not in NAMES}


def differing(entry, test, name, job):
    """{option: (printed, here)} between a printed job and a rendered one; None: not there."""
    cell = next((cell for cell in test["cells"] if cell["id"] == name), None)
    # Threads that follow the CPUs: what the sources print is the most.
    most = {key: cell[key] for key in ("threads", "queue_depth")} if cell else {}
    values = {**PLACEHOLDERS, **most, "size_bytes": SIZE * test["active_range_pct"] // 100}
    sections = fio_sanity.sections(fio.fill(job, values))
    options = sections.pop("global")
    assert len(sections) == 1
    here, printed = normal({**options, **next(iter(sections.values()))}), normal(sources.options(entry, cell))
    both = {key: tuple(side.get(key, DEFAULTS.get(key)) for side in (printed, here)) for key in [*printed, *here]}
    return {
        key: (NOT_SAID if key not in printed else values[0], values[1])
        for key, values in both.items()
        if values[0] != values[1]
    }


def computed(change=lambda name, job: job):
    """{(suite, job, option): {what is printed}}: all that differs. change: of each job's text, beforehand."""
    found = {}
    for suite, test, name in all_jobs():
        for entry in PRINTED:
            if stands_for(entry, suite, test, name):
                job = change((suite, test["name"], name), jobs_of(test)[name])
                for option, (printed, _here) in differing(entry, test, name, job).items():
                    found.setdefault((*label(entry), option), set()).add(printed)
    return found


def table():
    """The rows of the table in docs/workloads.md, as lists of cells."""
    text = (
        WORKLOADS.read_text(encoding="utf-8")
        .partition("\n## Where options differ from the sources\n")[2]
        .partition("\n## ")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")
    ][1:]
    assert rows and all(len(row) == 5 and all(row) for row in rows), [row for row in rows if len(row) != 5]
    return rows


def listed():
    """{(suite, job, option): the column "printed"} of that table. `all` stands for every printed job, a suite without
    jobs in parentheses for all of its own.
    """
    labels = [label(entry) for entry in PRINTED]
    found = {}
    for options, where, printed, *_rest in table():
        if where == "all":
            jobs = labels
        else:
            jobs = []
            for suite, some in re.findall(r"`([^`]+)`(?: \(([^)]+)\))?", where):
                own = [one for one in labels if one[0] == suite]
                jobs += [(suite, name) for name in some.split(", ")] if some else own
        assert set(jobs) <= set(labels), f"no such jobs: {sorted(set(jobs) - set(labels))}"
        for option in re.findall(r"`([^`]+)`", options):
            found.update({(*job, option): printed for job in jobs})
    return found


def test_every_job_of_these_suites_stands_for_one_that_is_printed_or_is_said_to_be_ours():
    """And nothing is on the lists that no job stands for."""
    used = set()
    for suite, test, name in all_jobs():
        entries = [number for number, entry in enumerate(PRINTED + UNPRINTED) if stands_for(entry, suite, test, name)]
        assert len(entries) == 1, (suite, test["name"], name, entries)
        used.update(entries)
    assert used == set(range(len(PRINTED + UNPRINTED)))
    assert all(entry["why"] for entry in UNPRINTED)


def test_what_differs_from_the_sources_is_listed_with_its_reason_and_nothing_else():
    found, told = computed(), listed()
    assert sorted(set(found) - set(told)) == [], "differs, and docs/workloads.md does not say so"
    assert sorted(set(told) - set(found)) == [], "docs/workloads.md lists what does not differ"


def test_the_table_quotes_what_is_printed():
    told = listed()
    wrong = {
        (key, printed)
        for key, values in computed().items()
        for printed in values
        # Long ones are sizes, which the table has in words.
        if len(printed) <= len(NOT_SAID) and printed not in told.get(key, printed).replace("100 %", "100%")
    }
    assert sorted(wrong) == []


@pytest.mark.parametrize(
    ("where", "old", "new", "option"),
    [
        # The option is on the list for another job of the suite: that excuses nothing here.
        (("iomemory-guide", "iomemory-random-write", "*"), "iodepth=32", "iodepth=16", "iodepth"),
        (("iomemory-guide", "iomemory-random-write", "*"), "size=@ssd_size_bytes@", "size=1073741824", "size"),
        (("iomemory-guide", "iomemory-read-bandwidth", "precondition"), "loops=1", "loops=2", "loops"),
        (("micron-p420m", "micron-mixed-seq-64k-r70", "*"), "rwmixread=70", "rwmixread=50", "rwmixread"),
        (("micron-p420m", "micron-read", "rand-2k-*"), "bs=2048", "bs=4096", "bs"),
        (("micron-brief", "brief-second-2-random", "*"), "runtime=300", "runtime=60", "runtime"),
        (("micron-blog", "blog-sweep-4k", "*-qd64"), "iodepth=64", "iodepth=63", "iodepth"),
    ],
)
def test_a_job_that_strays_is_found(where, old, new, option):
    def change(found, job):
        hit = all(fnmatch.fnmatchcase(*pair) for pair in zip(found, where)) and old in job
        strayed.append(hit)
        return job.replace(old, new) if hit else job

    strayed: list = []
    assert {key[2] for key in set(computed(change)) - set(listed())} == {option} and any(strayed)


def test_a_deviation_that_is_made_up_is_found(monkeypatch):
    rows = copy.deepcopy(table())
    rows.append(["`iodepth`", "`iomemory-guide` (02)", "32", "16", "made up"])
    monkeypatch.setitem(globals(), "table", lambda: rows)
    assert set(listed()) - set(computed()) == {("iomemory-guide", "02", "iodepth")}


def test_the_guides_nine_jobs_are_all_there():
    assert [entry["job"] for entry in PRINTED if entry["suite"] == "iomemory-guide"] == [
        f"0{number}" for number in range(1, 10)
    ]
