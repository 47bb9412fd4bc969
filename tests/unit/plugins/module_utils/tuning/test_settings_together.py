# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that reset or hold each other: queues, governors, frequencies, multithreading."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.tuning import Setting
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import setting_kinds
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.tuning.tuned_hosts import (
    Sysfs,
    drift_texts,
    expand,
)


class Kernel(Sysfs):
    """A new scheduler makes a new queue; of vm.dirty_ratio and dirty_bytes the last that was written counts, and the
    other is 0.
    """

    PAIR = {
        "/proc/sys/vm/dirty_ratio": "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_bytes": "/proc/sys/vm/dirty_ratio",
    }
    QUEUE = "/sys/block/nvme0n1/queue/"

    def write(self, path, text):
        super().write(path, text)
        if path in self.PAIR:
            super().write(self.PAIR[path], "0")
        if path == self.QUEUE + "scheduler":
            super().write(self.QUEUE + "nr_requests", "1023" if text == "none" else "256")
            super().write(self.QUEUE + "iosched/fifo_batch", "16")


@pytest.fixture
def kernel(host):
    files = {
        "/proc/sys/vm/dirty_ratio": "0",
        "/proc/sys/vm/dirty_bytes": "8192",
        "/sys/block/nvme0n1/queue/nr_requests": "64",
        "/sys/block/nvme0n1/queue/iosched/fifo_batch": "4",
        "/sys/block/nvme0n1/device/queue_depth": "32",
        "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3000",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq": "800",
    }
    for path, text in files.items():
        file = host.root + path
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as out:
            out.write(text + "\n")
    return Kernel(host.root)


def everything(host):
    found = {}
    for folder, _folders, files in os.walk(host.root):
        for name in files:
            path = "/" + os.path.relpath(os.path.join(folder, name), host.root)
            found[path] = tuning.current(host, Setting("sysfs", "", path, None))
    return found


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_change_resets_comes_back_too(kernel, tmp_path, times):
    """The full set of values before is that after, also when tune ran twice."""
    record, before = str(tmp_path / "tuning.json"), everything(kernel)
    tune = {
        "sysfs": [
            {"name": "vm.dirty_ratio", "path": "/proc/sys/vm/dirty_ratio", "value": "10"},
            {
                "name": "frequency",
                "path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_min_freq",
                "value": "@cpuinfo_max_freq@",
            },
            {"name": "scheduler", "path": "/sys/block/@ssd_name@/queue/scheduler", "value": "none"},
            {"name": "nr_requests", "path": "/sys/block/@ssd_name@/queue/nr_requests", "value": "512"},
            {"name": "queue_depth", "path": "/sys/block/@ssd_name@/device/queue_depth", "value": "254"},
        ]
    }
    for _time in range(times):
        applied = tuning.apply(kernel, expand(kernel, tune), record)
    assert [item.effective for item in applied] == ["10", "3000", "none", "512", "254"]
    assert drift_texts(kernel, applied, "nvme0n1") == [] and everything(kernel) != before
    assert "failed" not in {item.outcome for item in tuning.restore(kernel, record)}
    assert everything(kernel) == before


class Ondemand(Sysfs):
    """A governor's own settings are there while a CPU has it, from its defaults on: of all CPUs (acpi-cpufreq), or of
    each.
    """

    CPU = "/sys/devices/system/cpu/"

    def write(self, path, text):
        super().write(path, text)
        if path.endswith("scaling_governor"):
            for own in (self.CPU + "cpufreq/ondemand/up_threshold", self.CPU + "cpu0/cpufreq/schedutil/rate_limit_us"):
                if text == "performance":
                    os.rename(self.root + own, self.root + own + ".gone")
                else:
                    os.rename(self.root + own + ".gone", self.root + own)
                    super().write(own, "80")


