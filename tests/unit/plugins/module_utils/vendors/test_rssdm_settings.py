# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import rssdm_settings
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.rssdm import (
    INTERRUPT_COALESCING,
    POWER_LIMITING,
    WRITE_CACHE,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError

P320H_25 = "Micron P320h-MTFDGAL175SAH"


@pytest.fixture
def server(emulated, tmp_path):
    """apply(serial, **arguments) on a host with two P420m, whose second is the one that is meant, and a P320h of 2.5
    inches.
    """
    host = emulated(
        rssdm=[emulator.p420m(0, "OTHER"), emulator.p420m(1, "S1"), emulator.p420m(2, "S2", model=P320H_25)]
    )

    def apply(serial="S1", check=False, **arguments):
        asked = rssdm_settings.requested(arguments)
        return rssdm_settings.apply(
            host, serial, asked, str(tmp_path / "state"), arguments.get("write_cache_flag", ""), check
        )

    apply.host = host
    apply.modified = lambda: [command for command in host.commands if command[1] == "-M"]
    return apply


def test_what_is_set_waits_for_a_power_cycle(server):
    first = server(queue_depth=256, power_limiting=True)
    assert first.changed and first.pending == {INTERRUPT_COALESCING: 0xD801F, POWER_LIMITING: True}
    assert first.current[INTERRUPT_COALESCING] == 0xD200F and "power cycle" in first.message
    assert sorted(server.modified()) == [
        ["rssdm", "-M", "-i", "0xD801F", "-n", "1"],
        ["rssdm", "-M", "-p", "1", "-n", "1"],
    ]
    again = server(queue_depth=256, power_limiting=True)
    assert not again.changed and again.pending == first.pending and len(server.modified()) == 2


def test_a_reboot_is_no_power_cycle(server):
    server(interrupt_coalescing="0xD020F")
    server.host.reboot("boot-2")
    after = server(interrupt_coalescing="0xD020F")
    assert not after.changed and after.pending and "a reboot, not a power cycle" in after.message


def test_after_the_power_cycle_nothing_is_pending(server, tmp_path):
    server(interrupt_coalescing="0xD020F")
    emulator.power_cycle(server.host.machine)
    server.host.reboot("boot-2")
    after = server(interrupt_coalescing="0xD020F")
    assert (after.changed, after.pending, after.message) == (False, {}, "")
    assert after.current[INTERRUPT_COALESCING] == 0xD020F
    (record,) = tmp_path.glob("state/rssdm/*")
    assert json.loads(record.read_text())["originals"] == {INTERRUPT_COALESCING: 0xD200F}


def test_back_again_before_the_power_cycle_sends_it(server):
    server(power_limiting=True)
    back = server(power_limiting=False)
    assert back.changed and server.modified()[-1] == ["rssdm", "-M", "-p", "0", "-n", "1"]
    assert not server(power_limiting=False).changed


@pytest.fixture
def powered(server):
    """Boot the host anew with the power off in between."""
    boots = iter(range(2, 9))

    def cycle():
        emulator.power_cycle(server.host.machine)
        server.host.reboot(f"boot-{next(boots)}")

    return cycle


def test_restore_puts_back_what_was_there_before_the_first_change(server, powered, tmp_path):
    state = str(tmp_path / "state")
    server(interrupt_coalescing="0xD020F", power_limiting=True)
    powered()
    server(interrupt_coalescing="0xD801F")
    powered()
    (planned,) = rssdm_settings.restore(server.host, state, check=True)
    assert planned.change.changed and len(server.modified()) == 3
    (done,) = rssdm_settings.restore(server.host, state)
    assert (
        done.change.pending == {INTERRUPT_COALESCING: 0xD200F, POWER_LIMITING: False}
        and "power cycle" in done.change.message
    )
    (again,) = rssdm_settings.restore(server.host, state)
    assert not again.change.changed and again.change.pending == done.change.pending
    powered()
    (ended,) = rssdm_settings.restore(server.host, state)
    assert (ended.change.changed, ended.change.pending) == (False, {})
    assert ended.change.current[INTERRUPT_COALESCING] == 0xD200F and ended.change.current[POWER_LIMITING] is False
    assert rssdm_settings.restore(server.host, state) == [] and not list(tmp_path.glob("state/rssdm/*"))


def test_restore_before_the_power_cycle_takes_the_pending_value_back(server, powered, tmp_path):
    server(power_limiting=True)
    rssdm_settings.restore(server.host, str(tmp_path / "state"))
    powered()
    (ended,) = rssdm_settings.restore(server.host, str(tmp_path / "state"))
    assert ended.change.current[POWER_LIMITING] is False and not list(tmp_path.glob("state/rssdm/*"))


def test_restore_knows_the_option_of_the_write_cache(server, powered, tmp_path):
    server("S2", write_cache=False, write_cache_flag="-w")
    powered()
    rssdm_settings.restore(server.host, str(tmp_path / "state"))
    assert server.modified()[-1] == ["rssdm", "-M", "-w", "1", "-n", "2"]


def test_a_drive_that_is_gone_does_not_keep_the_others_from_being_restored(server, tmp_path):
    server("OTHER", power_limiting=True)
    server("S1", power_limiting=True)
    with emulator.state(server.host.machine) as machine:
        machine["rssdm"]["drives"] = [drive for drive in machine["rssdm"]["drives"] if drive["serial"] != "OTHER"]
    gone, done = rssdm_settings.restore(server.host, str(tmp_path / "state"))
    assert (
        gone.change is None
        and "OTHER did not get back power_limiting = False" in gone.problem
        and "gone for good, remove" in gone.problem
    )
    assert done.serial == "S1" and done.change.changed


def test_what_is_as_wanted_is_left_alone(server):
    for arguments in ({"interrupt_coalescing": "0xD200F"}, {"queue_depth": 64}, {"power_limiting": False}, {}):
        assert not server(**arguments).changed
    assert server.modified() == []


def test_check_mode_changes_nothing(server, tmp_path):
    seen = server(check=True, queue_depth=8)
    assert (
        seen.changed
        and seen.pending == {INTERRUPT_COALESCING: 0xD020F}
        and seen.commands == [["rssdm", "-M", "-i", "0xD020F", "-n", "1"]]
    )
    assert server.modified() == [] and not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "serial, arguments, says",
    [
        ("S1", {"interrupt_coalescing": "0xD800F"}, "unexpected results"),
        ("S1", {"queue_depth": 0}, "at least 1"),
        ("S2", {"power_limiting": True}, "2.5-inch"),
        ("S1", {"write_cache": True, "write_cache_flag": "-w"}, "P420m's write cache"),
        ("S2", {"write_cache": True}, "write_cache_flag"),
        ("S2", {"write_cache": True, "write_cache_flag": "-X"}, "write_cache_flag"),
        ("S2", {"write_cache": True, "write_cache_flag": "-n"}, "write_cache_flag"),
        ("S2", {"write_cache": True, "write_cache_flag": "-w -X"}, "write_cache_flag"),
        ("S", {"power_limiting": True}, "lists no drives"),
        ("S1; reboot", {"power_limiting": True}, "lists no drives"),
        ("1", {"power_limiting": True}, "lists no drives"),
    ],
)
def test_bad_values_are_refused_before_anything_is_sent(server, serial, arguments, says):
    with pytest.raises(ToolError, match=says):
        server(serial, **arguments)
    assert server.modified() == []


