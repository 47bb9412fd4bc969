# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile server's facts, and results that name a run, can do to the controller: nothing (docs/trust.md)."""

from __future__ import annotations

import pytest
from hostile import BAD, GOOD, hostile_python, play

# C2: facts

FACTS = """
def answer(module, real):
    stats = {{"data": {facts!r}, "aggregate": False, "per_host": False}}
    return dict(real, ansible_facts={facts!r}, ansible_stats=stats,
                warnings=["forged warning"], deprecations=[{{"msg": "forged deprecation", "version": "9"}}])
"""


def test_a_fact_never_outranks_the_inventory(pair, tmp_path):
    target = tmp_path / ".bashrc"
    target.write_text("mine")
    site = pair(
        FACTS.format(
            facts={
                "ssd_discover_file": str(target),
                "vendor_bmc_address": "evil.example",
                "ssd_decision": {"run": {"id": "x"}},
            }
        )
    )
    code, output = site.play("discover", env={"ANSIBLE_SHOW_CUSTOM_STATS": "1"})
    assert target.read_text() == "mine", output
    assert code == 0 and "forged" not in output and "CUSTOM STATS" not in output, output


@pytest.mark.parametrize(
    "module",
    [
        "examine",
        "run_info",
        "host_info",
        "drive_facts",
        "host_checks",
        "bmc_record",
        "boot_arguments",
        "iomemory",
        "rssdm",
        "irq_affinity",
        "tunables",
    ],
)
def test_no_module_of_ours_brings_facts(site, tmp_path, module):
    """Whichever the site calls: a fact is known to no later task, nor a statistic to AWX."""
    answer = (
        "def answer(module, real):\n    return {'changed': False, 'ansible_facts': {'ssd_mode': 'forged'}, "
        "'ansible_stats': {'data': {'ssd_mode': 'forged'}}}\n"
    )
    site.hosts[BAD] = {"ansible_python_interpreter": hostile_python(tmp_path / "hostile", answer)}
    arguments = {"rssdm": {"serial": "1"}, "boot_arguments": {"state": "absent"}, "irq_affinity": {"drives": []}}.get(
        module, {}
    )
    tasks = [
        {f"ssdlab.fleet.{module}": arguments, "register": "told", "ignore_errors": True},
        {
            "ansible.builtin.debug": {
                "msg": (
                    "mode={{ ssd_mode }} facts={{ ansible_facts.ssd_mode | default('none') }} told={{ "
                    "told.ansible_facts | default('none') }}"
                )
            }
        },
    ]
    _code, output = play(site, tasks, env={"ANSIBLE_SHOW_CUSTOM_STATS": "1"})
    assert "mode=destructive facts=none told=none" in output, output
    assert "CUSTOM STATS" not in output


@pytest.mark.parametrize(
    "name", ["preflight", "discover", "collect", "watch", "stop", "restore", "cleanup", "report", "vendor"]
)
def test_every_playbook_refuses_facts_as_variables(site, name):
    """Another ansible.cfg than ours, or AWX's settings, would let the facts of other modules outrank the inventory."""
    site.hosts[GOOD] = {"ssd_drives": [{"serial": "A1"}], "vendor_rssdm": [{"serial": "A1"}]}
    code, output = site.play(name, env={"ANSIBLE_INJECT_FACT_VARS": "True"})
    assert code != 0, output
    assert "inject_facts_as_vars = False" in output, output


# C2 again: what the callback takes


def test_the_callback_is_led_nowhere_by_a_host(pair, tmp_path):
    """Any task's result could name a run and its folder; only actions on the controller may."""
    elsewhere = tmp_path / "elsewhere"
    run = {"id": "x", "results_dir": str(elsewhere)}
    record = {
        "schema_version": 1,
        "kind": "drive",
        "time": "2026-11-21T13:00:00Z",
        "run_id": "x",
        "host": GOOD,
        "drive": "A1",
        "outcome": "complete",
    }
    site = pair(
        f"def answer(module, real):\n    return dict(real, decision={{'run': {run!r}}}, records=[{record!r}], "
        f"results=[{{**{run!r}, 'run_id': 'x', 'decision': {{'run': {run!r}}}, 'records': [{record!r}]}}])\n"
    )
    (elsewhere / "x").mkdir(parents=True)
    tasks = [{"ssdlab.fleet.run_info": {}}, {"ansible.builtin.ping": {}}]
    play(site, tasks)
    assert not (elsewhere / "x" / "results.jsonl").exists()
