# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import sys

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory_settings
from ansible_collections.ssdlab.fleet.plugins.modules import iomemory, rssdm

sys.path.insert(0, os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators"))
import emulator


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run a module's main on emulated drives: a P420m S1, two cards C0 and C1; returns its result."""
    drives = {
        "rssdm": [emulator.p420m(0, "OTHER"), emulator.p420m(1, "S1")],
        "cards": [emulator.card(0, "C0"), emulator.card(1, "C1")],
    }
    for name, value in emulator.start(
        str(tmp_path / "machine.json"), bugreport_dir=str(tmp_path), pci_check="oversubscribed", **drives
    ).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    for name in ("MODPROBE_FOLDER", "MODPROBE_FILE"):
        monkeypatch.setattr(iomemory_settings, name, str(tmp_path) + getattr(iomemory_settings, name))

    def run(module, check=False, **arguments):
        given = dict(arguments, state_dir=str(tmp_path / "state"), _ansible_check_mode=check, _ansible_diff=True)
        with patch_module_args(given):
            with pytest.raises(SystemExit):
                module.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_rssdm_sets_once_and_says_that_a_power_cycle_is_needed(call):
    planned = call(rssdm, check=True, serial="S1", queue_depth=256)
    done = call(rssdm, serial="S1", queue_depth=256)
    again = call(rssdm, serial="S1", queue_depth=256)
    assert [result["changed"] for result in (planned, done, again)] == [True, True, False]
    for result in (planned, done, again):
        assert result["pending"] == {"interrupt_coalescing": "0xD801F"} and result["power_cycle_required"] is True
        assert result["current"] == {"interrupt_coalescing": "0xD200F", "power_limiting": False, "write_cache": True}
    assert done["drive"]["drive_id"] == "1" and done["commands"] == planned["commands"] == [
        ["rssdm", "-M", "-i", "0xD801F", "-n", "1"]
    ]
    assert (done["diff"]["before"]["interrupt_coalescing"], done["diff"]["after"]["interrupt_coalescing"]) == (
        "0xD200F",
        "0xD801F",
    )
    assert again["diff"]["before"] == again["diff"]["after"]


def test_rssdm_restores_what_it_changed_without_being_told_which_drives(call):
    assert call(rssdm, state="restored")["restored"] == []
    call(rssdm, serial="S1", queue_depth=256)
    planned, done, again = (
        call(rssdm, check=True, state="restored"),
        call(rssdm, state="restored"),
        call(rssdm, state="restored"),
    )
    assert [result["changed"] for result in (planned, done, again)] == [True, True, False]
    assert planned["commands"] == done["commands"] == [["rssdm", "-M", "-i", "0xD200F", "-n", "1"]]
    (drive,) = again["restored"]
    assert (
        drive["serial"] == "S1"
        and drive["pending"] == {"interrupt_coalescing": "0xD200F"}
        and again["power_cycle_required"] is True
    )


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"interrupt_coalescing": "0xD800F"}, "TN-FD-15 allows three values"),
        ({"write_cache": False, "write_cache_flag": "-w"}, "P420m's write cache"),
        ({"interrupt_coalescing": "0xD801F", "queue_depth": 1}, "mutually exclusive"),
        ({"power_limiting": "perhaps"}, "boolean"),
        ({"serial": "0"}, "lists no drives"),
    ],
)
def test_rssdm_refuses(call, arguments, says):
    result = call(rssdm, **dict({"serial": "S1"}, **arguments))
    assert result["failed"] is True and says in result["msg"]


def test_iomemory_tells_of_the_cards(call):
    seen = call(iomemory, pci_check=True)
    assert [(card["serial"], card["state"], card["size_pct"]) for card in seen["cards"]] == [
        ("C0", "attached", 100),
        ("C1", "attached", 100),
    ]
    assert seen["changed"] is False and [finding["level"] for finding in seen["findings"]] == [
        "blocks",
        "blocks",
        "warning",
    ]
    assert "bugreport" not in seen


def test_iomemory_attaches_and_detaches_once(call):
    planned = call(iomemory, check=True, serial="C1", state="detached")
    assert planned["changed"] and planned["cards"][1]["state"] == "attached"
    done = call(iomemory, serial="C1", state="detached")
    assert (done["changed"], done["cards"][1]["state"], done["commands"]) == (
        True,
        "detached",
        [["fio-detach", "/dev/fct1"]],
    )
    assert (done["diff"]["before"]["state"], done["diff"]["after"]["state"]) == ("attached", "detached")
    assert call(iomemory, serial="C1", state="detached")["changed"] is False


def test_iomemory_never_formats_what_the_guard_does_not_know(call):
    for mode in ("plan", "destructive"):
        result = call(iomemory, serial="C1", state="formatted", sector_bytes=4096, size_pct=80, mode=mode)
        assert result["failed"] is True and "may not be formatted. not_found" in result["msg"]
    assert call(iomemory)["cards"][1]["sector_bytes"] == 512


def test_iomemory_keeps_the_delay_and_the_report(call, tmp_path):
    planned = call(iomemory, check=True, dma_delay="0", bugreport=True)
    assert planned["changed"] and "bugreport" not in planned and not os.path.exists(iomemory_settings.MODPROBE_FILE)
    done = call(iomemory, dma_delay="0", bugreport=True, serial="C1", beacon=True)
    assert done["dma_delay"]["configured"] == 0 and done["bugreport"].startswith("fio-bugreport-")
    assert call(iomemory, dma_delay="0", serial="C1", beacon=True)["changed"] is False


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"dma_delay": "32"}, "0 (none) to 31"),
        ({"state": "attached"}, "serial"),
        ({"serial": "C1", "state": "formatted", "sector_bytes": 520}, "value of sector_bytes"),
        ({"serial": "C", "state": "attached"}, "no cards with the serial C"),
        ({"size_pct": 80, "serial": "C1"}, "state"),
    ],
)
def test_iomemory_refuses(call, arguments, says):
    result = call(iomemory, **arguments)
    assert result["failed"] is True and says in result["msg"]
