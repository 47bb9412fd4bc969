# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight asks a host, by the host's variables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import examine, host_checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import service_drives as checks_service_drives
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import run_info
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import examine_arguments, service_drives

ROLES = Path(__file__).resolve().parents[5] / "roles"
UNSET = "unset"
OPTIONS = {
    "run_info": run_info,
    "host_info": facts,
    "drive_facts": drive_facts,
    "host_checks": host_checks,
    "service_drives": checks_service_drives,
}


def asked(**more):
    """A host's variables: the defaults of the roles."""
    defaults = {}
    for role in ("ssd", "preflight"):
        defaults.update(yaml.safe_load((ROLES / role / "defaults/main.yml").read_text(encoding="utf-8")))
    return {**defaults, "ssd_drives": [{"serial": "A1"}], **more}


def test_every_option_of_a_part_exists():
    # A host with drives of either kind.
    parts = service_drives.parts(asked(ssd_service_drives="all"), UNSET)
    assert set(parts) == {*examine.PARTS, examine.SERVICE} == set(OPTIONS)
    for part, options in parts.items():
        assert set(options) <= set(OPTIONS[part].OPTIONS), part
    # The rest are no preflight's: one run, discovery, and the drives that may be read, which the host knows.
    left = {(part, name) for part in parts for name in OPTIONS[part].OPTIONS if name not in parts[part]}
    assert {name for part, name in left if part != "run_info"} == {"discover", "readable", "passing_programs"}


def test_an_empty_answer_of_a_survey_is_an_empty_mapping():
    """Preflight takes it, so the module on the host has to."""
    given = {f"preflight_{name}": "" for name in examine_arguments.MAPPINGS}
    told = examine_arguments.parts(asked(**given), UNSET)["host_checks"]
    assert {name: told[name] for name in examine_arguments.MAPPINGS} == dict.fromkeys(examine_arguments.MAPPINGS, {})


@pytest.mark.parametrize(("traffic", "warm_up", "seconds"), [(1, 0, 1), (1, 1200, 1200), (5, "3", 5), (0, 0, 0)])
def test_the_drives_are_read_for_the_traffic_or_the_warm_up_whichever_is_longer(traffic, warm_up, seconds):
    variables = asked(preflight_traffic_s=traffic, preflight_warm_up_s=warm_up)
    assert examine_arguments.parts(variables, UNSET)["host_checks"]["traffic_s"] == seconds


@pytest.mark.parametrize("given", [None, "all", {"serial": "A1"}])
def test_a_host_whose_drives_are_no_list_is_not_asked_for_them(given):
    assert set(examine_arguments.parts(asked(ssd_drives=given), UNSET)) == {"run_info", "host_info"}


@pytest.mark.parametrize(
    ("cache", "enabled", "chosen"),
    [(UNSET, UNSET, False), ("leave", True, False), ("off", UNSET, True), ("off", "no", False), ("off", True, True)],
)
def test_a_write_cache_counts_as_chosen_where_tune_sets_it(cache, enabled, chosen):
    variables = asked(tune_write_cache=cache, tune_write_cache_enabled=enabled)
    assert examine_arguments.parts(variables, UNSET)["host_checks"]["write_cache_chosen"] is chosen


def test_a_value_that_is_no_number_is_left_to_the_other_checks():
    variables = asked(ssd_parallel_drives="many", preflight_traffic_s=None)
    given = examine_arguments.parts(variables, UNSET)["host_checks"]
    assert (given["parallel_drives"], given["traffic_s"]) == (1, 0)


def test_with_auto_links_are_checked_for_one_drive_as_no_more_run_than_they_carry():
    variables = asked(ssd_parallel_drives="auto", ssd_drives=[{"serial": "A"}, {"serial": "B"}])
    assert examine_arguments.parts(variables, UNSET)["host_checks"]["parallel_drives"] == 1


@pytest.mark.parametrize(
    ("given", "prepared"),
    [
        ({}, False),
        ({"tune_boot_enabled": "no", "vendor_rssdm": [], "vendor_iomemory_dma_delay": ""}, False),
        ({"tune_boot_enabled": True}, True),
        ({"vendor_rssdm": [{"serial": "A1"}]}, True),
        ({"vendor_iomemory": [{"serial": "A1"}]}, True),
        ({"vendor_iomemory_dma_delay": 0}, True),
        ({"vendor_iomemory_dma_delay": "5"}, True),
        ({"vendor_iomemory_pci_check": "yes"}, True),
    ],
)
def test_a_host_is_prepared_where_a_variable_asks_for_it(given, prepared):
    assert examine_arguments.prepares(given) is prepared


@pytest.mark.parametrize(
    "given, engines",
    [
        ("libaio", ["libaio"]),
        ("io_uring_fixed", ["io_uring_fixed"]),
        ("io_uring_polled", ["io_uring"]),
        ("such", []),
        (UNSET, ["libaio"]),
    ],
)
def test_the_engine_of_the_plan_is_tried(given, engines):
    host_info = examine_arguments.parts(asked(workload_ioengine=given), UNSET)["host_info"]
    assert host_info["fio_engines"] == engines


@pytest.mark.parametrize("given", [["fio", "blkid"], "fio, blkid", ["fio", "blkid", "mdadm"]])
def test_what_a_test_may_take_is_asked_for_too(given):
    assert examine_arguments.parts(asked(preflight_tools=given), UNSET)["host_info"]["tools"] == [
        "fio",
        "blkid",
        "mdadm",
    ]
