# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_sanity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PlannedCell
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import cells as celling
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import (
    PlanError,
    load_plan,
    step_plan,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_record import Test
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, plans

WHOLE = 1 << 30
VALUES = {
    "device": "/dev/x",
    "seed": 7,
    "size_bytes": WHOLE + 90112,
    "remainder_offset": WHOLE,
    "remainder_bytes": 90112,
    "max_queue_depth": 32,
    "threads": 2,
    "queue_depth": 4,
}
HOST = {**VALUES, "numa_node": 1, "cpus_allowed": "8-15"}
BARE = {**VALUES, "numa_node": None, "cpus_allowed": None}


def drive(block=512, size=480_103_981_056, serial="S1"):
    return {
        "selector": {"serial": serial},
        "identity": {"serial": serial, "size_bytes": size, "logical_block_size_bytes": block},
    }


def make(plan, drives=None, **variables):
    tests = plan if plan and isinstance(plan[0], Test) else load_plan(plan)
    return plans.rendered(
        tests,
        run={"id": "r1", "name": "qualify"},
        host="h1",
        boot_id="b",
        drives=[drive()] if drives is None else drives,
        engine_version="0.1.0",
        variables=variables,
    )


def rendered(plan, drives=None, **variables):
    return make(plan, drives, **variables)["drives"][0]["tests"]


def options(job, section=-1):
    """The options of one section of a filled job, global ones included."""
    sections, current = [], {}
    for line in filter(None, job.splitlines()):
        if line.startswith("["):
            current = dict(sections[0]) if sections else {}
            sections.append(current)
        else:
            key, value = line.split("=", 1) if "=" in line else (line, "1")
            current[key] = value
    return sections[section]


@pytest.mark.parametrize("plan", ["demo", ["wsat", "iops"]])
@pytest.mark.parametrize("variables", [{}, {"purge_method": "overwrite", "workload_ioengine": "io_uring"}])
def test_a_rendered_plan_fits_its_schema(plan, variables):
    result = make(plan, [drive(), drive(4096, serial="S2")], **variables)
    documents.validate(json.loads(json.dumps(result)), "plan")


def test_rendering_is_repeatable():
    assert make(["wsat", "iops"]) == make(["wsat", "iops"])


def test_every_job_can_be_filled_and_leaves_no_placeholder():
    for test in rendered("demo", purge_method="overwrite"):
        fill = test["precondition"] or test["purge"]
        for job in [fill["job"], fill["remainder_job"], *(cell["job"] for cell in test["cells"])]:
            for values in (HOST, BARE):
                text = fio.fill(job, values)
                assert "@" not in text and "None" not in text
            assert "numa" in fio.fill(job, HOST) and "numa" not in text and "cpus_allowed" not in text


def test_every_job_is_direct_random_data_on_an_existing_device():
    for test in rendered(["wsat", "iops"], purge_method="overwrite"):
        fill = test["precondition"] or test["purge"]
        for job in [fill["job"], fill["remainder_job"], *(cell["job"] for cell in test["cells"])]:
            found = options(fio.fill(job, HOST))
            asked = {
                "direct": "1",
                "thread": "1",
                "allow_file_create": "0",
                "randrepeat": "0",
                "exitall_on_error": "1",
            }
            assert found.get("refill_buffers") == (None if job in [cell["job"] for cell in test["cells"]] else "1")
            asked["group_reporting"] = "1"
            assert asked.items() <= found.items() and found["filename"] == "/dev/x" and found["randseed"] == "7"
            assert "ramp_time" not in job and "zero_buffers" not in job
            assert {"50", "90", "99", "99.9", "99.99", "99.999", "99.9999"} <= set(found["percentile_list"].split(":"))


def test_cells_run_for_their_time_and_fills_to_their_end():
    _wsat, iops = rendered(["wsat", "iops"])
    cell = options(fio.fill(iops["cells"][8]["job"], HOST))
    assert cell["rw"] == "randrw" and cell["rwmixread"] == "95" and cell["numjobs"] == "4" and cell["iodepth"] == "32"
    assert (
        cell["time_based"] == "1"
        and cell["runtime"] == "60"
        and cell["norandommap"] == "1"
        and cell["size"] == str(WHOLE + 90112)
    )
    for part in ("job", "remainder_job"):
        fill = options(fio.fill(iops["precondition"][part], HOST))
        assert fill["rw"] == "write" and fill["loops"] == "2" and fill["numjobs"] == "1"
        assert not {"runtime", "time_based", "norandommap"} & fill.keys()
    whole = options(fio.fill(iops["precondition"]["job"], HOST))
    assert (whole["bs"], whole["size"], whole["iodepth"]) == ("131072", str(WHOLE), "32")
    rest = options(fio.fill(iops["precondition"]["remainder_job"], HOST))
    assert (rest["bs"], rest["size"], rest["offset"]) == ("90112", "90112", str(WHOLE))


@pytest.mark.parametrize(
    ("access", "read_pct", "rw"),
    [
        ("random", 100, "randread"),
        ("random", 0, "randwrite"),
        ("random", 50, "randrw"),
        ("sequential", 100, "read"),
        ("sequential", 0, "write"),
        ("sequential", 50, "rw"),
    ],
)
def test_the_direction_of_a_cell(access, read_pct, rw):
    (test,) = rendered([{"name": "x", "cells": [{"access": access, "block_size": "128KiB", "read_pct": read_pct}]}])
    found = options(test["cells"][0]["job"])
    assert found["rw"] == rw and ("norandommap" in found) == rw.startswith("rand")


def test_sequential_threads_work_side_by_side():
    cell = {"access": "sequential", "block_size": "128KiB", "read_pct": 100, "threads": 3}
    (test,) = rendered([{"name": "x", "cells": [cell]}], [drive(size=1 << 30)])
    found = options(test["cells"][0]["job"])
    share = (1 << 30) // 3 // 131072 * 131072
    assert found["size"] == found["offset_increment"] == str(share)


@pytest.mark.parametrize(("read_pct", "rate"), [(0, "250"), (100, "250"), (65, "162,87")])
def test_a_rate_is_that_of_the_whole_cell(read_pct, rate):
    cell = {"block_size": "4KiB", "read_pct": read_pct, "threads": 4, "rate_iops": 1000}
    (test,) = rendered([{"name": "x", "cells": [cell]}])
    assert options(test["cells"][0]["job"])["rate_iops"] == rate and test["cells"][0]["id"].endswith("-1000iops")


def test_a_ramp_and_a_batch_are_in_the_job_and_in_the_cells_name():
    cell = {"block_size": "4KiB", "read_pct": 0, "queue_depth": 32, "runtime_s": 30}
    plain, peak = rendered([{"name": "x", "cells": [cell, {**cell, "ramp_s": 5, "batch": 16}]}])[0]["cells"]
    found = options(peak["job"])
    assert (found["ramp_time"], found["iodepth_batch"], found["iodepth_batch_complete"], found["runtime"]) == (
        "5",
        "16",
        "16",
        "30",
    )
    assert peak["id"] == plain["id"] + "-batch16-ramp5s" and not {"ramp_time", "iodepth_batch"} & set(
        options(plain["job"])
    )


def test_a_shipped_cell_below_the_logical_block_is_not_applicable():
    (test,) = rendered(["iops"], [drive(4096)])
    assert len(test["cells"]) == 49 and len(test["not_applicable"]) == 7
    assert all(
        item["id"].startswith("rand-512b-") and "logical block size of 4 KiB" in item["reason"]
        for item in test["not_applicable"]
    )
    assert len(rendered([{"base": "iops", "rounds": {"max": 9}}], [drive(4096)])[0]["cells"]) == 49


@pytest.mark.parametrize(
    ("plan", "block", "expected"),
    [
        (
            [{"base": "iops", "matrix": {"block_size": ["1MiB", "64KiB", "4KiB", "512B"]}}],
            4096,
            "cell rand-512b-r100-tc4-qd32",
        ),
        (
            [{"name": "x", "cells": [{"block_size": "6KiB", "read_pct": 0}]}],
            4096,
            "is not a multiple of the drive's logical block size of 4 KiB",
        ),
        (
            ["wsat"],
            8192,
            (
                "cell rand-4k-w100-tc4-qd32: block size 4 KiB is below the drive's logical block size of 8 KiB, "
                "and it "
                "is tracked"
            ),
        ),
        ([{"name": "x", "cells": [{"block_size": "1GiB", "read_pct": 0}]}], 512, "does not fit"),
        (
            [{"name": "x", "cells": [{"block_size": "512MiB", "read_pct": 0, "threads": 2}], "active_range_pct": 50}],
            512,
            "do not fit into the ActiveRange",
        ),
        (
            [{"base": "iops", "precondition": {"block_size": "512B"}}],
            4096,
            "precondition.block_size: block size 512 B is below",
        ),
    ],
)
def test_what_a_drive_cannot_do_names_host_drive_and_cell(plan, block, expected):
    with pytest.raises(PlanError) as caught:
        make(plan, [drive(block, size=1 << 30)])
    assert expected in str(caught.value)
    assert "does not fit" in expected or str(caught.value).startswith("h1: drive S1: test ")


def test_a_drive_that_is_not_there_is_an_error():
    with pytest.raises(PlanError, match="h1: drive S1: was not found"):
        make("demo", [{**drive(), "identity": None}])


def polling(io_poll=True):
    made = drive()
    made["identity"]["io_poll"] = io_poll
    return made


def test_with_poll_queues_reads_and_writes_poll_and_nothing_else_does():
    made = rendered(["iops", "hyperscale-l2r6", "sync-writes"], [polling()], workload_ioengine="io_uring_polled")
    seen = set()
    for test in made:
        fill = test["precondition"] or {"job": "", "remainder_job": ""}
        assert "hipri" not in test["purge"].get("job", "") + fill["job"] + fill["remainder_job"]
        for cell in test["cells"]:
            parts = fio_sanity.sections(cell["job"])
            assert parts.pop("global")["ioengine"] == "io_uring"
            calm = {
                name
                for name, part in parts.items()
                if "sync" in part or part.get("ioengine") or part["rw"].endswith("trim")
            }
            polled = {name for name, part in parts.items() if part.get("hipri") == "1"}
            assert polled == set(parts) - calm and bool(cell.get("polled")) == bool(polled)
            seen.update(part["rw"] if name in polled else "not " + part["rw"] for name, part in parts.items())
    # A 65 % mix, and what may not poll: trims, and writes that are flushed.
    assert {"randrw", "randread", "not trim", "not write"} <= seen


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
def test_without_asking_nothing_polls(engine):
    made = rendered(["iops"], [polling()], workload_ioengine=engine)
    assert all("hipri" not in cell["job"] and "polled" not in cell for test in made for cell in test["cells"])


def test_registered_buffers_and_files_are_of_cells_that_read_and_write():
    made = rendered(["iops", "sync-writes"], workload_ioengine="io_uring_fixed")
    parts = [part for test in made for cell in test["cells"] for part in fio_sanity.sections(cell["job"]).items()]
    fixed = {name: (part.get("fixedbufs"), part.get("registerfiles")) for name, part in parts if name != "global"}
    assert set(fixed.values()) == {("1", "1"), (None, None)}
    assert all(("1", "1") != both for name, both in fixed.items() if "sync" in name)
    assert not any(cell.get("polled") for test in made for cell in test["cells"])


@pytest.mark.parametrize("io_poll", [False, None])
def test_a_drive_without_poll_queues_is_refused_with_what_to_do(io_poll):
    with pytest.raises(PlanError, match=r"h1: drive S1: workload_ioengine: io_uring_polled: .*nvme.poll_queues=N"):
        make("demo", [polling(io_poll)], workload_ioengine="io_uring_polled")


def test_a_step_that_measures_nothing_polls_nothing():
    (test,) = rendered(step_plan("precondition"), [polling(False)], workload_ioengine="io_uring_polled")
    assert "ioengine=io_uring\n" in test["precondition"]["job"] and "hipri" not in test["precondition"]["job"]


def test_the_ioengine_is_one_of_those_offered():
    with pytest.raises(PlanError, match="h1: workload_ioengine: .* must be one of: libaio, io_uring"):
        make("demo", workload_ioengine="libaio\nfilename=/dev/sda")


@pytest.mark.parametrize(
    ("method", "variable", "expected"),
    [("auto", "overwrite", "overwrite"), ("deallocate", "overwrite", "deallocate"), ("none", "overwrite", "none")],
)
def test_a_method_named_by_a_test_comes_before_the_variable(method, variable, expected):
    (test,) = rendered([{"base": "wsat", "purge": {"method": method}}], purge_method=variable)
    assert test["purge"]["method"] == expected and ("job" in test["purge"]) == (expected == "overwrite")


@pytest.mark.parametrize(
    ("step", "purge", "passes"), [("purge", "auto", None), ("precondition", "none", 3), ("tune", "none", None)]
)
def test_a_step_measures_nothing(step, purge, passes):
    (test,) = rendered(step_plan(step, {"precondition_passes": "3", "precondition_block_size": "64KiB"}))
    assert test["cells"] == [] and test["name"] == step and test["purge"]["method"] == purge
    assert (test["precondition"] or {}).get("passes") == passes
    if passes:
        assert test["precondition"]["block_size_bytes"] == 65536


def test_an_unknown_step_is_an_error():
    with pytest.raises(PlanError, match="known steps: purge, precondition, tune"):
        step_plan("prug")


@given(st.integers(1, 1 << 20), st.sampled_from([("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)]))
def test_block_sizes_have_one_meaning(number, unit):
    assert celling.size_bytes(f"{number}{unit[0]}") == number * unit[1] == celling.size_bytes(number * unit[1])


@given(
    st.sampled_from(["random", "sequential"]),
    st.integers(1, 2048).map(lambda count: count * 512),
    st.integers(0, 100),
    st.integers(1, 256),
    st.integers(1, 4096),
)
def test_different_cells_have_different_names(access, size, read_pct, threads, depth):
    cell = PlannedCell(access, size, read_pct, threads, depth, id="", runtime_s=1)
    name = celling.cell_id(cell)
    for key, other in (
        ("block_size_bytes", size + 512),
        ("read_pct", (read_pct + 1) % 101),
        ("threads", threads + 1),
        ("queue_depth", depth + 1),
    ):
        assert celling.cell_id(dataclasses.replace(cell, **{key: other})) != name


@pytest.mark.parametrize("plan", [["self-test-short"], ["integrity"], ["iops"]])
def test_a_drive_is_held_to_its_health_whatever_its_test_does(plan):
    assert make(plan, ssd_health_criteria=[{"metric": "media_errors", "max": 0}])["health_criteria"]


def test_a_burn_in_has_random_io_between_its_passes():
    (test,) = make([{"base": "burn-in", "integrity": {"duration_s": 7200}}])["drives"][0]["tests"]
    asked = test["integrity"]
    assert (asked["passes"], asked["duration_s"], asked["heat_s"], asked["stop_at_first"]) == (2, 7200, 900, True)
    heat = asked["heat"]
    assert (heat["access"], heat["read_pct"], heat["threads"] * heat["queue_depth"]) == ("random", 50, 256)
    assert "rw=randrw" in heat["job"] and "runtime=900" in heat["job"]
    (other,) = make(["integrity"])["drives"][0]["tests"]
    assert other["integrity"] == {"passes": 2}
