# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thin modules: arguments in, results out, as Ansible calls them."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts as purge_drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import Tool
from ansible_collections.ssdlab.fleet.plugins.modules import drive_facts, host_info, steady_state


@pytest.fixture
def call(capsys):
    """Run a module's main with arguments; returns its result."""

    def run(module, **arguments):
        with patch_module_args(arguments):
            with pytest.raises(SystemExit):
                module.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_steady_state_judges(call):
    result = call(steady_state, values=["90", 110, 100.0, 110, 90])
    assert (result["steady"], result["rounds"], result["changed"]) == (True, 5, False)
    assert call(steady_state, values=[90, 110, 100, 110, 90], range_limit=0.19)["steady"] is False
    assert call(steady_state, values=[90, 110], window=2, range_limit=1, slope_limit=1)["steady"] is True
    assert call(steady_state, values=[97, 97, 112, 97, 97], margin=0.1)["steady"] is False


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"values": [1, "x"]}, "values[1]"),
        ({"values": [True]}, "values[0]"),
        ({"values": [1], "window": 0}, "window"),
        ({}, "values"),
    ],
)
def test_steady_state_fails_clearly(call, arguments, says):
    result = call(steady_state, **arguments)
    assert result["failed"] is True and says in result["msg"]


def test_drive_facts_keeps_the_order_and_never_fails_for_a_drive(call):
    selectors = [{"backing_file": "/none/a.img"}, {"serial": 83}, "all", {"by_id": "no-such-link"}]
    result = call(drive_facts, drives=selectors)
    assert [drive["selector"] for drive in result["drives"]] == [selectors[0], None, None, selectors[3]]
    assert [drive["refusals"][0]["code"] for drive in result["drives"]] == [
        "not_found",
        "bad_selector",
        "bad_selector",
        "not_found",
    ]
    assert not any(drive["eligible"] for drive in result["drives"])


def test_drive_facts_discovers_what_is_not_named_yet(call, monkeypatch):
    named = {"path": "/dev/sda", "eligible": True, "identity": None, "refusals": []}
    ledgers = []
    monkeypatch.setattr(
        purge_drive_facts,
        "inspect",
        lambda host, _given, state_dir, terms: ledgers.append((state_dir, terms.seconds)) or [named],
    )
    other = dict(named, path="/dev/sdb")
    found = [dict(named, eligible=False), other]
    monkeypatch.setattr(
        purge_drive_facts,
        "discover",
        lambda host, state_dir, terms, _programs: ledgers.append((state_dir, terms.seconds)) or found,
    )
    no_purge = {"purge": [], "purge_capabilities": {}}
    assert call(drive_facts, drives=[{"serial": "A"}])["drives"] == [{**named, **no_purge}]
    both = [{**named, **no_purge}, {**other, **no_purge}]
    assert call(drive_facts, drives=[{"serial": "A"}], discover=True, state_dir="/state", look="full")["drives"] == both
    assert ledgers == [(None, 10.0), ("/state", None), ("/state", None)]


def test_host_info_tells_missing_tools(call):
    seen = call(host_info, tools=["sh", "no-such-tool-here"])["host_info"]
    assert seen["tools"]["no-such-tool-here"] is None
    assert seen["tools"]["sh"]["path"].endswith("/sh")
    assert set(call(host_info)["host_info"]["tools"]) == set(facts.TOOLS)


@pytest.mark.parametrize("folder, manager", [("/run/systemd/system", "systemd"), ("/run/systemd", None)])
def test_systemd_counts_only_as_pid_1(tmp_path, folder, manager):
    (tmp_path / folder.lstrip("/")).mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16384 kB\nMemFree: 1 kB\n")
    seen = facts.gather(facts.Host(str(tmp_path)), [])
    assert (seen.service_manager, seen.memory_bytes, seen.boot_id) == (manager, 16 << 20, None)


@pytest.mark.parametrize(
    "said, version",
    [
        ("fio-3.33", "3.33"),
        ("fio-3.36-12-gabcd", "3.36-12-gabcd"),
        ("wipefs from util-linux 2.38.1", "2.38.1"),
        ("what?", None),
    ],
)
def test_the_version_of_a_tool(said, version):
    class Answer(facts.Host):
        def which(self, name):
            return "/usr/bin/" + name

        def run(self, argv, timeout_s=60, stdin=None):
            return type("Result", (), {"rc": 0, "stdout": said, "stderr": ""})

    assert facts.tool(Answer(), "fio") == Tool("/usr/bin/fio", version)
