# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import tuning, tuning_values
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

VARIABLES = (*tuning.VARIABLES, *tuning.BOOT_VARIABLES)
DEFAULTS = {name: argument_specs.default(name) for name in VARIABLES}
SNAPSHOT = host_answers.snapshot(
    {
        "cpu": {"online": "0-7"},
        "numa": {"nodes": {"0": {}, "1": {}}},
        "tunables": {"governors": ["performance", "schedutil"]},
    }
)


def test_the_defaults_are_right_and_so_are_their_texts():
    assert tuning_values.problems(DEFAULTS) == []
    texts = {name: str(value) for name, value in DEFAULTS.items() if isinstance(value, (int, bool))}
    assert texts and tuning_values.problems(texts) == []


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("tune_governor", "Performance!", "tune_governor: 'Performance!' must be a word"),
        ("tune_governor", ["performance"], "must be a word"),
        ("tune_turbo", "fast", "must be one of: on, off, ''"),
        ("tune_frequency", 3000, "must be one of: highest"),
        ("tune_cpu_dma_latency_us", -1, "must be a whole number of microseconds"),
        ("tune_cpu_dma_latency_us", 2**31, "must be a whole number of microseconds up to 2147483647"),
        ("tune_idle_states_above_us", "deep", "must be a whole number of microseconds"),
        ("tune_aspm_policy", "off", "must be one of: performance"),
        ("tune_interrupt_cores", "all", "must be auto, or a whole number"),
        ("tune_interrupt_cores", None, "must be auto, or a whole number"),
        ("tune_cpu_limits", [{"cpus": 8}], "must be a list of mappings"),
        ("tune_cpu_limits", [{"model": "*", "cpus": 0}], "must be a list of mappings"),
        ("tune_write_cache", "auto", "must be one of: leave"),
        ("tune_plp_models", "M*", "must be a list"),
        ("tune_services_stopped", ["a b"], "must be a list of names of systemd units"),
        ("tune_services_stopped", ["tuned", "a b"], "such as irqbalance or apt-daily.timer; wrong: 'a b'"),
        ("tune_updates_stopped", "apt-daily.timer", "must be a list of names of systemd units"),
        ("tune_vm", {"dirty_ratio": 10, "dirty_bytes": 5}, "exclude each other"),
        ("tune_vm", {"swappiness": "much"}, "tune_vm.swappiness: 'much' must be a whole number"),
        ("tune_vm", {"overcommit_memory": 1}, "is not one of: swappiness"),
        ("tune_vm", 5, "must be a mapping of names below /proc/sys/vm"),
        ("tune_queue", {"Scheduler": "none"}, "only a-z and _"),
        ("tune_queue", {"scheduler": None}, "must be a word or a whole number"),
        ("tune_queue", {"scheduler": ""}, "must be a word or a whole number"),
        ("tune_queue", {"scheduler": "none\n"}, "must be a word or a whole number"),
        ("tune_queue", {"nr_requests": 64.5}, "must be a word or a whole number"),
        ("tune_cpu_limits", [{"model": None, "cpus": 8}], "must be a list of mappings"),
        ("tune_boot_arguments", ["idle=poll; reboot"], "without spaces and quotes"),
        ("tune_reboot_timeout_s", 300, "at least 900"),
        ("tune_smt_enabled", "maybe", "must be true or false"),
        ("tune_energy_performance_preference", "balance_power", "cannot be used with the governor performance"),
    ],
)
def test_a_bad_value_is_told_in_words(name, value, says):
    (problem,) = tuning_values.problems(dict(DEFAULTS, **{name: value}))
    assert problem.startswith(name) and says in problem


def test_a_huge_value_does_not_make_a_huge_message():
    for name in DEFAULTS:
        assert all(
            len(problem) < 600 for problem in tuning_values.problems(dict(DEFAULTS, **{name: [{"x" * 1000: 1}] * 1000}))
        )


@pytest.mark.parametrize(
    "name, value",
    [("tune_turbo", False), ("tune_runtime_power", True), ("tune_governor", None), ("tune_cpu_dma_latency_us", "")],
)
def test_what_yaml_makes_of_on_off_and_nothing_is_understood(name, value):
    assert tuning_values.problems(dict(DEFAULTS, **{name: value})) == []


@pytest.mark.parametrize(
    "asked, drives, says",
    [
        (
            {"tune_governor": "schedutl"},
            [],
            (
                "",
                (
                    "tune_governor: this host has no governor 'schedutl' (it has: performance, schedutil); did you "
                    "mean "
                    "schedutil?"
                ),
            ),
        ),
        (
            {},
            [{"serial": "A", "cpus": "0-9"}],
            ("A", "cpus: CPU 8-9 does not exist or is offline; this host has the CPUs 0-7"),
        ),
        ({}, [{"serial": "A", "cpus": "3-1"}], ("A", "cpus: '3-1': the range 3-1 runs backwards")),
        ({}, [{"serial": "A", "numa_node": 2}], ("A", "numa_node: there is no node 2; this host has 0, 1")),
        (
            {"ssd_parallel_drives": "2"},
            [{"serial": "A", "cpus": "0-3"}, {"serial": "B", "cpus": "2-5"}],
            ("B", "cpus: CPU 2-3 is also given to drive A, and both may run at the same time (ssd_parallel_drives)"),
        ),
    ],
)
def test_what_a_host_cannot_do_is_found_before_the_run(asked, drives, says):
    assert tuning_values.host_problems(asked, SNAPSHOT, [parse(drive) for drive in drives]) == [says]


@pytest.mark.parametrize(
    "asked, drives",
    [
        ({"tune_governor": "performance"}, [{"serial": "A", "cpus": "0-7", "numa_node": 1}]),
        ({"tune_governor": "none", "tune_cpu_enabled": False}, []),
        ({"ssd_parallel_drives": "auto"}, [{"serial": "A", "cpus": "0-3"}]),
        ({"ssd_parallel_drives": 1}, [{"serial": "A", "cpus": "0-3"}, {"serial": "B", "cpus": "2-5"}]),
        ({}, ["nonsense"]),
        ({}, [{"nonsense": 1}]),
    ],
)
def test_what_it_can_do_is_no_finding(asked, drives):
    assert tuning_values.host_problems(asked, SNAPSHOT, [parse(drive) for drive in drives]) == []


def test_a_host_that_told_nothing_is_not_judged():
    assert tuning_values.host_problems({"tune_governor": "x"}, None, []) == []
