# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with files of /sys and /proc to tune, and what its kernel does when they are written."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import tuned_host

TUNE = {
    "sysfs": [
        {
            "name": "governor",
            "path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
            "value": "performance",
        },
        {"name": "scheduler", "path": "/sys/block/@ssd_name@/queue/scheduler", "value": "none"},
        {"name": "nomerges", "path": "/sys/block/@ssd_name@/queue/nomerges", "value": 2},
        {"name": "absent", "path": "/sys/block/@ssd_name@/queue/absent", "value": 1},
    ]
}


class Sysfs(Host):
    """A fixture tree; the scheduler's file shows its choice in brackets, as the kernel's does."""

    refuses = ()
    hangs = ()

    def write(self, path, text):
        if path in self.hangs:
            raise Hangs("no answer from " + path)
        if path in self.refuses:
            return
        if path.endswith("scheduler"):
            text = " ".join(f"[{name}]" if name == text else name for name in ("none", "mq-deadline"))
        super().write(path, text)


def expand(host, tune=None):
    """The settings of a plan's `tune` for one drive."""
    drive = tuning_plan.DriveToTune("S1", parse({"serial": "S1"}))
    targets = [tuning_plan.Target(drive, "nvme0n1", None, "EXAMPLE", None)]
    plan = tuning_plan.TuningPlan(base.parse(Tune, tune or TUNE), [drive], 1)
    return tuning_plan.expand(host, plan.tune, targets, tuning_plan.Places(host, plan, targets))


def values(host):
    return {
        path: host.read(path) for path in host.glob("/sys/block/*/queue/*") + host.glob("/sys/devices/system/cpu/*/*/*")
    }


def drift_texts(host, applied, device):
    """What is not as it was asked for, as sentences."""
    return [item.text for item in tuned_host.drifted_settings(host, applied, device)]