def test_the_write_cache_of_a_p320h(server):
    assert server("S2", write_cache=False, write_cache_flag="-w").pending == {WRITE_CACHE: False}
    assert server.modified() == [["rssdm", "-M", "-w", "0", "-n", "2"]]


def test_a_drive_that_is_being_measured_is_not_changed(server):
    with locks.drive_lock("S1", {"run_id": "night"}):
        with pytest.raises(ToolError, match="in use by a run: .*night"):
            server(power_limiting=True)
    assert server.modified() == []


def test_a_setting_that_is_not_shown_is_not_set(server, monkeypatch):
    monkeypatch.setitem(rssdm_settings.rssdm.SHOWN_AS, INTERRUPT_COALESCING, "no such line")
    with pytest.raises(ToolError, match="does not show its interrupt coalescing"):
        server(queue_depth=256)
    assert server.modified() == []


def test_what_was_sent_before_a_failure_is_remembered(server):
    refused = server.host.run

    def run(argv, timeout_s=60, stdin=None):
        answer = refused(argv, timeout_s, stdin)
        return answer._replace(rc=8) if argv[1:3] == ["-M", "-i"] else answer

    server.host.run = run
    with pytest.raises(ToolError, match="interrupt coalescing was not set"):
        server(power_limiting=True, queue_depth=256)
    server.host.run = refused
    assert server().pending == {POWER_LIMITING: True}


def test_an_id_that_moved_is_noticed(server):
    refused = server.host.run

    def run(argv, timeout_s=60, stdin=None):
        with server.host.state() as machine:
            if argv == ["rssdm", "-L"]:
                machine["rssdm"]["drives"][1]["id"] = 7
        return refused(argv, timeout_s, stdin)

    server.host.run = run
    with pytest.raises(ToolError, match="has 7 now"):
        server(power_limiting=True)
    assert server.modified() == []


def test_a_damaged_record_counts_as_none(server, tmp_path):
    (tmp_path / "state/rssdm").mkdir(parents=True)
    (tmp_path / "state/rssdm/S1.json").write_text("[")
    assert server().pending == {}
    (tmp_path / "state/rssdm/S1.json").write_text('{"pending": [1], "boot_id": "boot-1"}')
    assert server().pending == {}
