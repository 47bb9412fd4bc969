# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory
from ansible_collections.ssdlab.fleet.plugins.modules import iomemory as iomemory_module
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs, json_schema, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan, purge_values
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"purge_method": None, "purge_timeout_s": None, "purge_lba_size_bytes": ""},
        {
            "purge_method": "nvme_format_crypto",
            "purge_lba_size_bytes": 4096,
            "purge_timeout_s": "600",
            "purge_iomemory_size_pct": 90,
        },
        {"purge_method": "none"},
    ],
)
def test_right_values(asked):
    assert purge_values.problems(asked) == []


@pytest.mark.parametrize(
    "asked, problem",
    [
        ({"purge_method": "nvme_format_cripto"}, "purge_method: 'nvme_format_cripto' must be one of: auto, "),
        ({"purge_method": "nvme_format_cripto"}, "did you mean nvme_format_crypto?"),
        ({"purge_method": ["auto"]}, "purge_method: ['auto'] must be one of"),
        ({"purge_timeout_s": 0}, "purge_timeout_s: 0 must be a whole number from 1 to 100000000, or null"),
        ({"purge_stuck_s": "soon"}, "purge_stuck_s: 'soon' must be"),
        ({"purge_lba_size_bytes": 4}, "purge_lba_size_bytes: 4 must be a whole number from 512"),
        ({"purge_iomemory_size_pct": 70}, "purge_iomemory_size_pct: 70 must be"),
        ({"purge_iomemory_sector_bytes": True}, "purge_iomemory_sector_bytes: True must be"),
        ({"purge_iomemory_sector_bytes": 1024}, "purge_iomemory_sector_bytes: 1024 must be one of: 512, 4096, or null"),
    ],
)
def test_wrong_values_are_told_with_what_is_right(asked, problem):
    (found,) = purge_values.problems(asked)
    assert problem in found


@pytest.mark.parametrize(
    "given, variables, expected",
    [
        ({"method": "auto"}, {}, {"method": "auto"}),
        (
            {"method": "auto"},
            {"purge_method": "overwrite", "purge_timeout_s": "60"},
            {"method": "overwrite", "timeout_s": 60},
        ),
        (
            {"method": "deallocate", "timeout_s": 5},
            {"purge_method": "overwrite", "purge_timeout_s": 60},
            {"method": "deallocate", "timeout_s": 5},
        ),
        ({"method": "none"}, {"purge_lba_size_bytes": 4096}, {"method": "none"}),
        ({"method": "auto"}, {"purge_method": "none", "purge_lba_size_bytes": 4096}, {"method": "none"}),
        (
            {"method": "auto", "lba_size_bytes": 512},
            {"purge_lba_size_bytes": 4096},
            {"method": "auto", "lba_size_bytes": 512},
        ),
    ],
)
def test_a_test_file_goes_before_the_variables(given, variables, expected):
    assert purge_values.spec(PlannedPurge(**given), variables) == PlannedPurge(**expected)


def test_every_variable_is_carried_into_the_plan_and_has_a_default():
    assert set(purge_values.VARIABLES) <= set(hostplan.VARIABLES)
    for variable in purge_values.VARIABLES:
        assert argument_specs.default(variable) in (None, "auto")


def test_schemas_and_role_know_every_method_and_option():
    test = schema.load("test")["properties"]["purge"]["properties"]
    plan = json_schema.of(PlannedPurge)["properties"]
    options = set(purge_values.OPTIONS)
    assert set(methods.METHODS) <= set(test["method"]["enum"]) == set(argument_specs.choices("purge_method"))
    assert options == set(test) - {"method"} and options <= set(plan)


def test_a_test_gives_up_the_block_size_of_its_base():
    """What a base says of its purge is merged key by key; null is how a test on other drives gets rid of it."""
    purge = {"method": "deallocate", "lba_size_bytes": None}
    (test,) = load_plan([{"base": "iomemory-guide/iomemory-write-bandwidth", "purge": purge}])
    assert purge_values.spec(test.purge, {}) == PlannedPurge("deallocate")
    assert purge_values.spec(test.purge, {"purge_lba_size_bytes": 512}).lba_size_bytes == 512


def test_the_size_of_a_card_has_one_range_for_a_purge_and_one_for_the_tool():
    """A purge leaves a card as large as the guide's presets or larger (test.schema.json); fio-format takes any size."""
    asked = schema.load("test")["properties"]["purge"]["properties"]["iomemory_size_pct"]
    planned = json_schema.of(PlannedPurge)["properties"]["iomemory_size_pct"]
    least, most = asked["minimum"], asked["maximum"]
    assert (planned["minimum"], planned["maximum"]) == (least, most)
    assert iomemory.LEAST_SIZE_PCT <= least and most == iomemory.MOST_SIZE_PCT
    told = argument_specs.option("purge_iomemory_size_pct")["description"]
    module = yaml.safe_load(iomemory_module.DOCUMENTATION)["options"]["size_pct"]["description"]
    assert f"{least} to {most}" in told and f"A purge takes {least} to {most}" in module
    assert f"{iomemory.LEAST_SIZE_PCT} to {iomemory.MOST_SIZE_PCT} per cent" in module
    page = (schema.COLLECTION / "docs/tuning.md").read_text(encoding="utf-8")
    assert f"beyond {iomemory.LEAST_SIZE_PCT} to {iomemory.MOST_SIZE_PCT}" in page
    assert f"`purge_iomemory_size_pct` ({least} to {most})" in page
