# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.events import Look
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import ReadTogether
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import units
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.time_estimates import CELL_OVERHEAD_S
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text, plan_totals
from ansible_collections.ssdlab.fleet.tests.fixtures import planned
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import plan_of

GB = 10**9


def make(plan, size=480_103_981_056, block=512, **variables):
    identity = {
        "serial": "S1",
        "model": "MTFDXYZ",
        "wwn": None,
        "firmware": "F1",
        "size_bytes": size,
        "logical_block_size_bytes": block,
    }
    drives = [{"selector": {"serial": "S1"}, "identity": identity}]
    return plan_of(load_plan(plan), drives=drives, **variables)


def times(plan, rate=500, **more):
    (drive,) = plan_text.estimate(make(plan, ssd_assumed_write_mib_s=rate, **more))
    return drive.min_s, drive.max_s


def test_the_time_of_each_drive_includes_the_reads_that_tell_how_many_run_at_a_time():
    test = {"name": "x", "cells": [CELL], "rounds": {"max": 10}, "purge": False, "precondition": False}
    asked = ReadTogether(3, [planned.cell(runtime_s=1, ramp_s=1)] * 2, ["S1", "S13"], [24, 12, 6, 3], 2)
    plan = dataclasses.replace(make([test]), together=asked, parallel_why="the port is narrow")
    several = dataclasses.replace(plan, drives=plan.drives * 24, parallel_drives=24)
    lines = plan_text.describe(several, {})
    # 10 minutes of rounds, and half a minute to two minutes of reads.
    reads = "reads of at most 2 min find the number first"
    assert lines[0] == f"h1: 24 drives, 2 to 24 at a time: the port is narrow; {reads}"
    whole = [line for line in lines if line.startswith("    in all ")]
    assert len(whole) == 1 and "in all 11 min to 12 min, if it writes" in whole[0], whole[0]
    assert whole[0].endswith(", these reads included")
    assert lines[-1] == "  all 24 drives: 11 min to 2 h 8 min, 2 to 24 at a time"
    # One drive alone needs none, whatever was asked.
    assert plan_text.describe(plan, {})[-1].startswith("    in all 10 min, if")


CELL = {"block_size": "4KiB", "read_pct": 0, "runtime_s": 60}
MINUTE = 60 + CELL_OVERHEAD_S


def test_the_brief_of_micron_gives_the_time_of_preconditioning():
    """Table 1 there: 960 GB at 520 MB/s twice are 63 min (it counts 1 GB as 1,024 MB)."""
    test = {"name": "x", "cells": [CELL], "rounds": {"max": 1}, "purge": False}
    low, _high = times([test], rate=520, size=960 << 30)
    assert (low - MINUTE) / 60 == pytest.approx(63, abs=0.1)


@pytest.mark.parametrize(
    ("more", "low", "high"),
    [
        ({"rounds": {"max": 10}}, 10, 10),
        (
            {
                "rounds": {"max": 25},
                "steady_state": {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "iops"}]},
            },
            5,
            25,
        ),
        ({"rounds": {"max": None, "time_limit_s": 600}, "steady_state": False}, 600 / MINUTE + 1, 600 / MINUTE + 1),
        (
            {
                "rounds": {"max": 25},
                "steady_state": {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "iops"}]},
                "after_steady_rounds": 4,
            },
            9,
            25,
        ),
    ],
)
def test_rounds_bound_the_estimate(more, low, high):
    given = times([{"name": "x", "cells": [CELL], "purge": False, "precondition": False, **more}])
    assert given == pytest.approx((low * MINUTE, high * MINUTE), abs=0.2)


READ = {**CELL, "read_pct": 100}


@pytest.mark.parametrize(
    ("tests", "budget", "told"),
    [
        # 60 minutes at 524.3 MB/s.
        ([{"cells": [CELL], "rounds": {"max": 60}}], {}, "1 h and 1.9 TB"),
        ([{"cells": [READ], "rounds": {"max": 60}}], {}, "1 h"),
        ([{"cells": [READ], "rounds": {"max": 60}}] * 2, {}, "2 h 1 min"),
        ([{"cells": [READ], "rounds": {"max": 60, "time_limit_s": 4500}}], {}, "16 min"),
        (
            [{"cells": [READ], "rounds": {"max": 60}}],
            {"time_budget_s": 7200},
            "1 h, as far as the budget leaves it",
        ),
        ([{"cells": [CELL], "rounds": {"max": None, "time_limit_s": 600}}], {}, None),
    ],
)
def test_the_plan_says_what_rounds_that_are_measured_again_may_add(tests, budget, told):
    given = [{"name": f"t{number}", "purge": False, "precondition": False, **test} for number, test in enumerate(tests)]
    lines = plan_text.describe(dataclasses.replace(make(given), **budget), {})
    found = [line for line in lines if "measured again" in line]
    expected = f"    disturbed rounds are measured again, which may add up to {told}"
    assert found == ([expected] if told else [])


