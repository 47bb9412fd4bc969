# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play of a user's own that delegates an acting role to another host: nothing may change there, as the drives named
are those of the task's own host.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
# Where set-up unpacks community.general, without which no host is power-cycled.
FOLDERS = (REPO / "playbooks" / "collections", REPO / ".ansible" / "collections")
COLLECTIONS = {"ANSIBLE_COLLECTIONS_PATH": ":".join(map(str, FOLDERS))}
OWNER, DELEGATE = "rack1-07", "rack1-08"
SENTENCE = f"delegate_to: {DELEGATE} would do on {DELEGATE} what is meant for {OWNER}"


@pytest.fixture
def lab(site, loop_drive, tmp_path):
    """Two servers: the drive of the owner's inventory exists only on the delegate, the one that can be reached."""
    site.drive, site.other = loop_drive(size_bytes=32 << 20), loop_drive("other", size_bytes=32 << 20)
    for drive in (site.drive, site.other):
        drive.file.write_bytes(b"\xa5" * drive.file.stat().st_size)
    site.hosts = {
        OWNER: {
            "ansible_python_interpreter": "/nonexistent/python3",
            "ssd_drives": [dict(site.drive.selector, ssd_overwrite_data=True)],
        },
        DELEGATE: {"ssd_drives": [dict(site.other.selector, ssd_overwrite_data=True)]},
    }
    site.vars.update(delegate=DELEGATE, me="{{ inventory_hostname }}", ssd_give_up_s=3, ssd_host_timeout_s=3)

    def own(play, *args):
        book = tmp_path / "own.yml"
        book.write_text(json.dumps([{"hosts": OWNER, "gather_facts": False, **play}]))
        return site.play(book, *args, env=COLLECTIONS, cwd=tmp_path)

    site.own = own
    return site


def role(name, way="include", to="{{ delegate }}", **arguments):
    """The tasks of a play that uses a role, delegated in one of the ways that Ansible has."""
    called = {"name": f"ssdlab.fleet.{name}", **arguments}
    if way == "include":
        return [{"ansible.builtin.include_role": {**called, "apply": {"delegate_to": to}}}]
    if way == "import":
        return [{"ansible.builtin.import_role": called, "delegate_to": to}]
    return [{"block": [{"ansible.builtin.include_role": called}], "delegate_to": to}]


@pytest.mark.parametrize("way", ["include", "import", "block"])
@pytest.mark.parametrize("name", ["purge", "precondition", "workload", "tune"])
def test_no_role_acts_on_the_host_that_it_is_delegated_to(lab, name, way):
    nomerges = Path("/sys/block", lab.drive.name, "queue/nomerges")
    lab.vars["tune_queue"] = {"nomerges": 2}
    before = lab.drive.digest(), lab.other.digest(), nomerges.read_text()
    try:
        code, output = lab.own({"tasks": role(name, way)})
        output = " ".join(output.split())
        assert (lab.drive.digest(), lab.other.digest(), nomerges.read_text()) == before, output
        assert code != 0 and SENTENCE in output and lab.run_folders() == [], output
    finally:
        if lab.run_folders():
            lab.hosts.pop(OWNER)
            lab.play("restore")


@pytest.mark.parametrize("name", ["purge", "tune"])
def test_no_role_acts_on_the_controller_in_place_of_its_host(lab, name):
    """By the keyword `connection`; an inventory that says so may mean it."""
    lab.hosts[OWNER] = {"ansible_host": "192.0.2.1", "ssd_drives": lab.hosts[OWNER]["ssd_drives"]}
    lab.vars.pop("ansible_connection", None)
    lab.hosts[DELEGATE]["ansible_connection"] = "local"
    before = lab.drive.digest()
    called = {"name": f"ssdlab.fleet.{name}", "apply": {"connection": "local"}}
    code, output = lab.own({"tasks": [{"ansible.builtin.include_role": called}]})
    assert lab.drive.digest() == before and lab.run_folders() == [], output
    assert code != 0 and f"on the controller what is meant for {OWNER}" in " ".join(output.split()), output


