# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of a drive's preferred write size: which size that is, their names, what is tracked, and what the plan says."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import cells, time_estimates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_plans, plan_text, wear
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import known, planned, typed

OWN = {"access": "random", "block_size": "preferred", "read_pct": 0, "threads": 4, "queue_depth": 32}
SMALL = {**OWN, "block_size": "4KiB"}
TRACKED = {"tracked": [{"block_size": "preferred", "metric": "write_iops"}]}
BOTH = {"name": "both", "cells": [SMALL, OWN], "steady_state": TRACKED}
NAME = "rand-preferred-w100-tc4-qd32"


def plan(test, *minimum_bytes, block=512, **variables):
    drives = [
        {
            "selector": {"serial": f"S{number}"},
            "identity": {
                "serial": f"S{number}",
                "size_bytes": 1 << 40,
                "logical_block_size_bytes": block,
                "physical_block_size_bytes": block,
                "minimum_io_size_bytes": told,
            },
        }
        for number, told in enumerate(minimum_bytes)
    ]
    done = planned(load_plan([test] if isinstance(test, dict) else test), drives=drives, **variables)
    documents.validate(done, "plan")
    return done


def rendered(test, *minimum_bytes, **more):
    return [drive["tests"][0] for drive in plan(test, *minimum_bytes, **more)["drives"]]


@pytest.mark.parametrize(
    ("told", "block", "expected"),
    [
        (16_384, 512, 16_384),  # NPWG of a drive that maps 16 KiB
        (16_384, 4_096, 16_384),
        (512, 512, 4_096),  # an NVMe drive without NPWG, a loop device: its logical block is no preference
        (4_096, 512, 4_096),  # 512e
        (None, 512, 4_096),
        (None, 8_192, 8_192),
        (0, 4_096, 4_096),
    ],
)
def test_the_size_is_what_the_kernel_was_told_and_at_least_4_kib(told, block, expected):
    identity = known(size_bytes=1 << 40, logical_block_size_bytes=block, minimum_io_size_bytes=told)
    assert cells.preferred_size_bytes(identity) == expected


def test_each_drive_has_its_own_size_and_drives_of_one_size_the_same_names():
    first, second, other = rendered(BOTH, 16_384, 16_384, 65_536)
    assert first["cells"] == second["cells"] and first["steady_state"] == second["steady_state"]
    assert [(cell["id"], cell["block_size_bytes"], cell.get("preferred")) for cell in first["cells"]] == [
        ("rand-4k-w100-tc4-qd32", 4_096, None),
        ("rand-16k-w100-tc4-qd32", 16_384, NAME),
    ]
    assert [cell["id"] for cell in other["cells"]] == ["rand-4k-w100-tc4-qd32", "rand-64k-w100-tc4-qd32"]
    assert first["steady_state"]["tracked"] == [{"cell": "rand-16k-w100-tc4-qd32", "metric": "write_iops"}]
    assert first["not_applicable"] == []


def test_the_job_writes_that_size():
    (test,) = rendered({"name": "one", "cells": [OWN], "precondition": False}, 16_384)
    (cell,) = test["cells"]
    assert fio_sanity.sections(cell["job"])[cell["id"]]["bs"] == "16384"


def test_where_it_is_the_size_of_another_cell_that_one_stands_for_both():
    (test,) = rendered(BOTH, 512)
    assert [cell["id"] for cell in test["cells"]] == ["rand-4k-w100-tc4-qd32"]
    assert test["steady_state"]["tracked"] == [{"cell": "rand-4k-w100-tc4-qd32", "metric": "write_iops"}]
    assert test["not_applicable"] == [
        {"id": NAME, "reason": "the drive prefers writes of 4 KiB, which is cell rand-4k-w100-tc4-qd32"}
    ]


def test_a_matrix_may_have_it_among_its_sizes():
    matrix = {"block_size": ["4KiB", "preferred", "1MiB"], "read_pct": [100, 0]}
    (test,) = rendered({"name": "m", "matrix": matrix}, 32_768)
    assert [cell["id"].rsplit("-", 2)[0] for cell in test["cells"]] == [
        f"rand-{size}-{share}" for share in ("r100", "w100") for size in ("4k", "32k", "1024k")
    ]


