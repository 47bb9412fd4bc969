# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that is tuned."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.tuning.tuned_hosts import Sysfs


@pytest.fixture
def host(tmp_path):
    root = tmp_path / "root"
    for path, text in {
        tuning.BOOT_ID: "boot-1",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
        "/sys/devices/system/cpu/cpu10/cpufreq/scaling_governor": "performance",
        "/sys/block/nvme0n1/queue/scheduler": "none [mq-deadline]",
        "/sys/block/nvme0n1/queue/nomerges": "0",
    }.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return Sysfs(str(root))