@pytest.mark.parametrize(("name", "value"), [("ansible_host", "192.0.2.1"), ("ansible_ssh_port", 2222)])
@pytest.mark.parametrize("way", ["include", "block"])
def test_no_role_acts_where_variables_of_its_task_lead(lab, name, value, way):
    """Which is delegation by another name."""
    lab.hosts[OWNER].pop("ansible_python_interpreter")
    before = lab.drive.digest()
    called, given = {"ansible.builtin.include_role": {"name": "ssdlab.fleet.purge"}}, {name: value}
    task = {**called, "vars": given} if way == "include" else {"block": [called], "vars": given}
    code, output = lab.own({"tasks": [task]})
    assert lab.drive.digest() == before and lab.run_folders() == [], output
    assert code != 0 and f"{name} among the vars of a task" in " ".join(output.split()), output
    # The inventory and the play say where their host is.
    code, output = lab.own({"vars": given, "tasks": [called]})
    assert code == 0 and set(lab.drive.file.read_bytes()) == {0}, output


# Those that ask the host before any preflight, each through a module of its own.
ALONE = {
    "rssdm": ("vendor", {"vendor_rssdm": [{"serial": "A1", "power_limiting": "off"}]}, {}),
    "iomemory": ("vendor", {"vendor_iomemory": [{"serial": "A1", "state": "attached"}]}, {}),
    "power cycle": (
        "vendor",
        {
            "vendor_power_cycle": True,
            "vendor_power_cycle_reason": "a test",
            **{f"vendor_bmc_{name}": "127.0.0.1:1" for name in ("address", "user", "password")},
        },
        {"tasks_from": "power_cycle"},
    ),
    "restore": ("vendor", {}, {"tasks_from": "restore"}),
    "bugreport": (
        "vendor",
        {"ssd_decision": {"run": {"results_dir": "/nonexistent", "id": "x"}}},
        {"tasks_from": "bugreport"},
    ),
    "boot": ("tune", {"tune_boot_arguments": ["quiet"]}, {"tasks_from": "boot"}),
    "boot_restore": ("tune", {}, {"tasks_from": "boot_restore"}),
    "bios": ("tune", {"tune_bios": {"profile": "performance"}}, {"tasks_from": "bios"}),
    "bmc_restore": ("tune", {}, {"tasks_from": "bmc_restore"}),
    "fans": ("tune", {"tune_fans": "high"}, {"tasks_from": "fans"}),
    "fans_restore": ("tune", {}, {"tasks_from": "fans_restore"}),
    "collect": (
        "workload",
        {"ssd_decision": {"run": {"results_dir": "/nonexistent", "id": "x"}}},
        {"tasks_from": "collect"},
    ),
}


@pytest.mark.parametrize("entry", ALONE)
def test_no_entry_of_a_role_asks_the_host_that_it_is_delegated_to(lab, entry):
    name, variables, arguments = ALONE[entry]
    lab.vars.update(variables)
    lab.vars.update(ssd_step="qualify")
    _code, output = lab.own({"tasks": role(name, **arguments)})
    output = " ".join(output.split())
    assert SENTENCE in output and "changed=0" in output, output


def test_a_host_that_delegates_to_itself_is_purged(lab):
    """Also by a template, and with the tasks on the controller as ever."""
    code, output = lab.own({"hosts": DELEGATE, "tasks": role("purge", to="{{ me }}")})
    assert code == 0 and set(lab.other.file.read_bytes()) == {0}, output
    assert set(lab.drive.file.read_bytes()) == {0xA5}


def test_what_only_reads_may_be_delegated(lab):
    """host_info of another host says which host it asked."""
    task = {"ssdlab.fleet.host_info": {"tools": []}, "delegate_to": DELEGATE}
    code, output = lab.own({"tasks": [task]})
    assert code == 0, output
