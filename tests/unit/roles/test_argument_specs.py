# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import release_drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory_settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs as settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import tuning, tuning_values
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    variable_rules,
)

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.parent.parent.name for path in ROLES.glob("*/meta/main.yml"))
TYPES = {
    "str": str,
    "path": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "list": list,
    "dict": dict,
    "raw": object,
}


class Loader(yaml.SafeLoader):
    """YAML with Ansible's tag for texts that are no templates."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


def load(role, path):
    file = ROLES / role / path
    return (yaml.load(file.read_text(encoding="utf-8"), Loader) if file.exists() else None) or {}


def specs(role):
    return load(role, "meta/argument_specs.yml").get("argument_specs", {})


def test_there_are_roles():
    assert {"ssd", "preflight", "tune", "purge", "precondition", "workload"} <= set(NAMES)


@pytest.mark.parametrize("role", NAMES)
def test_every_role_has_specs_that_say_what_it_does(role):
    # Ansible checks a main of ssd host by host, in each play with a role that depends on it, and drops hosts.
    assert ("main" in specs(role)) is (role != "ssd")
    for entry, spec in specs(role).items():
        assert spec.get("short_description") and spec.get("description"), entry


@pytest.mark.parametrize("role", NAMES)
def test_every_role_has_a_readme_whose_examples_are_yaml_and_use_it(role):
    text = (ROLES / role / "README.md").read_text(encoding="utf-8")
    examples = [yaml.safe_load(example) for example in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert text.startswith(f"# ssdlab.fleet.{role}\n") and any(
        f"ssdlab.fleet.{role}" in str(example) for example in examples
    )


@pytest.mark.parametrize("role", NAMES)
def test_every_role_but_the_shared_variables_acts_and_depends_on_these_alone(role):
    """A role that depended on one that acts would do its step too."""
    dependencies = [entry["role"] for entry in load(role, "meta/main.yml")["dependencies"]]
    assert dependencies == ([] if role == "ssd" else ["ssdlab.fleet.ssd"])
    assert bool(load(role, "tasks/main.yml")) == (role != "ssd")


@pytest.mark.parametrize("role", NAMES)
def test_no_role_reads_a_variable_that_another_role_keeps_to_itself(role):
    others = "|".join(name for name in NAMES if name != role)
    files = [path for path in (ROLES / role).rglob("*.yml") if path.is_file()]
    assert {
        path.name: found
        for path in files
        if (found := re.findall(rf"\b__(?:{others})_\w+", path.read_text(encoding="utf-8")))
    } == {}


def test_playbooks_read_no_variable_that_a_role_keeps_to_itself():
    private = re.compile(rf"\b__(?:{'|'.join(NAMES)})_\w+")
    books = (ROLES.parent / "playbooks").glob("*.yml")
    assert {path.name: found for path in books if (found := private.findall(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize("role", NAMES)
def test_defaults_and_specs_agree(role):
    defaults = load(role, "defaults/main.yml")
    for entry, spec in specs(role).items():
        options = spec.get("options", {})
        assert {
            name: option.get("default") for name, option in options.items() if not option.get("required")
        } == defaults, entry
        for name, option in options.items():
            assert option.get("description"), name
            value = option.get("default")
            assert value is None or isinstance(value, TYPES[option.get("type", "str")]), name
            assert not (option.get("type") == "int" and isinstance(value, bool)), name
            if "choices" in option:
                assert set(value if isinstance(value, list) else [value]) <= set(option["choices"]), name


@pytest.mark.parametrize("role", NAMES)
def test_defaults_leave_explanations_to_the_specs(role):
    head, _newline, values = (
        (ROLES / role / "defaults" / "main.yml").read_text(encoding="utf-8").partition(f"\n{role}_")
    )
    assert "# meta/argument_specs.yml describes every variable." in head.splitlines()
    assert [line for line in values.splitlines() if line.lstrip().startswith("#")] == []


@pytest.mark.parametrize("role", NAMES)
def test_variables_have_their_roles_prefix(role):
    for name in load(role, "defaults/main.yml"):
        assert name.startswith(f"{role}_"), name
    for name in load(role, "vars/main.yml"):
        assert name.startswith(f"__{role}_"), name


def test_every_concern_of_tuning_has_a_switch_a_tag_and_a_task():
    contents = load("tune", "tasks/describe.yml")
    concerns = [*tuning.CONCERNS]
    assert [task["ssdlab.fleet.tunables"]["concern"] for task in contents] == concerns
    assert [(task["tags"], task["when"]) for task in contents] == [
        ([name], f"tune_{name}_enabled | bool") for name in concerns
    ]
    switches = {name for name in load("tune", "defaults/main.yml") if name.endswith("_enabled")}
    assert switches == {f"tune_{name}_enabled" for name in [*concerns, tuning.BOOT]}
    assert load("tune", "vars/main.yml")["__tune_tags"] == [*concerns, tuning.BOOT, "vendor", "bios", "fans"]


def test_the_module_tunables_knows_every_concern_in_its_documentation_and_in_its_code():
    text = (ROLES.parent / "plugins" / "modules" / "tunables.py").read_text(encoding="utf-8")
    documented = yaml.safe_load(text.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]["concern"]["choices"]
    coded = ast.literal_eval(re.search(r'"choices": (\[[^]]*\])', text).group(1))
    assert documented == coded == list(tuning.CONCERNS)


def told(variable):
    text = settings.option(variable)["description"]
    return text if isinstance(text, str) else " ".join(text)


@pytest.mark.parametrize(
    "name", [name for name, option in settings.options("ssd").items() if option.get("choices") and name != "ssd_step"]
)
def test_the_description_tells_every_choice_and_no_other(name):
    words = set(re.findall(r"[VC]\(([a-z0-9_]+)\)", told(name))) - {"release_evidence", "ssd_drives"}
    assert words == {str(choice) for choice in settings.choices(name)}


@pytest.mark.parametrize(
    "name, least",
    [
        ("ssd_watch_interval_s", variable_rules.LEAST_INTERVAL_S),
        ("tune_reboot_timeout_s", tuning_values.LEAST_REBOOT_S),
    ],
)
def test_the_description_tells_the_limit_that_counts(name, least):
    """A spec has no key for a range."""
    assert f"at least {least}" in told(name)


@pytest.mark.parametrize(
    "choices, name",
    [
        (drive_facts.OPTIONS["look"]["choices"], "ssd_look"),
        ((release_drive.BLANK, release_drive.AS_IS), "ssd_leave"),
        (json_schema.of(Plan)["properties"]["leave"]["enum"], "ssd_leave"),
        # vendor.yml has it change nothing with the other.
        ([*iomemory_settings.OPTIONS["mode"]["choices"], "read_only"], "ssd_mode"),
        (load("awx", "vars/main.yml")["__awx_questions"]["mode"]["choices"], "ssd_mode"),
    ],
)
def test_modules_schemas_and_surveys_take_the_choices_of_the_roles(choices, name):
    """None of them can read a role's spec: modules run on hosts, schemas and surveys are data."""
    assert tuple(choices) == settings.choices(name)


def test_the_module_drive_facts_has_the_default_of_ssd_look():
    for option, name in (("look", "ssd_look"), ("look_s", "ssd_look_s")):
        assert drive_facts.OPTIONS[option]["default"] == settings.default(name)
