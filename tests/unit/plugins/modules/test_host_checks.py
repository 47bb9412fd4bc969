# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_checks on this machine: arguments in, findings out."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import host_checks as checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.modules import host_checks
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import examine_arguments


@pytest.fixture
def call(capsys):
    """Run the module with arguments; returns its result."""

    def run(**arguments):
        with patch_module_args(arguments):
            with pytest.raises(SystemExit):
                host_checks.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_findings_and_what_passed_are_all_checks(call):
    result = call(drives=[{"serial": "no such drive"}, "not an entry"], min_cpus=100000, versions={"kernel": "1.*"})
    assert result["changed"] is False and {finding["check"] for finding in result["findings"]} >= {
        "cpu_count",
        "versions",
    }
    fired = {finding["check"] for finding in result["findings"]}
    assert fired | set(result["passed"]) >= {check.check for check in table.TABLE} and not fired & set(result["passed"])
    assert {"cpu", "memory", "bios", "kernel", "command_line", "tools", "pcie", "numa", "tunables", "drivers"} == set(
        result["snapshot"]
    )


def test_the_inventory_chooses_levels(call):
    def level(**levels):
        return [
            finding["level"]
            for finding in call(min_cpus=100000, levels=levels)["findings"]
            if finding["check"] == "cpu_count"
        ]

    assert (level(), level(cpu_count="blocks"), level(cpu_count="ok")) == (["warning"], ["blocks"], ["ok"])


def test_the_documentation_and_the_role_preflight_have_the_defaults_that_count():
    documented = yaml.safe_load(host_checks.DOCUMENTATION)["options"]
    for name, option in checks.OPTIONS.items():
        assert {key: documented[name].get(key) for key in option} == option, name
        if name in (*examine_arguments.MAPPINGS, *checks.LIMITS):
            assert argument_specs.default(f"preflight_{name}") == option["default"], name
    assert set(documented) == set(checks.OPTIONS)
