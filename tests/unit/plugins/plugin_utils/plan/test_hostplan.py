# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Tune
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan, tuning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found

DEFAULTS = {name: argument_specs.default(name) for name in hostplan.VARIABLES}
DRIVE = {
    "drive": "S1",
    "selector": {"serial": "S1"},
    "identity": {"serial": "S1", "size_bytes": 1 << 30, "logical_block_size_bytes": 4096, "path": "/dev/nvme0n1"},
}

SWITCHES = tuple(f"tune_{name}_enabled" for name in tuning.CONCERNS)


def build(**changes):
    values = dict(DEFAULTS, **changes)
    plan = hostplan.build(
        values,
        hostplan.load_tests(values),
        run={"id": "r", "name": "n"},
        host="h",
        boot_id="b",
        drives=found([DRIVE]),
        engine_version="1",
    )
    return base.sparse_json(plan)


def test_the_defaults_tune_what_the_seeds_ask_for():
    tune = build(ssd_plan=["wsat"])["tune"]
    assert tune["cpu_dma_latency_us"] == 0 and tune["keep"] is False
    assert {"irqbalance", "tuned", "ondemand", "unattended-upgrades", "apt-daily.timer"} <= set(
        tune["services_stopped"]
    )
    named = {item["name"]: item["value"] for item in tune["sysfs"]}
    asked = {
        "governor": "performance",
        "aspm_policy": "performance",
        "scheduler": "none",
        "nomerges": "2",
        "rq_affinity": "2",
        "add_random": "0",
    }
    asked["runtime_power"] = "on"
    assert {name: named.get(name) for name in asked} == asked and "smt" not in named and "turbo" not in named
    assert all(item["path"].startswith(("/sys/", "/proc/sys/vm/")) for item in tune["sysfs"])
    assert (tune["interrupts"], tune["write_cache"]["state"]) == ({"cores": "auto"}, "leave")
    assert {"driver": "mtip32xx", "cpus": 8} in tune["numa"]["limits"]


def test_the_preference_comes_after_the_governor_which_brings_its_own():
    """intel_pstate: out of performance, the governor powersave brings back the preference that it had before."""
    names = [item["name"] for item in build(ssd_plan=["wsat"], tune_governor="powersave")["tune"]["sysfs"]]
    assert names.index("governor") < names.index("energy_performance_preference")


def test_the_highest_frequency_is_also_that_of_the_limit_of_all_cpus_which_comes_first():
    names = [
        item["path"].rpartition("/")[2]
        for item in build(ssd_plan=["wsat"])["tune"]["sysfs"]
        if item["name"] in ("max_perf_pct", "frequency")
    ]
    assert names == ["max_perf_pct", "scaling_max_freq", "scaling_min_freq"]
    assert "max_perf_pct" not in str(build(ssd_plan=["wsat"], tune_frequency="")["tune"])


@pytest.mark.parametrize(
    "step, purge, precondition, keep",
    [("purge", "overwrite", False, False), ("precondition", "none", True, False)],
)
def test_a_step_alone_measures_nothing(step, purge, precondition, keep):
    plan = build(ssd_step=step, purge_method="overwrite")
    ((test,),) = [drive["tests"] for drive in plan["drives"]]
    assert (test["purge"]["method"], bool(test["precondition"]), test["cells"], plan["tune"]["keep"]) == (
        purge,
        precondition,
        [],
        keep,
    )


def test_tuning_alone_touches_no_drive_and_holds_nothing_open():
    plan = build(ssd_step="tune")
    assert [drive["tests"] for drive in plan["drives"]] == [[]]
    assert plan["tune"]["keep"] is True and plan["tune"]["cpu_dma_latency_us"] is None


NOTHING = {
    "keep": False,
    "cpu_dma_latency_us": None,
    "services_stopped": [],
    "sysfs": [],
    "idle_states_above_us": None,
    "interrupts": None,
    "numa": None,
    "write_cache": None,
}


def test_what_is_not_asked_for_is_not_in_the_plan():
    # As -e gives it: a text.
    assert build(ssd_plan=["wsat"], **dict.fromkeys(SWITCHES, "false"))["tune"] == NOTHING


@pytest.mark.parametrize("concern", sorted(tuning.CONCERNS))
def test_a_switch_and_a_tag_take_one_concern_out_or_leave_it_alone(concern):
    on = dict.fromkeys(SWITCHES, True)
    alone = hostplan.tune_spec(
        dict(DEFAULTS, **dict(dict.fromkeys(SWITCHES, False), **{f"tune_{concern}_enabled": True}))
    )
    assert alone != Tune()
    assert hostplan.tune_spec(dict(DEFAULTS, ansible_run_tags=[concern], **on)) == alone
    without = hostplan.tune_spec(dict(DEFAULTS, **dict(on, **{f"tune_{concern}_enabled": False})))
    assert (
        hostplan.tune_spec(dict(DEFAULTS, ansible_run_tags=["all"], ansible_skip_tags=[concern], **on))
        == without
        != alone
    )


def test_the_tag_of_the_kernel_arguments_takes_no_run_time_concern_along():
    assert hostplan.tune_spec(dict(DEFAULTS, ansible_run_tags=["boot"])) == Tune()
    (vm,) = hostplan.tune_spec(dict(DEFAULTS, ansible_run_tags=["boot", "vm"])).sysfs
    assert vm.name == "vm.swappiness"


def test_the_depth_of_a_scsi_device_is_set_like_an_attribute_of_its_queue():
    files = tuning.build(dict(DEFAULTS, tune_queue={"queue_depth": 254, "nr_requests": 512}), ["queue"]).sysfs
    assert {one.path.partition("@ssd_name@/")[2]: one.value for one in files} == {
        "device/queue_depth": "254",
        "queue/nr_requests": "512",
    }


@pytest.mark.parametrize("name", ["tune_queue", "tune_vm"])
def test_a_key_without_a_value_sets_nothing(name):
    assert hostplan.tune_spec(dict(DEFAULTS, **{name: None})) == hostplan.tune_spec(dict(DEFAULTS, **{name: {}}))


def test_settings_that_stay_switch_the_idle_states_off_as_nothing_can_be_held_open():
    assert build(ssd_step="tune")["tune"]["idle_states_above_us"] == 0
    assert build(ssd_plan=["wsat"])["tune"]["idle_states_above_us"] is None


def test_the_plan_holds_to_its_schema_whatever_form_the_values_have():
    plan = build(
        ssd_plan=["wsat"],
        tune_cpu_dma_latency_us="5",
        tune_interrupt_cores="2",
        tune_turbo=False,
        tune_smt_enabled="yes",
        tune_write_cache=False,
    )
    documents.validate(plan, "plan")
    tune = plan["tune"]
    assert (tune["cpu_dma_latency_us"], tune["interrupts"], tune["write_cache"]["state"]) == (5, {"cores": 2}, "off")
    named = [(item["name"], item["value"]) for item in tune["sysfs"]]
    assert ("smt", "off") in named and ("turbo", "1") in named and ("turbo", "0") in named
