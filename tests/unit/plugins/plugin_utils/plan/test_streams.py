# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of several streams: from the keys of a test to one fio job, and what is wrong with them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedDrive
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import criteria_checks, wear
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

SIZE = 1 << 30
MIB = 1 << 20
READS = {"name": "reads", "block_size": "4KiB", "read_pct": 100, "queue_depth": 8, "range": {"from_pct": 20}}
LOG = {"name": "log", "access": "sequential", "block_size": "128KiB", "read_pct": 0, "threads": 2, "rate_iops": 100}
TRIMS = {"name": "trims", "access": "sequential", "block_size": "1MiB", "trim": True, "range": {"to_pct": 10}}


def one(*jobs, **keys):
    cell = {"name": "web", "runtime_s": 2, "jobs": list(jobs)}
    return {
        "name": "a",
        "purge": False,
        "precondition": False,
        "cells": [cell],
        "rounds": {"max": 1},
        **keys,
    }


def rendered(*tests, block=512, **more):
    identity = {"serial": "S1", "size_bytes": SIZE, "logical_block_size_bytes": block, **more}
    done = planned(load_plan(list(tests)), identity)
    return done["drives"][0]


def drive_of(*tests):
    return base.parse(PlannedDrive, rendered(*tests))


def wrong(*tests, **more):
    with pytest.raises(PlanError) as error:
        rendered(*tests, **more)
    return str(error.value)