def test_what_a_governor_was_adjusted_to_comes_back_with_it(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    for path in ("cpufreq/ondemand/up_threshold", "cpu0/cpufreq/schedutil/rate_limit_us"):
        os.makedirs(os.path.dirname(host.root + Ondemand.CPU + path))
        with open(host.root + Ondemand.CPU + path, "w") as out:
            out.write("95\n")
    adjusted = Ondemand(host.root)
    before = everything(adjusted)
    tuning.apply(adjusted, expand(adjusted), record)
    assert everything(adjusted) != before
    assert {item.outcome for item in tuning.restore(adjusted, record)} == {"restored"} and everything(
        adjusted
    ) == before


class Intel(Sysfs):
    """intel_pstate up to Linux 6.9: cpuinfo_max_freq stays that with turbo, and with turbo off the driver's verify
    holds the limits down.
    """

    CPU = "/sys/devices/system/cpu/"

    def write(self, path, text):
        if (
            path.endswith(("scaling_max_freq", "scaling_min_freq"))
            and self.read(self.CPU + "intel_pstate/no_turbo") == "1"
        ):
            text = str(min(int(text), 2100000))
        super().write(path, text)


FREQUENCY = [
    {"name": "frequency", "path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/" + name, "value": "@cpuinfo_max_freq@"}
    for name in ("scaling_max_freq", "scaling_min_freq")
]
NO_TURBO = {"name": "turbo", "path": "/sys/devices/system/cpu/intel_pstate/no_turbo", "value": "1"}


@pytest.fixture
def intel(host):
    files = {"cpuinfo_max_freq": "3700000", "scaling_max_freq": "3700000", "scaling_min_freq": "800000"}
    for path, text in [("cpu0/cpufreq/" + name, text) for name, text in files.items()] + [
        ("intel_pstate/no_turbo", "0")
    ]:
        file = host.root + Intel.CPU + path
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as out:
            out.write(text + "\n")
    return Intel(host.root)


@pytest.mark.parametrize("before", ["0", "1"])
def test_the_highest_frequency_without_turbo_is_what_the_driver_takes(intel, tmp_path, before):
    record = str(tmp_path / "tuning.json")
    intel.write(NO_TURBO["path"], before)
    values_before = everything(intel)
    tune = {"sysfs": ([NO_TURBO] if before == "0" else []) + FREQUENCY}
    for outcome in ("changed", "unchanged"):
        applied = tuning.apply(intel, expand(intel, tune), record)
        assert [(item.effective, item.outcome) for item in applied][-1] == ("2100000", outcome), applied
        assert drift_texts(intel, applied, "nvme0n1") == [] and "turbo is off" in applied[-1].message
    tuning.restore(intel, record)
    assert everything(intel) == values_before


@pytest.mark.parametrize(
    ("base", "outcome", "seen"), [("2100000", "changed", "unchanged"), ("2400000", "failed", "changed")]
)
def test_a_frequency_below_that_without_turbo_is_held_down_by_something_else(intel, tmp_path, base, outcome, seen):
    with open(intel.root + intel.CPU + "cpu0/cpufreq/base_frequency", "w") as out:
        out.write(base + "\n")
    intel.write(NO_TURBO["path"], "1")
    settings = expand(intel, {"sysfs": FREQUENCY})
    assert tuning.apply(intel, settings, str(tmp_path / "tuning.json"))[-1].outcome == outcome
    assert tuning.preview(intel, settings)[-1].outcome == seen


def test_a_frequency_that_is_held_down_with_turbo_on_is_failed(intel, tmp_path):
    intel.refuses = (intel.CPU + "cpu0/cpufreq/scaling_min_freq",)
    applied = tuning.apply(intel, expand(intel, {"sysfs": FREQUENCY}), str(tmp_path / "tuning.json"))
    assert applied[-1].message.endswith("scaling_min_freq is 800000 after writing 3700000")


@pytest.mark.parametrize(
    "shown, outcome",
    [("on", "changed"), ("off", "unchanged"), ("forceoff", "unchanged"), ("notsupported", "not_applicable")],
)
def test_multithreading_that_is_off_in_any_way_is_off(host, tmp_path, shown, outcome):
    os.makedirs(host.root + os.path.dirname(tuning_plan.SMT))
    with open(host.root + tuning_plan.SMT, "w") as out:
        out.write(shown + "\n")
    setting = Setting("sysfs", "smt", tuning_plan.SMT, "off")
    assert tuning.preview(host, [setting])[0].outcome == outcome
    assert tuning.apply(host, [setting], str(tmp_path / "tuning.json"))[0].outcome == outcome


class Threads(Sysfs):
    """SMT off takes CPUs 2 and 3 away, also from cpusets of cgroup v1, where they do not come back; SMT on brings every
    CPU on.

    A cpuset takes no CPU that its parent does not have.
    """

    SET = "/sys/fs/cgroup/cpuset/"

    def write(self, path, text):
        if path == self.SET + "vm/0a1b/cpuset.cpus" and text > self.read(self.SET + "vm/cpuset.cpus"):
            raise OSError(errno.EACCES, "Permission denied")
        super().write(path, text)
        if path == tuning_plan.SMT:
            for cpu in (2, 3):
                super().write(f"/sys/devices/system/cpu/cpu{cpu}/online", "01"[text == "on"])
        if path == tuning_plan.SMT and text == "off":
            for where in ("vm", "vm/0a1b"):
                super().write(self.SET + where + "/cpuset.cpus", "0-1")


def test_with_multithreading_come_back_the_cpusets_and_the_cpus_that_were_off(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    files = {tuning_plan.SMT: "on", Threads.SET + "vm/cpuset.cpus": "0-3", Threads.SET + "vm/0a1b/cpuset.cpus": "0-3"}
    files.update({f"/sys/devices/system/cpu/cpu{cpu}/online": "110"[cpu - 1] for cpu in (1, 2, 3)})
    for path, text in files.items():
        os.makedirs(os.path.dirname(host.root + path), exist_ok=True)
        with open(host.root + path, "w") as out:
            out.write(text + "\n")
    threads = Threads(host.root)
    before = everything(threads)
    tune = {"sysfs": [{"name": "smt", "path": tuning_plan.SMT, "value": "off"}]}
    tuning.apply(threads, tuning_plan.early(threads, base.parse(Tune, tune)), record)
    assert everything(threads) != before
    assert {item.outcome for item in tuning.restore(threads, record)} == {"restored"}
    assert everything(threads) == before


def test_a_cpu_that_is_off_is_left_alone(host):
    """Linux 4.18 shows its last governor, and refuses a new one with EINVAL."""
    online = host.root + "/sys/devices/system/cpu/online"
    with open(online, "w") as out:
        out.write("0\n")
    assert [item.path for item in expand(host) if item.name == "governor"] == [
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    ]


def test_with_native_multipath_the_queue_of_the_path_is_tuned(host, tmp_path):
    """The head takes bios only: requests are queued, merged and scheduled at its hidden path."""
    for name in ("scheduler", "nomerges"):
        file = host.root + "/sys/block/nvme0c3n1/queue/" + name
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as out:
            out.write("none [mq-deadline]" if name == "scheduler" else "0")
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    assert {(item.path.split("/")[3], item.device) for item in applied if item.device} == {("nvme0c3n1", "nvme0n1")}
    assert (
        host.read("/sys/block/nvme0n1/queue/nomerges") == "0"
        and host.read("/sys/block/nvme0c3n1/queue/nomerges") == "2"
    )
    host.write("/sys/block/nvme0c3n1/queue/nomerges", "0")
    assert drift_texts(host, applied, "nvme0n1") == ["/sys/block/nvme0c3n1/queue/nomerges is 0, tuned to 2"]


@pytest.mark.parametrize("knob", ["intel_pstate/no_turbo", "cpufreq/boost"])
def test_turbo_may_reset_the_limits_and_the_boost_of_each_cpu(host, knob):
    for name in ("scaling_max_freq", "scaling_min_freq", "boost"):
        with open(host.root + Intel.CPU + "cpu10/cpufreq/" + name, "w") as out:
            out.write("1")
    touched = setting_kinds.side_effects(host, Setting("sysfs", "turbo", Intel.CPU + knob, "1"))
    assert [(item.path[len(Intel.CPU) :], item.wanted) for item in touched] == [
        ("cpu10/cpufreq/" + name, None) for name in ("scaling_max_freq", "scaling_min_freq", "boost")
    ]
