# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import SysfsFile, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import setting_kinds, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.plan import TuningPlan

GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PLAN = TuningPlan(Tune(sysfs=[SysfsFile("governor", GOVERNOR, "performance")]), [], 1)
HANGING = GOVERNOR + " is hanging, tuned to performance"


@pytest.fixture
def tuned(tmp_path, monkeypatch, files_by_a_child):
    """A host with one setting, whose file answers within a second or not at all."""
    root = tmp_path / "root"
    for path, text in {BOOT_ID: "boot-1", GOVERNOR: "powersave"}.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(text + "\n")
    monkeypatch.setattr(setting_kinds, "HOST_TIMEOUT_S", 1.0)
    tuned = tuned_host.TunedHost(Host(str(root)), PLAN, str(tmp_path / "tuning.json"))
    assert [item.outcome for item in tuned.apply()] == ["changed"]
    yield tuned
    tuned.release()


@pytest.fixture
def governor(tmp_path):
    return tmp_path / "root" / GOVERNOR.lstrip("/")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as told:
        return set(told.read().split())


def test_a_setting_that_gives_no_answer_is_told_and_waited_for_once(tuned, governor):
    """A queue's attribute, or a governor, may block who reads it: the round that looks for drift has to go on."""
    assert tuned.drifted("nvme0n1") == tuned.drifted("nvme0n1", cheap=True) == []
    governor.unlink()
    os.mkfifo(governor)  # which blocks who opens it
    began = time.monotonic()
    assert tuned.drifted("nvme0n1", cheap=True) == [HANGING]
    waited = time.monotonic() - began
    assert waited < 20
    began = time.monotonic()
    assert tuned.drifted("nvme0n1", cheap=True) == []
    assert time.monotonic() - began < 0.5
    # Another drive's tests have the same host.
    assert tuned.drifted("nvme1n1", cheap=True) == [HANGING]
    governor.unlink()
    governor.write_text("powersave\n")
    assert tuned.drifted("nvme0n1", cheap=True) == []
    assert tuned.drifted("nvme0n1") == [GOVERNOR + " is powersave, tuned to performance"]


def test_looking_for_drift_leaves_no_process_behind(tuned):
    before = children()
    for device in ("nvme0n1", "nvme1n1"):
        for cheap in (False, True, True):
            tuned.drifted(device, cheap)
    assert len(children() - before) == 2  # one for each drive, whatever the number of looks
    tuned.release()
    assert children() <= before
