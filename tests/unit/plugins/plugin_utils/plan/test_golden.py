# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job of every shipped plan is pinned (golden/<plan>.txt), accepted by fio, and held option by option to what the
sources print (golden/printed.yml).

After a change that is meant: SSDLAB_FLEET_WRITE_GOLDEN=1 python -m pytest <this file>, and read the difference.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, plausible
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import printed
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

GOLDEN = Path(__file__).parent / "golden"
WORKLOADS = testfiles.SHIPPED_DIR.parents[2] / "docs" / "workloads.md"
PLANS = sorted(path.stem for path in testfiles.SHIPPED_DIR.glob("plans/*.yml"))
PRINTED = printed.ENTRIES
SIZE = 700_150_000_000 // 4096 * 4096
PLACEHOLDERS = {
    "device": "/dev/drive",
    "seed": 1,
    "size_bytes": SIZE,
    "cpus_allowed": "0-7",
    "numa_node": 0,
    "remainder_offset": SIZE - 90_112,
    "remainder_bytes": 90_112,
    "max_queue_depth": 32,
    "threads": 2,
    "queue_depth": 4,
    "share_bytes": SIZE // 4096 // 2 * 4096,
}
ALIASES = {"readwrite": "rw", "blocksize": "bs", "rwmixwrite": "rwmixread"}
# What fio takes where nothing is said (its HOWTO), of the options that only one of both has.
DEFAULTS = {
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
}
# Not how a drive is loaded: names, and what fio reports.
NAMES = {"filename", "name", "description"}


@functools.lru_cache(maxsize=None)
def rendered_tests(plan):
    identity = {
        "serial": "S1",
        "size_bytes": SIZE,
        "logical_block_size_bytes": 512,
        "minimum_io_size_bytes": 16_384,
    }
    done = planned(load_plan(plan), identity)
    return done["drives"][0]["tests"]


def jobs_of(test):
    """{name: job text} of a test: its fill, its cells."""
    fill = test["precondition"] or {}
    jobs = {"precondition": fill["job"], "precondition-remainder": fill["remainder_job"]} if fill else {}
    return {**jobs, **{cell["id"]: cell["job"] for cell in test["cells"]}}


def text_of(plan):
    """All jobs of a plan, one a line; what they share once."""
    lines, shared = [], set()
    for test in rendered_tests(plan):
        limits = ", ".join(f"{key} {value}" for key, value in test["rounds"].items() if value)
        steady = test["steady_state"] and {
            key: value for key, value in test["steady_state"].items() if key != "tracked"
        }
        tracked = ", ".join(
            f"{item['cell']} {item['metric']}" for item in (test["steady_state"] or {}).get("tracked", [])
        )
        lines += ["", f"{test['name']}: purge {test['purge']['method']}; {test['active_range_pct']} %; {limits}"]
        lines += (
            [f"  steady: {tracked}; {', '.join(f'{key} {value}' for key, value in steady.items())}"] if steady else []
        )
        for name, job in jobs_of(test).items():
            sections = plausible.sections(job)
            shared.add(words(sections.pop("global")))
            lines += [f"  [{name}] {words(options)}" for options in sections.values()]
    assert len(shared) == 1
    return "\n".join([*shared, *lines]) + "\n"


def words(options):
    return " ".join(f"{key}={value}" for key, value in options.items())


@pytest.mark.parametrize("plan", PLANS)
def test_no_job_of_a_plan_changes_unseen(plan):
    file = GOLDEN / f"{plan}.txt"
    if os.environ.get("SSDLAB_FLEET_WRITE_GOLDEN"):
        file.write_text(text_of(plan), encoding="utf-8")
    assert text_of(plan) == file.read_text(encoding="utf-8")


def test_no_golden_file_is_left_of_a_plan_that_is_gone():
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == PLANS


@pytest.mark.skipif(not shutil.which("fio"), reason="needs fio")
@pytest.mark.parametrize("plan", PLANS)
def test_fio_accepts_every_job(plan, tmp_path):
    jobs = list(dict.fromkeys(job for test in rendered_tests(plan) for job in jobs_of(test).values()))
    files = []
    for number, job in enumerate(jobs):
        files.append(tmp_path / f"{number}.fio")
        # As the host fills it, on a host without NUMA: a container may not be allowed to set a policy.
        files[-1].write_text(fio.fill(job, {**PLACEHOLDERS, "numa_node": None, "cpus_allowed": None}), encoding="utf-8")
    done = subprocess.run(
        ["fio", "--parse-only", *map(str, files)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def options_printed(entry):
    return normal(printed.options(entry))


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


def differing(entry):
    """{option: (printed, here)} between a printed job and the rendered one that stands for it; None: not there."""
    test = next(test for test in rendered_tests(entry["suite"]) if test["name"] == entry["test"])
    name = entry.get("cell") or test["cells"][0]["id"]
    # Threads that follow the CPUs: what the sources print is the most.
    most = {key: cell[key] for cell in test["cells"] if cell["id"] == name for key in ("threads", "queue_depth")}
    values = {**PLACEHOLDERS, **most, "size_bytes": SIZE * test["active_range_pct"] // 100}
    sections = plausible.sections(fio.fill(jobs_of(test)[name], values))
    options = sections.pop("global")
    assert len(sections) == 1
    here, printed = normal({**options, **next(iter(sections.values()))}), options_printed(entry)
    both = {key: tuple(side.get(key, DEFAULTS.get(key)) for side in (printed, here)) for key in [*printed, *here]}
    return {key: values for key, values in both.items() if values[0] != values[1]}


def deviations():
    """{(suite, option)} of the table in docs/workloads.md; `all` stands for every suite with printed jobs."""
    text = (
        WORKLOADS.read_text(encoding="utf-8")
        .partition("\n## Where options differ from the sources\n")[2]
        .partition("\n## ")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")
    ][1:]
    assert rows and all(len(row) == 5 and all(row) for row in rows), [row for row in rows if len(row) != 5]
    suites = {entry["suite"] for entry in PRINTED}
    found = set()
    for options, names, *_rest in rows:
        for suite in suites if names == "all" else re.findall(r"`([^`]+)`", names):
            found |= {(suite, option) for option in re.findall(r"`([^`]+)`", options)}
    return found


def test_what_differs_from_the_sources_is_listed_with_its_reason_and_nothing_else():
    computed = {
        (entry["suite"], option): (entry["source"], values)
        for entry in PRINTED
        for option, values in differing(entry).items()
    }
    listed = deviations()
    assert {key: computed[key] for key in computed if key not in listed} == {}, (
        "differs, and docs/workloads.md does not say so"
    )
    assert sorted(listed - set(computed)) == [], "docs/workloads.md lists what does not differ"


def test_the_guides_nine_jobs_are_all_there():
    assert [entry["source"] for entry in PRINTED if entry["suite"] == "iomemory-guide"] == [
        f"fio-job-0{number}" for number in range(1, 10)
    ]