def test_a_ramp_takes_its_time_too():
    test = {"name": "x", "cells": [{**CELL, "ramp_s": 5}], "purge": False, "precondition": False, "rounds": {"max": 1}}
    assert times([test]) == pytest.approx((MINUTE + 5, MINUTE + 5), abs=0.2)


def test_a_limit_in_bytes_can_end_a_test_early_but_bounds_it_only_alone():
    base = {"name": "x", "cells": [CELL], "purge": False, "precondition": False}
    capacity_s = 480_103_981_056 / (500 << 20)
    assert times([{**base, "rounds": {"max": None, "capacity_multiple": 4}}])[1] == pytest.approx(
        4 * capacity_s + MINUTE, abs=0.2
    )
    low, high = times([{**base, "rounds": {"max": None, "capacity_multiple": 4, "time_limit_s": 86400}}])
    assert low == pytest.approx(4 * capacity_s + MINUTE, abs=0.2) and high == pytest.approx(86400 + MINUTE)


def test_an_overwrite_costs_a_full_write():
    base = {"name": "x", "cells": [CELL], "precondition": False, "rounds": {"max": 1}}
    capacity_s = 480_103_981_056 / (500 << 20)
    assert times([{**base, "purge": {"method": "overwrite"}}])[0] - times([{**base, "purge": False}])[
        0
    ] == pytest.approx(capacity_s, abs=0.2)


@pytest.mark.parametrize(
    ("method", "least", "most"), [("nvme_format_crypto", 0, 0.1), ("auto", 0, 0.1), ("overwrite", 1, 1)]
)
def test_a_purge_by_command_may_be_over_at_once(method, least, most):
    """A drive that is faster than the shortest time that was printed makes the range wrong."""
    base = {"name": "x", "cells": [CELL], "precondition": False, "rounds": {"max": 1}}
    capacity_s = 480_103_981_056 / (500 << 20)
    low, high = times([{**base, "purge": {"method": method}}])
    assert (low, high) == pytest.approx((least * capacity_s + MINUTE, most * capacity_s + MINUTE), abs=0.2)


def test_threads_that_the_host_chooses_are_auto_in_plan_mode_and_their_trials_take_time():
    """Seven at most for a depth of 64: 1, 2, 4 … threads."""
    both = [{**CELL, "threads": "auto", "queue_depth": 64, "read_pct": pct} for pct in (0, 100)]
    fixed = [{**CELL, "threads": 4, "queue_depth": 16, "read_pct": pct} for pct in (0, 100)]
    base = {"name": "x", "purge": False, "precondition": {"passes": 1, "of": "active_range"}, "rounds": {"max": 1}}
    (least, most), plain = times([{**base, "cells": both}]), times([{**base, "cells": fixed}])
    assert (least, most) == pytest.approx((plain[0], plain[1] + 7 * (3 + CELL_OVERHEAD_S)))
    lines = plan_text.describe(make([{**base, "cells": both}]), {"S1": "/dev/x"})
    assert [line.strip() for line in lines if "threads" in line] == [
        "threads: auto for random 4 KiB: as many as short reads show that fio needs; threads x queue depth = 64"
    ]


def test_plan_mode_says_what_would_be_erased_and_run():
    wsat = {"name": "wsat", "base": "wsat", "steady_state": {"required": True}}
    lines = plan_text.describe(make([wsat, "iops"], block=4096), {"S1": "/dev/nvme0n1"})
    text = "\n".join(lines)
    assert "S1: would erase /dev/nvme0n1 (MTFDXYZ, serial S1, firmware F1, 480.1 GB, 4 KiB blocks)" in text
    assert "1. wsat: purge (auto), rounds of rand-4k-w100-tc4-qd32 (60 s) until steady" in text
    assert (
        "one round in 30, 2 h 1 min, confirmed by the one before), at most 4 x the user capacity written or 24 h"
        in text
    )
    assert (
        "no window begins before 2 x 480.1 GB is written; on a drive that writes less than 14.04 MB/s (3,427 "
        "IOPS of 4 KiB)"
    ) in text
    assert "2. iops: purge (auto), precondition 2 x the ActiveRange of 100 %, rounds of 49 cells (49 min)" in text
    assert text.count("not applicable: block size 512 B is below") == 1 and "rand-512b-w100-tc4-qd32" in text
    assert "if it writes 524.3 MB/s (ssd_assumed_write_mib_s)" in lines[-1]


