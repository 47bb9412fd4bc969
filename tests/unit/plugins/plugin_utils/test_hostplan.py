# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils import hostplan, schema

DEFAULTS = {name: schema.role_default(name) for name in hostplan.VARIABLES}
DRIVE = {
    "drive": "S1",
    "selector": {"serial": "S1"},
    "identity": {"serial": "S1", "size_bytes": 1 << 30, "logical_block_size_bytes": 4096, "path": "/dev/nvme0n1"},
}


def build(**changes):
    values = dict(DEFAULTS, **changes)
    return hostplan.build(values, run={"id": "r", "name": "n"}, host="h", boot_id="b", drives=[DRIVE], engine_version="1")


def test_the_defaults_tune_what_the_seeds_ask_for():
    tune = build(ssd_plan=["wsat"])["tune"]
    assert tune["cpu_dma_latency_us"] == 0 and tune["services_stopped"] == ["irqbalance"] and tune["keep"] is False
    assert [(item["name"], item["value"]) for item in tune["sysfs"]] == [
        ("governor", "performance"),
        ("scheduler", "none"),
        ("nomerges", "2"),
        ("rq_affinity", "2"),
        ("add_random", "0"),
    ]
    assert all(item["path"].startswith("/sys/") for item in tune["sysfs"])


@pytest.mark.parametrize(
    "step, purge, precondition, keep",
    [("purge", "overwrite", False, False), ("precondition", "none", True, False)],
)
def test_a_step_alone_measures_nothing(step, purge, precondition, keep):
    plan = build(ssd_step=step, purge_method="overwrite")
    ((test,),) = [drive["tests"] for drive in plan["drives"]]
    assert (test["purge"]["method"], bool(test["precondition"]), test["cells"], plan["tune"]["keep"]) == (purge, precondition, [], keep)


def test_tuning_alone_touches_no_drive_and_holds_nothing_open():
    plan = build(ssd_step="tune")
    assert [drive["tests"] for drive in plan["drives"]] == [[]]
    assert plan["tune"]["keep"] is True and plan["tune"]["cpu_dma_latency_us"] is None


def test_what_is_not_asked_for_is_not_in_the_plan():
    tune = build(ssd_plan=["wsat"], tune_governor="", tune_queue={}, tune_services_stopped=[], tune_cpu_dma_latency_us=None)["tune"]
    assert tune == {"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False}
