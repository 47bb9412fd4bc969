# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import functools

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import guarded_format
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory_settings
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.iomemory_settings import FormatOptions, set_beacon
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError

ensure_state = functools.partial(iomemory_settings.ensure_state, format_card=guarded_format.format_guarded)
FORMAT = FormatOptions(4096, 90, "destructive", "/state")
AS_IT_IS = FormatOptions()


@pytest.fixture
def server(emulated):
    host = emulated(cards=[emulator.card(0, "C0"), emulator.card(1, "C1")])
    host.block("fiob", "251:16", "")
    return host


def changing(host):
    return [command for command in host.commands if command[0].startswith("fio-") and command[0] != "fio-status"]


class Held:
    """A stand-in for held.HeldDrive, whose lock and exclusive open need a block device; `log` tells what was asked of
    it.
    """

    log = []
    refuse = None

    def __init__(self, _host, plan, _owner, same_boot, state_dir):
        self.log.append(("made", plan["entry"].given, same_boot, state_dir))

    def take(self):
        self.log.append("take")
        if self.refuse:
            raise Refused([self.refuse])

    @contextlib.contextmanager
    def lend(self, may_change):
        self.log.append("lend")
        yield

    def release(self):
        self.log.append("release")


@pytest.fixture
def eligible(monkeypatch):
    """A guard that lets fiob be erased."""
    identity = {"kernel_name": "fiob", "size_bytes": 1 << 30}
    monkeypatch.setattr(
        guarded_format.guard_check, "inspect", lambda *_: [{"eligible": True, "identity": identity, "refusals": []}]
    )
    monkeypatch.setattr(guarded_format, "HeldDrive", Held)
    monkeypatch.setattr(Held, "log", [])
    return Held


def test_detach_and_attach_once(server):
    first = ensure_state(server, "C1", "detached", AS_IT_IS, check=False)
    assert first.changed and first.commands == [["fio-detach", "/dev/fct1"]] and first.after.state == "detached"
    assert not ensure_state(server, "C1", "detached", AS_IT_IS, check=False).changed
    assert ensure_state(server, "C1", "attached", AS_IT_IS, check=False).after.block == "fiob"
    assert not ensure_state(server, "C1", "attached", AS_IT_IS, check=False).changed
    assert changing(server) == [["fio-detach", "/dev/fct1"], ["fio-attach", "/dev/fct1"]]


def test_check_mode_changes_nothing(server, eligible):
    for state in ("detached", "formatted"):
        seen = ensure_state(server, "C1", state, FORMAT, check=True)
        assert seen.changed and seen.commands and seen.after != seen.before
    assert changing(server) == [] and eligible.log == []


def test_a_format_needs_the_word_destructive(server, eligible):
    seen = ensure_state(server, "C1", "formatted", FORMAT._replace(mode="plan"), check=False)
    assert not seen.changed and "would be ERASED" in seen.message and len(seen.commands) == 3
    assert changing(server) == [] and eligible.log == []


def test_a_format_is_done_under_guard_and_lock_and_once(server, eligible):
    done = ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert done.changed and (done.after.sector_bytes, done.after.size_pct) == (4096, 90)
    assert eligible.log == [("made", {"serial": "C1"}, True, "/state"), "take", "lend", "release"]
    assert changing(server) == done.commands
    again = ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert not again.changed and len(eligible.log) == 4
    assert not ensure_state(server, "C1", "formatted", FormatOptions(mode="destructive"), check=False).changed


def test_the_real_guard_stands_before_a_format(server):
    server.has_devices = False
    with pytest.raises(ToolError, match="C1 may not be formatted. probe_failed"):
        ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert changing(server) == []


def test_the_guard_reads_what_runs_left_on_a_card(server, monkeypatch):
    asked = []
    refused = {
        "eligible": False,
        "identity": {"kernel_name": "fiob"},
        "refusals": [{"code": "evidence", "message": "run one left it so"}],
    }
    monkeypatch.setattr(guarded_format.guard_check, "inspect", lambda *given: asked.append(given[2:]) or [refused])
    with pytest.raises(ToolError, match="C1 may not be formatted. evidence: run one left it so"):
        ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert asked == [(None, "/state")] and changing(server) == []


def test_a_drive_that_the_guard_refuses_at_the_last_moment_is_not_formatted(server, eligible, monkeypatch):
    monkeypatch.setattr(Held, "refuse", Refusal("mounted", "it is mounted"))
    with pytest.raises(ToolError, match="mounted: it is mounted"):
        ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert changing(server) == [] and eligible.log[-1] == "release"


def test_the_kernel_and_fio_status_must_agree(server, eligible, monkeypatch):
    monkeypatch.setattr(
        guarded_format.guard_check,
        "inspect",
        lambda *_: [{"eligible": True, "identity": {"kernel_name": "fioa"}, "refusals": []}],
    )
    with pytest.raises(ToolError, match="do not agree"):
        ensure_state(server, "C1", "formatted", FORMAT, check=False)
    assert changing(server) == []