def test_each_cell_makes_tests_of_one_name_on_every_drive():
    each = {"name": "each", "each_cell": True, "cells": [SMALL, OWN]}
    names = ["each-rand-4k-w100", "each-rand-preferred-w100"]
    assert [test.name for test in load_plan([each])] == names


def definitions(*asked):
    return digests.digests_of_tests(typed(plan(*asked)))


def test_a_format_changes_neither_the_size_nor_the_definition_of_a_run():
    purge = {"method": "nvme_format_user_data", "lba_size_bytes": 4_096}
    (test,) = rendered({**BOTH, "purge": purge}, 16_384)
    assert [cell["block_size_bytes"] for cell in test["cells"]] == [4_096, 16_384]
    # After it the drive may prefer another size: whoever looks at the run again has to find the same test.
    assert definitions(BOTH, 16_384) == definitions(BOTH, 65_536)
    assert definitions(BOTH, 16_384) != definitions({**BOTH, "cells": [OWN]}, 16_384)


def test_hosts_whose_drives_prefer_other_sizes_have_one_definition():
    (about,) = (host_plans.about_test(test) for test in load_plan([BOTH]))
    assert about["cells"] == ["rand-4k-w100-tc4-qd32", NAME]
    assert about["tracked"] == [{"cell": NAME, "metric": "write_iops"}]


def test_plan_mode_says_the_size_and_counts_its_bytes():
    limited = {"name": "one", "cells": [{**OWN, "rate_iops": 1000}], "precondition": False, "rounds": {"max": 1}}
    done = typed(plan(limited, 16_384))
    assert "       the drive prefers writes of 16 KiB" in plan_text.describe(done, {})
    least, most = wear.of_drive(done.drives[0])
    assert least == 0 and 1000 * 16_384 * 60 <= most < 1000 * 16_384 * 61


@pytest.mark.parametrize(
    ("test", "told", "says"),
    [
        ({"name": "a", "cells": [{**OWN, "block_size": "prefered"}]}, 512, "or preferred: what the drive says"),
        (
            {"name": "a", "cells": [SMALL], "steady_state": TRACKED},
            512,
            "the test has no cell with block_size preferred",
        ),
        ({"name": "a", "cells": [OWN, OWN]}, 512, f"cell {NAME}: is in the test twice"),
        ({"name": "a", "cells": [OWN]}, 1 << 40, "do not fit into the ActiveRange"),
        ({"name": "a", "cells": [OWN]}, 5_000, "block size 5000 B is not a multiple of the drive's logical block size"),
        (
            {"name": "a", "cells": [SMALL, OWN], "steady_state": {"tracked": [{"metric": "write_iops"}]}},
            512,
            "name block_size too",
        ),
        ({"name": "a", "precondition": {"block_size": "preferred"}, "cells": [OWN]}, 512, "precondition.block_size"),
    ],
)
def test_what_can_not_be_is_told(test, told, says):
    with pytest.raises(PlanError) as caught:
        plan(test, told)
    assert says in str(caught.value)


def test_4_kib_tracks_no_cell_of_another_size():
    tracked = {"tracked": [{"block_size": "4KiB", "metric": "write_iops"}]}
    (test,) = rendered({**BOTH, "steady_state": tracked}, 16_384)
    assert [item["cell"] for item in test["steady_state"]["tracked"]] == ["rand-4k-w100-tc4-qd32"]


def test_the_shipped_test_reaches_both_steady_states_by_themselves():
    own, small = load_plan(["preferred-writes"])
    assert [cell.id for cell in own.cells] == [NAME] and small.follows == own.name
    assert own.precondition.passes == 2 and not small.precondition
    for test in (own, small):
        assert time_estimates.window_s(test) >= 1800 and test.steady_state.settle_s == 1800