def test_plan_mode_says_which_refusals_an_entry_lifts():
    plan = make([{"name": "x", "cells": [CELL], "rounds": {"max": 1}}])
    assert not any("lifted" in line for line in plan_text.describe(plan, {}))
    given = {"serial": "S1", "allow": ["partition_table", "raid"], "ssd_overwrite_data": True, "release_evidence": "r1"}
    lifted = dataclasses.replace(plan, drives=[dataclasses.replace(plan.drives[0], selector=given)])
    told = "    lifted by its entry: allow: [partition_table, raid], ssd_overwrite_data: true, release_evidence: r1"
    assert told in plan_text.describe(lifted, {})


def test_plan_mode_says_that_cells_are_shuffled():
    test = {"name": "x", "cells": [CELL, {**CELL, "read_pct": 100}], "cell_order": "shuffled", "rounds": {"max": 1}}
    text = "\n".join(plan_text.describe(make([test]), {}))
    assert "rounds of 2 cells (2 min, in another order each round) until 1 round" in text


def test_plan_mode_says_what_is_read_back_and_its_time():
    test = {"base": "integrity", "purge": False, "active_range_pct": 50}
    lines = plan_text.describe(make([test]), {"S1": "/dev/x"})
    assert "S1: would erase /dev/x" in lines[1]
    assert "1. integrity: no purge, write the ActiveRange of 50 % and read it back, 2 times; 31 min" in lines[2]
    asked = {"reset": True, "low_power": True, "pause_s": 120}
    reset = plan_text.describe(make([{**test, "integrity": asked}]), {"S1": "/dev/x"})
    rests = "after a reset of its controller and a pause of 2 min in a power state without I/O"
    assert f"read it back {rests}, 2 times;" in reset[2]
    later = plan_text.describe(make([{**test, "integrity": {"pause_s": 7200}}]), {"S1": "/dev/x"})
    assert "and read it back after a pause of 2 h, 2 times; 4 h 31 min" in later[2]


def test_plan_mode_says_what_a_verified_fill_costs():
    """It writes as much as any other; to read one pass back takes as long as to write it."""
    plain = {"name": "x", "purge": False, "precondition": {"passes": 2}, "cells": [CELL], "rounds": {"max": 1}}
    verified = {**plain, "precondition": {"passes": 2, "verify": True}}
    capacity_s = 480_103_981_056 / (500 << 20)
    assert times([verified])[0] - times([plain])[0] == pytest.approx(capacity_s, abs=0.2)
    lines = plan_text.describe(make([verified]), {"S1": "/dev/x"})
    assert "1. x: no purge, precondition 2 x the ActiveRange of 100 %, the last pass read back, rounds of" in lines[2]
    assert lines[3] == "       reading back takes at most 15 min of it, and both directions 4 min of a CPU"
    assert not any("read back" in line or "reading back" in line for line in plan_text.describe(make([plain]), {}))


def test_plan_mode_says_which_self_test_the_drive_does():
    lines = plan_text.describe(make(["self-test-short", "self-test-extended"]), {"S1": "/dev/x"})
    assert "S1: would use /dev/x" in lines[1]
    assert "1. self-test-short: no purge, the drive's own self-test (short); 0 s to 2 min" in lines[2]
    assert "2. self-test-extended: no purge, the drive's own self-test (extended); 0 s to 15 min" in lines[3]


def test_a_plan_that_only_reads_does_not_claim_to_erase():
    test = {"name": "x", "cells": [{"block_size": "4KiB", "read_pct": 100}], "purge": False, "precondition": False}
    assert "would use /dev/x" in plan_text.describe(make([test]), {"S1": "/dev/x"})[1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (240, "4 min"),
        (3599, "1 h"),
        (3600, "1 h"),
        (7800, "2 h 10 min"),
        (86400, "24 h"),
        (273600, "3 d 4 h"),
    ],
)
def test_durations(seconds, text):
    assert units.plan_duration(seconds) == text


def several(count, parallel=1, change=lambda number, drive: drive):
    test = {"name": "x", "cells": [CELL], "rounds": {"max": 5}, "purge": False, "precondition": False}
    plan = make([test])
    drives = [change(number, dataclasses.replace(plan.drives[0], drive=f"S{number}")) for number in range(count)]
    return dataclasses.replace(plan, drives=drives, parallel_drives=parallel)