def test_each_stream_is_a_section_with_its_own_load_range_and_group():
    (cell,) = rendered(one(READS, LOG, TRIMS))["tests"][0]["cells"]
    asked = fio_sanity.sections(cell["job"])
    names = [f"{cell['id']}.{name}" for name in ("reads", "log", "trims")]
    assert list(asked) == ["global", *names] and cell["id"].startswith("jobs-web-")
    reads, log, trims = (asked[name] for name in names)
    assert {options["new_group"] for options in (reads, log, trims)} == {"1"}
    assert "stonewall" not in cell["job"] and {options["runtime"] for options in (reads, log, trims)} == {"2"}
    assert (reads["rw"], reads["bs"], reads["iodepth"]) == ("randread", "4096", "8")
    # 20 % of 1 GiB is no multiple of 4 KiB: it begins with the next block, and ends with the range.
    offset = -(-SIZE * 20 // 100 // 4096) * 4096
    assert (int(reads["offset"]), int(reads["size"])) == (offset, SIZE - offset)
    assert (log["rw"], log["rate_iops"], log["numjobs"]) == ("write", "50", "2")
    assert (log["offset_increment"], log["size"]) == (str(SIZE // 2), str(SIZE // 2)) and "offset" not in log
    assert (trims["rw"], trims["size"], trims["iodepth"]) == ("trim", str(SIZE // 10 // MIB * MIB), "1")


def test_flushes_are_told_from_writes_by_a_synchronous_engine_alone():
    (cell,) = rendered(one(READS, {**LOG, "fdatasync": 1, "sync": "dsync"}))["tests"][0]["cells"]
    asked = fio_sanity.sections(cell["job"])
    log = asked[f"{cell['id']}.log"]
    assert (log["ioengine"], log["fdatasync"], log["sync"]) == ("sync", "1", "dsync")
    assert "ioengine" not in asked[f"{cell['id']}.reads"] and asked["global"]["ioengine"] == "libaio"
    plain = {"block_size": "4KiB", "read_pct": 0, "fdatasync": 1}
    (cell,) = rendered({**one(READS, LOG), "cells": [plain]})["tests"][0]["cells"]
    assert cell["id"] == "rand-4k-w100-tc1-qd1-fdatasync1"
    assert fio_sanity.sections(cell["job"])[cell["id"]]["ioengine"] == "sync"


def test_what_every_cell_has_tells_of_all_streams():
    (cell,) = rendered(one(READS, LOG, TRIMS))["tests"][0]["cells"]
    told = {key: cell[key] for key in ("access", "block_size_bytes", "read_pct", "threads", "queue_depth")}
    assert told == {"access": "random", "block_size_bytes": MIB, "read_pct": 50, "threads": 4, "queue_depth": 8}


def test_another_load_of_the_same_name_has_another_id():
    (first,) = rendered(one(READS, LOG))["tests"][0]["cells"]
    (other,) = rendered(one(READS, {**LOG, "rate_iops": 200}))["tests"][0]["cells"]
    assert first["id"] != other["id"]


@pytest.mark.parametrize(
    "jobs, text",
    [
        ([READS, {**TRIMS, "queue_depth": 4}], "stream trims: fio trims one at a time, not at a queue_depth of 4"),
        ([READS, {**READS}], "stream reads: is listed twice"),
        ([READS, {**TRIMS, "range": {"to_pct": 30}}], "stream reads reads what stream trims trims"),
        ([READS, {"name": "w", "block_size": "4KiB"}], "stream w: read_pct: is missing"),
        ([READS, {**LOG, "range": {"from_pct": 50, "to_pct": 50}}], "from_pct 50 must be below to_pct 50"),
        ([READS, {**LOG, "rate_iops": 1}], "less than 1 IOPS for each thread"),
        ([{**READS, "sync": "dsync"}, LOG], "stream reads: sync: needs a stream or cell that writes"),
        ([READS, {**LOG, "fdatasync": 1, "queue_depth": 2}], "fdatasync: needs a queue_depth of 1, not 2"),
        ([READS], "jobs"),
        ([READS, {**LOG, "name": "Log 1"}], "does not fit; Small letters and digits"),
        ([READS, {**LOG, "depth": 1}], "unknown key"),
    ],
)
def test_what_no_drive_can_do_or_measures_nothing_is_refused(jobs, text):
    assert text in wrong(one(*jobs))


def test_a_cell_has_either_a_load_or_streams():
    test = one(READS, LOG)
    test["cells"][0]["queue_depth"] = 4
    assert "queue_depth" in wrong(test)
    assert "block_size: is missing" in wrong({**test, "cells": [{"read_pct": 0}]})
    unnamed = one(READS, LOG)
    del unnamed["cells"][0]["name"]
    assert "name: is missing" in wrong(unnamed)


def test_trims_have_no_ramp():
    test = one(LOG, TRIMS)
    test["cells"][0]["ramp_s"] = 1
    assert "trims can't be combined with ramp_s" in wrong(test)


def test_a_stream_below_the_logical_block_or_without_room_is_refused():
    small = {**READS, "block_size": "512B"}
    assert "below the drive's logical block size" in wrong(one(small, LOG), block=4096)
    large = {**TRIMS, "block_size": "256MiB"}
    assert "no room in its part" in wrong(one(LOG, large))


def test_trims_of_a_drive_without_discards_are_refused_before_hours_of_filling():
    no_room = "stream trims trims, but the drive does not support discards (queue/discard_max_bytes is 0)"
    assert f"{no_room}; take it out of the test" in wrong(one(READS, LOG, TRIMS), max_discard_bytes=0)
    assert "none of the test's cells can run on this drive: stream" in wrong("hyperscale-l2r6", max_discard_bytes=0)
    for told in ({}, {"max_discard_bytes": None}, {"max_discard_bytes": 1 << 31}):
        assert rendered(one(READS, LOG, TRIMS), **told)["tests"][0]["cells"]


def test_what_was_trimmed_has_to_be_filled_before_it_is_read():
    reading = {"name": "b", "purge": False, "precondition": False, "cells": [{"block_size": "4KiB", "read_pct": 100}]}
    text = wrong(one(LOG, TRIMS), reading)
    assert "not written since the purge or the trims of test a" in text
    assert rendered(one(LOG, READS), reading)["tests"][1]["name"] == "b"


def test_a_tracked_cell_of_streams_is_found_by_its_name():
    tracked = [{"name": "web", "metric": "read_iops"}]
    test = one(READS, LOG, steady_state={"tracked": tracked}, rounds={"max": 5})
    test["cells"].append({"block_size": "4KiB", "read_pct": 0})
    (found,) = rendered(test)["tests"][0]["steady_state"]["tracked"]
    assert found["cell"].startswith("jobs-web-")
    test["steady_state"]["tracked"][0]["metric"] = "write_iops"
    test["cells"][0]["jobs"][1] = {**LOG, "read_pct": 100}
    assert "has no writes" in wrong(test)


def test_wear_counts_what_streams_may_write_and_no_trims():
    drive = drive_of(one(READS, LOG, TRIMS))
    _least, most = wear.of_drive(drive)
    # A round lasts for 2 s and what starting fio takes.
    assert most == pytest.approx(100 * 128 * 1024 * 2, rel=0.25)


def test_criteria_may_name_a_stream_and_its_trims_or_flushes():
    drive = drive_of(one(READS, {**LOG, "fdatasync": 1}, TRIMS))
    (cell,) = drive.tests[0].cells

    def applies(metric, name=""):
        item = {
            "metric": metric,
            "max" if "latency" in metric else "min": 10_000_000,
            **({"cell": name} if name else {}),
        }
        return bool(criteria_checks.applying([item], drive))

    assert applies("trim_p99_latency_us") and applies("sync_p99_latency_us") and applies("read_iops")
    assert applies("read_iops", cell.id + ".reads") and not applies("write_iops", cell.id + ".reads")
    assert applies("trim_bandwidth", cell.id + ".trims") and not applies("sync_iops", cell.id + ".trims")
    assert not applies("read_iops", cell.id + ".nobody")


def test_a_stream_may_have_a_mix_of_sizes_and_a_rate_that_grows_with_the_drive():
    sizes = [{"size": "4KiB", "pct": 60}, {"size": "64KiB", "pct": 40}]
    reads = {**READS, "mix": {"sizes": sizes}, "rate_mib_s_per_tb": 68, "threads": 2}
    (cell,) = rendered(one(reads, LOG))["tests"][0]["cells"]
    asked = fio_sanity.sections(cell["job"])[f"{cell['id']}.reads"]
    assert (asked["bssplit"], asked["ba"]) == ("4096/60:65536/40", "4096")
    assert int(asked["rate"]) == int(68 * MIB * SIZE / 1e12 / 2) and "rate_iops" not in asked
    assert "alone, without rate_iops" in wrong(one({**reads, "rate_iops": 10}, LOG))
    uneven = {**reads, "mix": {"sizes": [{"size": "512B", "pct": 10}, {"size": "4KiB", "pct": 90}]}}
    assert "below the drive's logical block size" in wrong(one(uneven, LOG), block=4096)
    drive = drive_of(one(READS, {**TRIMS, "trim": False, "read_pct": 0, "rate_mib_s_per_tb": 72}))
    assert wear.of_drive(drive)[1] == pytest.approx(2 * 72 * MIB * SIZE / 1e12, rel=0.25)