@pytest.mark.parametrize(
    "change, options, says",
    [
        ({"attached": False}, FORMAT, "not attached"),
        ({"trouble": "Status unknown: Driver is in MINIMAL MODE"}, FORMAT, "MINIMAL MODE"),
        ({"adapter": "a card"}, FORMAT, "advertised capacity can't be read"),
        ({}, FORMAT._replace(size_pct=101), "size_pct 101"),
        ({"busy": True}, FORMAT, "in use"),
    ],
)
def test_what_cannot_be_formatted(server, eligible, change, options, says):
    with server.state() as machine:
        machine["iomemory"]["cards"][1].update(change)
    with pytest.raises(ToolError, match=says):
        ensure_state(server, "C1", "formatted", options, check=False)
    with server.state() as machine:
        assert machine["iomemory"]["cards"][1]["formats"] == 0


def test_a_card_that_a_run_works_on_stays(server):
    with locks.drive_lock("C1", {"run_id": "night"}):
        with pytest.raises(ToolError, match="in use by a run: .*night"):
            ensure_state(server, "C1", "detached", AS_IT_IS, check=False)
    assert changing(server) == []


def test_a_card_in_use_does_not_detach(server):
    with server.state() as machine:
        machine["iomemory"]["cards"][1]["busy"] = True
    with pytest.raises(ToolError, match="is in use; unmount it"):
        ensure_state(server, "C1", "detached", AS_IT_IS, check=False)


def test_the_beacon_of_the_right_card(server, tmp_path):
    state = str(tmp_path / "state")
    assert set_beacon(server, "C1", True, state, check=True) and changing(server) == []
    assert set_beacon(server, "C1", True, state, check=False)
    assert not set_beacon(server, "C1", True, state, check=False)
    server.reboot("boot-2")
    assert not set_beacon(server, "C1", False, state, check=False)
    assert changing(server) == [["fio-beacon", "-1", "/dev/fct1"]] * 2 + [["fio-beacon", "-0", "/dev/fct1"]]
    with pytest.raises(ToolError, match="no cards"):
        set_beacon(server, "/dev/fct1", True, state, check=False)


@pytest.fixture
def loaded(fake):
    """A host with the driver loaded at its default."""
    fake.put("/sys/module/iomemory_vsl/parameters/iodrive_dma_delay", "16\n")
    return fake


def test_the_file_is_written_once(loaded):
    first = iomemory_settings.apply_dma_delay(loaded, "0")
    assert first == iomemory_settings.DmaDelay(True, None, 0, 16, True)
    assert loaded.read(iomemory_settings.MODPROBE_FILE).splitlines()[-1] == "options iomemory-vsl iodrive_dma_delay=0"
    assert iomemory_settings.apply_dma_delay(loaded, 0) == iomemory_settings.DmaDelay(False, 0, 0, 16, True)


def test_the_driver_loaded_anew_has_it(loaded):
    iomemory_settings.apply_dma_delay(loaded, "31")
    loaded.put("/sys/module/iomemory_vsl/parameters/iodrive_dma_delay", "31")
    assert iomemory_settings.apply_dma_delay(loaded, "31") == iomemory_settings.DmaDelay(False, 31, 31, 31, False)
    assert iomemory_settings.apply_dma_delay(loaded, "default") == iomemory_settings.DmaDelay(True, 31, None, 31, True)
    assert not loaded.exists(iomemory_settings.MODPROBE_FILE)
    assert not iomemory_settings.apply_dma_delay(loaded, "default").changed


def test_check_mode_writes_nothing(loaded):
    assert iomemory_settings.apply_dma_delay(loaded, "5", check=True) == iomemory_settings.DmaDelay(
        True, None, 5, 16, True
    )
    assert not loaded.exists(iomemory_settings.MODPROBE_FILE)


def test_without_a_driver_nothing_is_to_be_loaded_anew(fake):
    assert iomemory_settings.apply_dma_delay(fake, "5") == iomemory_settings.DmaDelay(True, None, 5, None, False)
    assert iomemory_settings.apply_dma_delay(fake, None) == iomemory_settings.DmaDelay(False, 5, 5, None, False)


def test_the_driver_of_the_newer_cards(fake):
    fake.put("/sys/module/iomemory_vsl4/parameters/iodrive_dma_delay", "16")
    iomemory_settings.apply_dma_delay(fake, "1")
    assert "options iomemory-vsl4 " in fake.read(iomemory_settings.MODPROBE_FILE)


@pytest.mark.parametrize("bad", ["32", "-1", "1.5", "", "x", "0 foo=1", "0\noptions other x=1"])
def test_other_values_are_refused(loaded, bad):
    with pytest.raises(ToolError, match="0 .none. to 31"):
        iomemory_settings.apply_dma_delay(loaded, bad)
    assert not loaded.exists(iomemory_settings.MODPROBE_FILE)


def test_another_file_that_sets_it_is_told(loaded):
    loaded.put("/etc/modprobe.d/fusion.conf", "# iodrive_dma_delay=1\noptions iomemory-vsl iodrive_dma_delay=3 x=1\n")
    with pytest.raises(ToolError, match="/etc/modprobe.d/fusion.conf"):
        iomemory_settings.apply_dma_delay(loaded, "0")
    loaded.put("/etc/modprobe.d/fusion.conf", "# options iomemory-vsl iodrive_dma_delay=3\n")
    assert iomemory_settings.apply_dma_delay(loaded, "0").changed