def test_drives_with_the_same_plan_share_its_lines():
    lines = plan_text.describe(several(24), {f"S{number}": f"/dev/nvme{number}n1" for number in range(24)}, [])
    assert lines[1] == "  would erase 24 drives (MTFDXYZ, firmware F1, 480.1 GB, 512 B blocks):"
    named = [pair.strip() for line in lines if line.startswith("    S") for pair in line.split(",") if pair]
    assert named == [f"S{number} /dev/nvme{number}n1" for number in range(24)] and len(lines) < 14, lines
    assert lines.count("  each of these 24 drives:") == 1 == len([line for line in lines if "1. x: " in line])


def test_96_drives_fit_a_screen():
    """Four servers of 24 drives: each drive by its name and device, each host by a line, and the fleet by one."""
    before = plan_text.HostsBefore({}, [])
    lines = []
    for host in range(4):
        paths = {f"S{number}": f"/dev/nvme{number}n1" for number in range(24)}
        plan = dataclasses.replace(several(24, 24), host=f"rack1-{host}")
        seen = {"size_bytes": 480 * GB, "seconds": 0.1, "whole": False, "seen_bytes": 51_000_000, "aimed_blocks": 0}
        looks = {drive: Look(blocks=1000, allocated_bytes=len(drive) * GB, **seen) for drive in paths}
        used = "writes 960 GB, 1 % of its rated 96 TB ({} % used, by its own count)"
        wear = {drive: used.format(len(drive)) for drive in paths}
        worn = [plan_totals.Worn(480 * GB, 960 * GB, 96_000 * GB)] * 24
        lines += plan_text.describe(plan, paths, [], None, looks, wear, None, worn, before)
    lines += plan_totals.fleet_lines(before.totals, datetime.datetime(2026, 11, 28, 20, 0))
    assert len(lines) <= 50 and max(map(len, lines)) < 200, "\n".join(lines)
    assert sum(line.count("/dev/nvme") for line in lines) == 96
    assert lines.count("  each of these 24 drives: the same tests and times as on rack1-0") == 3
    whole = "5 min, 24 at a time; writes at most 23.04 TB, 1 % of a drive's rated life"
    assert lines.count(f"  all 24 drives: {whole}") == 4
    assert lines[-1] == (
        "All 96 drives of 4 hosts: 5 min, done by 2026-11-28 20:05 UTC if it starts now; writes at most 92.16 TB, "
        "1 % of a drive's rated life"
    )
    assert any("(2 to 3 % used, by its own count)" in line for line in lines)


def test_a_drive_with_another_plan_has_its_own():
    def change(number, drive):
        return drive if number != 1 else dataclasses.replace(drive, tests=[*drive.tests, drive.tests[0]])

    lines = plan_text.describe(several(3, change=change), {}, [])
    alone = lines.index(next(line for line in lines if line.startswith("  S1: ")))
    assert lines[1].startswith("  S0: ") and lines[2].startswith("  S2: ") and "each of these 2 drives" in lines[3]
    assert lines[alone + 1].startswith("    1. x: ") and lines[alone + 2].startswith("    2. x: ")


def test_what_each_drive_tells_of_itself_stands_at_its_name():
    def told(*texts):
        worn = {f"S{number}": text for number, text in enumerate(texts)}
        lines = plan_text.describe(several(len(texts)), dict.fromkeys(worn, "/dev/x"), [], wear=worn)
        return [line.split(",")[0].strip() for line in lines if "wear" in line]

    assert told("wear 1", "wear 2") == ["wear 1", "wear 2"] and told("wear 1", "wear 1") == ["wear 1"]
    # Of three and more that differ in numbers alone, the least and the most.
    assert told("wear 1", "wear 12", "wear 1") == ["wear 1 to 12"] and told(*["wear 1"] * 3) == ["wear 1"]
    assert told("wear 1", "wear 2", "no wear") == ["wear 1", "wear 2", "no wear"]


@pytest.mark.parametrize(
    ("count", "parallel", "told"),
    [
        (1, 1, None),
        (24, 1, "  all 24 drives: 2 h 1 min, 1 at a time"),
        # Nobody knows which drive comes last: 6 rounds of four drives, or 7 less a quarter.
        (24, 4, "  all 24 drives: 30 min to 34 min, 4 at a time"),
        (2, 4, "  all 2 drives: 5 min, 2 at a time"),
    ],
)
def test_the_time_of_all_drives_of_a_host(count, parallel, told):
    last = plan_text.describe(several(count, parallel), {}, [])[-1]
    assert last == told if told else last.startswith("    in all ")
