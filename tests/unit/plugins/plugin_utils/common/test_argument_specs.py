# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import tuning_values
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_findings, variable_rules

ROLES = ("ssd", "preflight", "tune", "purge", "precondition", "workload")
DEFAULTS = {name: argument_specs.default(name) for role in ROLES for name in argument_specs.options(role)}
# What each type refuses, and Ansible's own reading of it takes: true is no number, a text no list.
REFUSED = {
    "int": (True, False, "1.5", "many", [1], {}, float("inf"), float("nan")),
    "float": (True, "soon", [1], {}, float("inf"), float("nan")),
    "bool": ("maybe", 2, 0.5, [], {}),
    "list": ("a,b", 5, True, {"a": 1}),
    "dict": ("a=b", '{"a": 1}', 5, [1]),
    "str": ([], {}, ["plan"]),
    "path": ([], {}),
}
ANSWERS = {
    "int": (1, "1", " 1 ", "1.0", 1.0),
    "float": (1, "1", 1.0),
    "bool": (True, "true", "Yes", "on", "1", 1, False, "no", "off", ""),
}


def wrong(variable, value):
    return argument_specs.problems(variable.split("_")[0], {variable: value})


@pytest.mark.parametrize(
    "role, rules",
    [
        ("ssd", variable_rules.RULES),
        ("tune", tuning_values.RULES),
        ("preflight", host_findings.RULES),
        ("precondition", variable_rules.PRECONDITION_RULES),
        ("purge", {}),
        ("workload", {}),
    ],
)
def test_every_default_is_of_its_type_and_keeps_its_rule(role, rules):
    """Preflight looks at no value that is the default."""
    names = list(argument_specs.options(role))
    read = argument_specs.in_type(role, {name: DEFAULTS[name] for name in names})
    assert list(read) == names and set(rules) <= set(names)
    assert [name for name in rules if read[name] is not None and not rules[name].holds(read[name])] == []


def test_nothing_is_wrong_with_the_defaults():
    assert variable_rules.problems(DEFAULTS) == [] == host_findings.problems(DEFAULTS)


def test_true_is_not_taken_for_a_default_of_1():
    assert DEFAULTS["preflight_traffic_s"] == 1
    asked = {"ssd_parallel_drives": True, "ssd_retest": False}
    assert [line.split(":")[0] for line in variable_rules.problems(asked)] == list(asked)
    assert len(host_findings.problems({"preflight_traffic_s": True})) == 1


@pytest.mark.parametrize("variable", [name for name in DEFAULTS if argument_specs.option(name)["type"] != "raw"])
def test_no_value_of_another_type_passes(variable):
    for value in REFUSED[argument_specs.option(variable)["type"]]:
        assert len(wrong(variable, value)) == 1, value


@pytest.mark.parametrize(
    "kind, variable", [("int", "tune_reboot_timeout_s"), ("float", "ssd_look_s"), ("bool", "tune_smt_enabled")]
)
def test_what_inventories_and_surveys_write_is_read_in_the_variables_type(kind, variable):
    role = variable.split("_")[0]
    for value in ANSWERS[kind]:
        assert type(argument_specs.in_type(role, {variable: value})[variable]).__name__ == kind, value


@pytest.mark.parametrize(
    "variable, value, read",
    [
        ("purge_timeout_s", "", None),
        ("tune_idle_states_above_us", "null", None),
        ("tune_turbo", True, "on"),
        ("tune_turbo", False, "off"),
        ("tune_turbo", None, ""),
        ("ssd_criteria", None, []),
        ("ssd_criteria", "", []),
        ("tune_vm", None, {}),
        ("ssd_fio_min_version", 3.28, "3.28"),
        ("ssd_rack", 7, "7"),
        ("tune_cpu_limits", [{"model": "M*", "cpus": "8"}], [{"model": "M*", "cpus": 8}]),
    ],
)
def test_what_yaml_and_empty_answers_stand_for(variable, value, read):
    assert argument_specs.in_type(variable.split("_")[0], {variable: value}) == {variable: read}


@pytest.mark.parametrize(
    "entries",
    [
        [{"cpus": 8}],
        [{"model": "M*"}],
        [{"model": None, "cpus": 8}],
        [{"model": "M*", "driver": None, "cpus": 8}],
        [{"model": "M*", "cpus": 8, "more": 1}],
        [{"model": ["M*"], "cpus": 8}],
        ["model=M cpus=8"],
        {"model": "M*", "cpus": 8},
    ],
)
def test_entries_of_a_list_have_the_keys_that_the_spec_has(entries):
    assert len(wrong("tune_cpu_limits", entries)) == 1


def test_a_message_says_what_is_allowed():
    assert wrong("ssd_look", "ful") == ["ssd_look: 'ful' must be one of: sample, full; did you mean full?"]
    assert wrong("ssd_leave", None) == ["ssd_leave: None must be one of: blank, as_is"]
    assert wrong("ssd_folders_in_store", "maybe") == ["ssd_folders_in_store: 'maybe' must be true or false"]
    rules = {
        "ssd_tests_dirs": argument_specs.Rule(
            "a list of short names", lambda names: all(len(name) < 9 for name in names)
        )
    }
    asked = {"ssd_tests_dirs": ["a", "b" * 9]}
    (told,) = argument_specs.problems("ssd", asked, rules)
    assert told == f"ssd_tests_dirs: {asked['ssd_tests_dirs']} must be a list of short names; wrong: '{'b' * 9}'"


def test_one_wrong_value_hides_no_other():
    asked = {**DEFAULTS, "ssd_look": "x", "ssd_retest": 2, "ssd_look_s": "long"}
    assert [line.split(":")[0] for line in argument_specs.problems("ssd", asked)] == [
        "ssd_look_s",
        "ssd_look",
        "ssd_retest",
    ]


def test_a_default_is_a_copy():
    argument_specs.default("tune_vm")["swappiness"] = 0
    assert argument_specs.default("tune_vm") == {"swappiness": 20}


def test_a_limit_of_a_schema_is_a_rule():
    rule = argument_specs.limited({"type": ["integer", "null"], "minimum": 1, "maximum": 9})
    assert rule.wanted == "a whole number from 1 to 9, or null" and rule.holds(9) and not rule.holds(10)
    rule = argument_specs.limited({"type": "integer", "enum": [512, 4096]})
    assert rule.wanted == "one of: 512, 4096" and rule.holds(512) and not rule.holds(1024)
