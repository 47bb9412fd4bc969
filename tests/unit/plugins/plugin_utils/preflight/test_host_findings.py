# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.table import VIRTUAL_REMEDY
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_findings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers


def finding(check="wear", drive="S1", level="warning", message="m", remedy="r"):
    return {"check": check, "drive": drive, "level": level, "message": message, "remedy": remedy}


def view(*findings, name="h1"):
    return host_answers.of(name, {}, checks=findings)


def test_what_blocks_is_a_finding_with_its_remedy():
    (told,) = host_findings.blocking(view(finding("pcie_link", level="blocks"), finding()), None)
    assert told.text() == "h1: drive S1: pcie_link: m. To fix this: r"
    (told,) = host_findings.blocking(view(finding("versions", None, "blocks")), None)
    assert told.text() == "h1: versions: m. To fix this: r"


@pytest.mark.parametrize(("state", "count"), [("running", 0), ("finished", 0), ("dead", 1), ("stopped", 1)])
def test_a_run_that_has_its_drives_was_judged_when_it_began(state, count):
    run = Run("r", "n", {"h1": state})
    seen = view(finding("pcie_link", level="blocks"), finding())
    assert len(host_findings.blocking(seen, run)) == len(host_findings.warnings([seen], run)) == count


def test_warnings_keep_what_the_inventory_lets_pass_but_do_not_show_it():
    warned = host_findings.warnings(
        [view(finding(), finding("spare", level="ok"), finding("health", level="blocks")), host_answers.of("h2", {})],
        None,
    )
    assert [(item.host, item.check) for item in warned] == [("h1", "wear"), ("h1", "spare")]
    assert host_findings.lines(warned) == ["h1: drive S1: wear: m. To fix this: r"]


def test_what_every_virtual_host_and_drive_is_warned_of_is_one_line():
    def guest(name):
        of_host = [finding(check, None, message=check) for check in ("virtual_machine", "container", "cpufreq")]
        of_drive = [finding(check, message=check, remedy=VIRTUAL_REMEDY) for check in ("pcie_link", "health")]
        return view(*of_host, *of_drive, finding("media_errors", message="3 errors"), name=name)

    bare = view(finding("cpufreq", None, message="none"), name="h3")
    own, frequency, virtual = host_findings.lines(host_findings.warnings([guest("h1"), guest("h2"), bare], None))
    assert own == "h1: drive S1, h2: drive S1: media_errors: 3 errors. To fix this: r"
    assert frequency == "h3: cpufreq: none. To fix this: r"
    assert virtual.startswith(
        "virtual: hosts h1, h2 and 2 drives (virtual_machine, container, cpufreq, pcie_link, health): "
    )
    # One alone says it in its own words.
    (line,) = host_findings.lines(host_findings.warnings([view(finding("virtual_machine", None))], None))
    assert line == "h1: virtual_machine: m. To fix this: r"


