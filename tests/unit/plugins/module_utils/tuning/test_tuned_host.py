# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import SysfsFile, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.tuning import Setting
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import setting_kinds, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.plan import TuningPlan

GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PLAN = TuningPlan(Tune(sysfs=[SysfsFile("governor", GOVERNOR, "performance")]), [], 1)
HANGING = GOVERNOR + " is hanging, tuned to performance"


@pytest.fixture
def tuned(tmp_path, monkeypatch, files_by_a_child):
    """A host with one setting, whose file answers within three seconds or not at all."""
    root = tmp_path / "root"
    for path, text in {BOOT_ID: "boot-1", GOVERNOR: "powersave"}.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(text + "\n")
    monkeypatch.setattr(setting_kinds, "HOST_TIMEOUT_S", 3.0)
    tuned = tuned_host.TunedHost(Host(str(root)), PLAN, str(tmp_path / "tuning.json"))
    assert [item.outcome for item in tuned.apply()] == ["changed"]
    yield tuned
    tuned.release()


@pytest.fixture
def governor(tmp_path):
    return tmp_path / "root" / GOVERNOR.lstrip("/")


def texts(drift):
    return [item.text for item in drift]


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as told:
        return set(told.read().split())


def test_a_setting_that_gives_no_answer_is_told_and_waited_for_once(tuned, governor):
    """A queue's attribute, or a governor, may block who reads it: the round that looks for drift has to go on."""
    assert tuned.drifted("nvme0n1") == tuned.drifted("nvme0n1", cheap=True) == []
    governor.unlink()
    os.mkfifo(governor)  # which blocks who opens it
    began = time.monotonic()
    assert texts(tuned.drifted("nvme0n1", cheap=True)) == [HANGING]
    waited = time.monotonic() - began
    assert waited < 20
    began = time.monotonic()
    assert tuned.drifted("nvme0n1", cheap=True) == []
    assert time.monotonic() - began < 0.5
    # Another drive's tests have the same host.
    assert texts(tuned.drifted("nvme1n1", cheap=True)) == [HANGING]
    governor.unlink()
    governor.write_text("powersave\n")
    assert tuned.drifted("nvme0n1", cheap=True) == []
    assert texts(tuned.drifted("nvme0n1")) == [GOVERNOR + " is powersave, tuned to performance"]


def test_looking_for_drift_leaves_no_process_behind(tuned):
    before = children()
    for device in ("nvme0n1", "nvme1n1"):
        for cheap in (False, True, True):
            tuned.drifted(device, cheap)
    assert len(children() - before) == 2  # one for each drive, whatever the number of looks
    tuned.release()
    assert children() <= before


def test_what_another_drives_look_found_and_made_again_was_wrong_for_this_drive_too(tuned, governor):
    for device in ("nvme0n1", "nvme1n1"):
        assert tuned.drifted_since_last(device) == []
    governor.write_text("powersave\n")
    (found,) = tuned.drifted_since_last("nvme0n1")
    assert found.bears and found.of_host and found.text == GOVERNOR + " is powersave, tuned to performance"
    assert [item.effective for item in tuned.reapply("nvme0n1")] == ["performance"]
    assert tuned.drifted_since_last("nvme1n1") == [found]
    for device in ("nvme0n1", "nvme1n1"):
        assert tuned.drifted_since_last(device) == []


def test_what_a_drive_made_again_before_its_test_was_wrong_for_another_drive_too(tuned, governor):
    for device in ("nvme0n1", "nvme1n1"):
        assert tuned.drifted_since_last(device) == []
    governor.write_text("powersave\n")
    assert [item.effective for item in tuned.reapply("nvme0n1")] == ["performance"]
    assert texts(tuned.drifted_since_last("nvme1n1")) == [GOVERNOR + " is powersave, tuned to performance"]
    assert tuned.drifted_since_last("nvme0n1") == []


INTERRUPTS = """            CPU0       CPU1
  24:          7          0   PCI-MSI 524288-edge      nvme0q0
  25:       9000          0   PCI-MSI 524289-edge      nvme0q1
 124:          1          0   PCI-MSI 32768-edge       eth0-rx-0
"""


@pytest.mark.parametrize(
    ("kind", "path", "bears"),
    [
        ("sysfs", GOVERNOR, True),
        ("sysfs", "/sys/block/nvme0n1/queue/nomerges", True),
        ("sysfs", "/proc/sys/vm/swappiness", False),
        ("service", "irqbalance", False),
        ("write_cache", "write cache of /dev/nvme0n1", True),
        ("irq", "/proc/irq/25/smp_affinity_list", True),
        # Only an admin command ends with it.
        ("irq", "/proc/irq/24/smp_affinity_list", False),
        ("irq", "/proc/irq/26/smp_affinity_list", True),
    ],
)
def test_only_settings_that_bear_on_figures_disturb(tmp_path, kind, path, bears):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/interrupts").write_text(INTERRUPTS)
    assert tuned_host.bears_on_figures(Host(str(tmp_path)), Setting(kind, "name", path, "1")) == bears
