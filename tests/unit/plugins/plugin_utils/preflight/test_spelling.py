# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of variables: what is misspelt, what is unknown, and what is its user's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import spelling
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.spelling import Unknown

ROOT = Path(__file__).resolve().parents[5]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ssd_criterias", "ssd_criteria"),
        ("ssd_paralel_drives", "ssd_parallel_drives"),
        ("ssd_drive", "ssd_drives"),
        ("ssd_dirves", "ssd_drives"),
        ("ssd_mdoe", "ssd_mode"),
        ("ssd_mod", "ssd_mode"),
        ("ssd_modes", "ssd_mode"),
        ("ssd_plann", "ssd_plan"),
        ("ssd_plans", "ssd_plan"),
        ("ssd_paln", "ssd_plan"),
        ("ssd_leavs", "ssd_leave"),
        ("ssd_host", "ssd_hosts"),
        ("sdd_criteria", "ssd_criteria"),
        ("tune_govenor", "tune_governor"),
        ("purge_metod", "purge_method"),
        ("preflight_level", "preflight_levels"),
        ("report_baselien", "report_baseline"),
        ("vendor_iomemroy", "vendor_iomemory"),
        ("workload_io_engine", "workload_ioengine"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(name, meant):
    assert spelling.judge(name) == Unknown(name, meant)
    assert f"did you mean {meant}?" in spelling.finding(spelling.judge(name))


@pytest.mark.parametrize("name", ["ssd_model", "ssd_vault_password", "ssd_lock", "ssd_stop", "ssd_site"])
def test_another_name_of_ours_is_a_remark(name):
    assert spelling.judge(name) == Unknown(name)
    assert spelling.remark(Unknown(name)).startswith(f"{name}: no variable of this collection")


@pytest.mark.parametrize(
    "name",
    [
        "tune_kernel_network",
        "report_mail_to",
        "purge_old_logs",
        "watch_interval_s",
        "hdd_drives",
        "tuned_governor",
        "ssh_host_timeout_s",
        "ssl_mode",
        "awx_inventory_id",
        "ansible_host",
        "rack",
    ],
)
def test_other_names_belong_to_their_users(name):
    assert spelling.judge(name) is None


@pytest.mark.parametrize(
    "name", ["ssd_decision", "ssd_seen", "ssd_skipped", "ssd_message", "ssd_verdicts", "ssd_again"]
)
def test_what_the_playbooks_set_themselves_is_known(name):
    assert spelling.judge(name) is None


def test_every_variable_of_the_collection_is_known():
    names = [name for role in spelling.ROLES for name in spelling.argument_specs.options(role)]
    assert len(names) > 100 and [name for name in names if spelling.judge(name)] == []


def test_the_variables_of_playbooks_alone_are_those_that_they_read():
    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("playbooks/*.yml"))
    assert [name for name in spelling.OF_PLAYBOOKS if name not in text] == []


@pytest.mark.parametrize(
    "text", ["{{ ssd_drive }}", "{% if ssd_drive is defined %}x{% endif %}", [{"serial": "{{ ssd_drive | trim }}"}]]
)
def test_a_name_that_a_template_uses_is_its_users_own(text):
    one, other = {"ssd_drive": "S1", "ssd_criterias": []}, {"ssd_drive": "S2"}
    misspelt = [Unknown("ssd_criterias", "ssd_criteria")]
    assert spelling.unknown({"h1": {**one, "ssd_drives": text}, "h2": other}, {}) == {"h1": misspelt}
    assert spelling.unknown({"h1": one, "h2": other}, {"ssd_drives": text}) == {"h1": misspelt}
    # Its own text is no use of it, nor is a text that is no template.
    itself = {"ssd_drive": "{{ ssd_drive }}", "note": "ssd_drive"}
    assert spelling.unknown({"h1": itself}, {}) == {"h1": [Unknown("ssd_drive", "ssd_drives")]}


def test_a_name_that_an_inventory_plugin_uses_is_its_users_own():
    """What it sets is not: its keys."""
    one = {"ssd_drive": "S1", "ssd_site": "A", "ssd_dirves": []}
    misspelt = {"h1": [Unknown("ssd_dirves", "ssd_drives")]}
    config = {
        "plugin": "ansible.builtin.constructed",
        "compose": {"ssd_dirves": "[{'serial': ssd_drive}]"},
        "keyed_groups": [{"key": "ssd_site"}],
    }
    assert spelling.unknown({"h1": one}, {}, [config]) == misspelt


def test_what_a_play_sets_counts_for_each_host():
    found = [Unknown("tune_govenor", "tune_governor")]
    assert spelling.unknown({"h1": {}, "h2": {}}, {"tune_govenor": "x"}) == {"h1": found, "h2": found}


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abc", "abcd", 1),
        ("abc", "bc", 1),
        ("abcd", "badc", 2),
        ("ab", "wxyz", 3),
    ],
)
def test_edits(one, other, edits):
    assert [min(spelling.distance(*pair), 3) for pair in ((one, other), (other, one))] == [edits, edits]


def test_no_example_of_the_docs_has_an_unknown_name():
    """Words of texts that are no variables: modules, groups, files."""
    found = {}
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]:
        blocks = re.findall(r"```ya?ml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        names = re.findall(r"^[ -]*(\w+):", "\n".join(blocks), re.MULTILINE)
        found.update({name: path.name for name in names if spelling.judge(name)})
    assert set(found) <= {"ssd_servers"}, found