def test_one_warning_of_many_drives_or_of_many_checks_is_one_line():
    many = [view(*(finding(drive=f"S{number}") for number in range(4)), name=name) for name in ("h1", "h2")]
    (line,) = host_findings.lines(host_findings.warnings(many, None))
    assert line == "h1: drives S0, S1, S2, S3, h2: drives S0, S1, S2, S3: wear: m. To fix this: r"
    (line,) = host_findings.lines(
        host_findings.warnings([view(finding("cpufreq", None), name=f"h{number}") for number in range(9)], None)
    )
    assert line == "h0, h1, h2, h3, h4 and 4 more: cpufreq: m. To fix this: r"
    shared = view(
        finding("health", message="unread"),
        finding("wear", message="unread", remedy="s"),
        finding("spare", message="unread"),
    )
    assert host_findings.lines(host_findings.warnings([shared], None)) == [
        "h1: drive S1: health, wear, spare: unread. To fix this: r or s"
    ]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, None),
        (
            {
                "preflight_levels": {"pcie_link": "warning", "pcie_bandwidth": "ok"},
                "preflight_link": {"*": {"width": "4"}},
            },
            None,
        ),
        ({"preflight_firmware": {"M*": "1", "*": ["2", ">=3"]}}, None),
        (
            {"preflight_levels": ["pcie_link"]},
            "preflight_levels: ['pcie_link'] must be a mapping of checks to one of the words ok, ",
        ),
        ({"preflight_levels": {"pcie_lnk": "ok"}}, "there is no check 'pcie_lnk'; did you mean pcie_link?"),
        (
            {"preflight_levels": {"wear": "block"}},
            "preflight_levels.wear: 'block' must be one of the words: ok, warning, blocks; did you mean blocks?",
        ),
        ({"preflight_levels": {"wear": True}}, "preflight_levels.wear: True must be"),
        (
            {"preflight_firmware": "FW1"},
            "preflight_firmware: 'FW1' must be a mapping; its keys are each a shell pattern for models",
        ),
        ({"preflight_drivers": {"nvme": []}}, "preflight_drivers.nvme: [] must be a string"),
        (
            {"preflight_versions": {"fio": 3.3}},
            "preflight_versions.fio: 3.3 must be a string, or a list of strings, in quotes",
        ),
        (
            {"preflight_versions": {"nvme-cli": ">=2.0"}},
            "preflight_versions: no check reads the version of 'nvme-cli'",
        ),
        ({"preflight_versions": {"kernel": "6.*", "fio": ">=3.28", "nvme": "2.*", "smartctl": "7.*"}}, None),
        ({"preflight_link": {"*": 4}}, "preflight_link.*: 4 must be a mapping with speed_gts and width"),
        ({"preflight_link": {"*": {"lanes": 4}}}, "must be a mapping with speed_gts and width"),
        ({"preflight_link": {"*": {"width": "x4"}}}, "preflight_link.*.width: 'x4' must be a number above 0"),
        ({"preflight_link": [4]}, "preflight_link: [4] must be a mapping of models to speed_gts and width"),
        (
            {
                "preflight_tools": ["fio"],
                "preflight_min_cpus": "4",
                "preflight_traffic_s": "0.5",
                "preflight_temperature_headroom_c": 0,
            },
            None,
        ),
        (
            {"preflight_tools": {"fio": "3.28"}},
            "preflight_tools: {'fio': '3.28'} must be a list of the names of commands",
        ),
        ({"preflight_min_cpus": "two"}, "preflight_min_cpus: 'two' must be a whole number"),
        ({"preflight_max_used_pct": 9.5}, "preflight_max_used_pct: 9.5 must be a whole number"),
        ({"preflight_temperature_headroom_c": True}, "preflight_temperature_headroom_c: True must be a whole number"),
        ({"preflight_min_free_memory_mib": []}, "preflight_min_free_memory_mib: [] must be a whole number"),
        ({"preflight_traffic_s": "1s"}, "preflight_traffic_s: '1s' must be a number of seconds"),
        ({"preflight_warm_up_s": [1]}, "preflight_warm_up_s: [1] must be a number of seconds"),
    ],
)
def test_wrong_variables_are_told(asked, told):
    problems = host_findings.problems(asked)
    assert problems == [] if told is None else (len(problems) == 1 and told in problems[0])


def test_every_variable_of_the_role_that_has_a_type_is_checked():
    """A run leaves it to this, not to the role's spec (roles/workload/tasks/main.yml)."""
    options = argument_specs.options("preflight")
    assert set(options) == {
        name for name in options if host_findings.problems({name: 0.5 if options[name]["type"] != "float" else {}})
    }


def test_a_run_that_is_gone_on_with_keeps_its_warnings_and_adds_new_ones_once():
    before = {"started": "a", "asked": [], "tests": {}, "warnings": [finding()]}
    now = {"started": "b", "asked": [], "tests": {}, "warnings": [finding(), finding("spare")]}
    assert [item["check"] for item in run_record.merge_run(before, now)["warnings"]] == ["wear", "spare"]
    assert [item["check"] for item in run_record.merge_run(before, dict(now, warnings=[]))["warnings"]] == ["wear"]
