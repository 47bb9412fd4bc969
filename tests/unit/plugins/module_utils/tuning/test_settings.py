# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import os
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import sysfs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import kinds
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning

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


SLOW = "no answer in 0.5 s from writing none to /sys/block/nvme0n1/queue/scheduler"


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


@pytest.fixture
def blocked(host, files_by_a_child, monkeypatch):
    """Makes a file one that blocks who writes to it, as the kernel does while a queue is frozen for I/O that never
    ends: it is a pipe, which lets some read.
    """
    monkeypatch.setattr(kinds, "DEVICE_TIMEOUT_S", 0.5)
    monkeypatch.setattr(kinds, "HOST_TIMEOUT_S", 0.5)

    def block(path, value, reads):
        os.unlink(host.root + path)
        os.mkfifo(host.root + path)
        threading.Thread(target=serve, args=(host.root + path, value, reads), daemon=True).start()

    return block


def serve(pipe, value, reads):
    for _time in range(reads):
        with open(pipe, "w") as out:
            out.write(value)
        # The reader sees the end before the next one's value.
        time.sleep(0.1)


def unblock(host, path, value):
    os.unlink(host.root + path)
    with open(host.root + path, "w") as out:
        out.write(value)


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


def expand(host, tune=None):
    """The settings of a plan's `tune` for one drive."""
    selector = {"serial": "S1"}
    targets = [tuning_plan.Target("S1", selector, "nvme0n1", None, {"model": "EXAMPLE"}, entry.options(selector))]
    plan = {"tune": tune or TUNE, "parallel_drives": 1}
    return tuning_plan.expand(host, plan["tune"], targets, tuning_plan.Places(host, plan, targets))


def values(host):
    return {
        path: host.read(path) for path in host.glob("/sys/block/*/queue/*") + host.glob("/sys/devices/system/cpu/*/*/*")
    }


def test_apply_verifies_and_restore_brings_everything_back(host, tmp_path):
    record, before = str(tmp_path / "tuning.json"), values(host)
    applied = tuning.apply(host, expand(host), record)
    assert [(item["name"], item["effective"], item["outcome"]) for item in applied] == [
        ("governor", "performance", "changed"),
        ("governor", "performance", "unchanged"),
        ("scheduler", "none", "changed"),
        ("nomerges", "2", "changed"),
        ("absent", None, "not_applicable"),
    ]
    assert tuning.drifted(host, applied, "nvme0n1") == []
    assert {item["outcome"] for item in tuning.restore(host, record)} == {"restored"}
    assert (values(host), os.path.exists(record)) == (before, False)
    assert tuning.restore(host, record) == []


def test_the_record_is_there_before_the_first_change(host, tmp_path, monkeypatch):
    record = str(tmp_path / "tuning.json")
    seen = []
    monkeypatch.setattr(host, "write", lambda path, text: seen.append(json.load(open(record))["settings"]))
    tuning.apply(host, expand(host), record)
    assert [len(settings) for settings in seen] == [3, 3, 3]  # what the scheduler resets is not there in this tree


def test_a_second_apply_does_not_record_its_own_values(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    settings = expand(host)
    tuning.apply(host, settings, record)
    tuning.apply(host, settings, record)
    tuning.restore(host, record)
    assert host.read("/sys/block/nvme0n1/queue/nomerges") == "0"


def test_a_value_that_does_not_take_is_failed_and_says_what_is_in_force(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    (failed,) = [item for item in applied if item["outcome"] == "failed"]
    assert failed["message"] == "/sys/block/nvme0n1/queue/nomerges is 0 after writing 2"


def test_drift_is_noticed(host, tmp_path):
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    host.write("/sys/block/nvme0n1/queue/nomerges", "1")
    assert tuning.drifted(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 1, tuned to 2"]


def test_after_a_reboot_only_the_record_goes(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    host.write(tuning.BOOT_ID, "boot-2")
    assert {item["message"] for item in tuning.restore(host, record)} == {"by a reboot"}
    assert host.read("/sys/block/nvme0n1/queue/nomerges") == "2"


def test_what_cannot_be_put_back_keeps_its_record(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    assert "failed" in {item["outcome"] for item in tuning.restore(host, record)}
    assert os.path.exists(record)


GOVERNOR, SCHEDULER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/sys/block/nvme0n1/queue/scheduler"


@pytest.mark.parametrize(
    "path, shown, reads, outcomes, said",
    [
        (
            SCHEDULER,
            "none",
            1,
            ["restored", "failed", "failed"],
            "no answer in 0.5 s from writing mq-deadline to " + SCHEDULER,
        ),
        (SCHEDULER, "none", 0, ["restored", "failed", "failed"], "no answer in 0.5 s from reading " + SCHEDULER),
        (
            GOVERNOR,
            "performance",
            1,
            ["failed", "restored", "restored"],
            "no answer in 0.5 s from writing powersave to " + GOVERNOR,
        ),
        (GOVERNOR, "performance", 0, ["failed", "restored", "restored"], "no answer in 0.5 s from reading " + GOVERNOR),
    ],
)
def test_what_hangs_does_not_keep_the_rest_from_being_put_back(
    host, tmp_path, blocked, path, shown, reads, outcomes, said
):
    """A setting of a drive, or of the whole host, that blocks who reads or writes it: the job must end, and another
    play restore it.
    """
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    blocked(path, shown, reads)
    began = time.monotonic()
    done = tuning.restore(host, record)
    assert time.monotonic() - began < 10
    assert [(item["name"], item["outcome"]) for item in done] == list(
        zip(("governor", "scheduler", "nomerges"), outcomes)
    )
    # One wait for the drive, not one for each of its settings.
    failed = [item["message"] for item in done if item["outcome"] == "failed"]
    assert failed == [said, "nvme0n1 hangs"][: len(failed)] and os.path.exists(record)
    unblock(host, path, shown)
    assert {item["outcome"] for item in tuning.restore(host, record)} == {"restored"} and not os.path.exists(record)


def test_one_kind_of_setting_that_hangs_is_waited_for_once(host, tmp_path, blocked):
    """A server has as many governors as CPUs."""
    record = str(tmp_path / "tuning.json")
    other = GOVERNOR.replace("cpu0", "cpu1")
    os.makedirs(os.path.dirname(host.root + other))
    with open(host.root + other, "w") as out:
        out.write("powersave")
    tuning.apply(host, expand(host), record)
    for path in (GOVERNOR, other):
        blocked(path, "performance", 1)
    done = tuning.restore(host, record)
    assert sorted(item["message"] for item in done if item["outcome"] == "failed") == [
        "governor hangs",
        "no answer in 0.5 s from writing powersave to " + GOVERNOR,
    ]


def test_a_write_that_blocks_is_given_up_and_the_rest_is_tuned(host, tmp_path, blocked):
    """As the kernel does while a queue is frozen for I/O that never ends; once the drive answers, the write is done."""
    record, hung = str(tmp_path / "tuning.json"), set()
    before, began = values(host), time.monotonic()
    blocked(SCHEDULER, "mq-deadline", 2)
    done = tuning.apply(host, expand(host), record, hung=hung)
    assert time.monotonic() - began < 10 and hung == {"nvme0n1"}
    assert [(item["name"], item["outcome"]) for item in done if item["outcome"] in ("changed", "failed")] == [
        ("governor", "changed"),
        ("scheduler", "failed"),
        ("nomerges", "failed"),
    ]
    # One wait for the drive, not one for each of its settings.
    assert [item["message"] for item in done if item["outcome"] == "failed"] == [SLOW, "nvme0n1 hangs"]
    # What still waits may yet be done: the record stays, and the next restore finds it.
    assert {item["outcome"] for item in tuning.restore(host, record, hanging=hung)} == {
        "restored",
        "failed",
    } and os.path.exists(record)
    unblock(host, SCHEDULER, "none")
    assert {item["outcome"] for item in tuning.restore(host, record)} == {"restored"} and not os.path.exists(record)
    assert {path: sysfs.effective(text) for path, text in values(host).items()} == {
        path: sysfs.effective(text) for path, text in before.items()
    }


def test_what_is_not_back_yet_stays_what_to_go_back_to(host, tmp_path):
    """A restore that fails, then another start: the first values must not be lost."""
    record, before = str(tmp_path / "tuning.json"), values(host)
    settings = expand(host)
    tuning.apply(host, settings, record)
    host.hangs = (SCHEDULER,)
    tuning.restore(host, record)
    host.hangs = ()
    tuning.apply(host, settings, record)
    assert {item["outcome"] for item in tuning.restore(host, record)} == {"restored"}
    assert {path: sysfs.effective(text) for path, text in values(host).items()} == {
        path: sysfs.effective(text) for path, text in before.items()
    }


def test_a_setting_that_failed_counts_for_its_own_drive_and_not_for_another(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    assert tuning.drifted(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 0, tuned to 2"]
    assert tuning.drifted(host, applied, "nvme1n1") == []


def test_why_the_kernel_refused_a_value_and_what_to_do_is_told_of_every_test(host, tmp_path):
    file = host.root + "/sys/block/nvme0n1/queue/nr_requests"
    with open(file, "w") as out:
        out.write("1023")
    write = host.write

    def refuse(path, text):
        if path.endswith("nr_requests"):
            raise OSError(errno.EINVAL, "Invalid argument")
        write(path, text)

    host.write = refuse
    tune = {"sysfs": [{"name": "nr_requests", "path": "/sys/block/@ssd_name@/queue/nr_requests", "value": 4096}]}
    applied = tuning.apply(host, expand(host, tune), str(tmp_path / "tuning.json"))
    (told,) = tuning.drifted(host, applied, "nvme0n1")
    assert told.endswith(
        "nr_requests is 1023, tuned to 4096 (Invalid argument: the drive's queue takes fewer; lower "
        "tune_queue.nr_requests)"
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
            found[path] = tuning.current(host, {"kind": "sysfs", "path": path})
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
        ]
    }
    for _time in range(times):
        applied = tuning.apply(kernel, expand(kernel, tune), record)
    assert [item["effective"] for item in applied] == ["10", "3000", "none", "512"]
    assert tuning.drifted(kernel, applied, "nvme0n1") == [] and everything(kernel) != before
    assert "failed" not in {item["outcome"] for item in tuning.restore(kernel, record)}
    assert everything(kernel) == before


def test_what_a_purge_reset_is_made_again_and_what_never_worked_is_not(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    host.write("/sys/block/nvme0n1/queue/scheduler", "mq-deadline")
    again = tuning.reapply(host, applied, "nvme0n1")
    assert [(item["name"], item["before"], item["effective"], item["outcome"]) for item in again] == [
        ("scheduler", "mq-deadline", "none", "changed")
    ]
    assert tuning.reapply(host, applied, "nvme0n1") == []


def test_many_that_drift_alike_are_told_in_one_sentence(host, tmp_path):
    for cpu in (1, 2):
        file = host.root + f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        os.makedirs(os.path.dirname(file))
        with open(file, "w") as out:
            out.write("performance")
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    for cpu in (0, 1, 2):
        host.write(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave")
    (told,) = tuning.drifted(host, applied, "nvme0n1")
    assert told.endswith("cpu0/cpufreq/scaling_governor (and 2 more like it) is powersave, tuned to performance")


def test_a_preview_changes_nothing_and_tells_what_would(host):
    before = values(host)
    seen = tuning.preview(host, expand(host))
    assert [item["outcome"] for item in seen] == ["changed", "unchanged", "changed", "changed", "not_applicable"]
    assert values(host) == before


@pytest.mark.parametrize(
    "path, number, outcome, words",
    [
        ("/sys/module/pcie_aspm/parameters/policy", errno.EPERM, "not_applicable", "firmware"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", errno.EINVAL, "failed", "no such governor"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", errno.EBUSY, "failed", "governor"),
        ("/sys/block/nvme0n1/queue/nomerges", errno.EROFS, "not_applicable", "Read-only"),
        ("/sys/block/nvme0n1/queue/nomerges", errno.EINVAL, "failed", "Invalid argument"),
    ],
)
def test_what_the_kernel_refuses_is_told_in_words(host, tmp_path, path, number, outcome, words):
    def refuse(*_given):
        raise OSError(number, os.strerror(number))

    file = host.root + path
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w") as out:
        out.write("x")
    host.write = refuse
    setting = {"kind": "sysfs", "name": "n", "path": path, "wanted": "y", "device": None}
    (item,) = tuning.apply(host, [setting], str(tmp_path / "tuning.json"))
    assert item["outcome"] == outcome and words in item["message"]


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
    assert {item["outcome"] for item in tuning.restore(adjusted, record)} == {"restored"} and everything(
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
        assert [(item["effective"], item["outcome"]) for item in applied][-1] == ("2100000", outcome), applied
        assert tuning.drifted(intel, applied, "nvme0n1") == [] and "turbo is off" in applied[-1]["message"]
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
    assert tuning.apply(intel, settings, str(tmp_path / "tuning.json"))[-1]["outcome"] == outcome
    assert tuning.preview(intel, settings)[-1]["outcome"] == seen


def test_a_frequency_that_is_held_down_with_turbo_on_is_failed(intel, tmp_path):
    intel.refuses = (intel.CPU + "cpu0/cpufreq/scaling_min_freq",)
    applied = tuning.apply(intel, expand(intel, {"sysfs": FREQUENCY}), str(tmp_path / "tuning.json"))
    assert applied[-1]["message"].endswith("scaling_min_freq is 800000 after writing 3700000")


@pytest.mark.parametrize(
    "shown, outcome",
    [("on", "changed"), ("off", "unchanged"), ("forceoff", "unchanged"), ("notsupported", "not_applicable")],
)
def test_multithreading_that_is_off_in_any_way_is_off(host, tmp_path, shown, outcome):
    os.makedirs(host.root + os.path.dirname(tuning_plan.SMT))
    with open(host.root + tuning_plan.SMT, "w") as out:
        out.write(shown + "\n")
    setting = {"kind": "sysfs", "name": "smt", "path": tuning_plan.SMT, "wanted": "off", "device": None}
    assert tuning.preview(host, [setting])[0]["outcome"] == outcome
    assert tuning.apply(host, [setting], str(tmp_path / "tuning.json"))[0]["outcome"] == outcome


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
    tuning.apply(threads, tuning_plan.early(threads, tune), record)
    assert everything(threads) != before
    assert {item["outcome"] for item in tuning.restore(threads, record)} == {"restored"}
    assert everything(threads) == before


def test_a_cpu_that_is_off_is_left_alone(host):
    """Linux 4.18 shows its last governor, and refuses a new one with EINVAL."""
    online = host.root + "/sys/devices/system/cpu/online"
    with open(online, "w") as out:
        out.write("0\n")
    assert [item["path"] for item in expand(host) if item["name"] == "governor"] == [
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
    assert {(item["path"].split("/")[3], item["device"]) for item in applied if item["device"]} == {
        ("nvme0c3n1", "nvme0n1")
    }
    assert (
        host.read("/sys/block/nvme0n1/queue/nomerges") == "0"
        and host.read("/sys/block/nvme0c3n1/queue/nomerges") == "2"
    )
    host.write("/sys/block/nvme0c3n1/queue/nomerges", "0")
    assert tuning.drifted(host, applied, "nvme0n1") == ["/sys/block/nvme0c3n1/queue/nomerges is 0, tuned to 2"]


@pytest.mark.parametrize("knob", ["intel_pstate/no_turbo", "cpufreq/boost"])
def test_turbo_may_reset_the_limits_and_the_boost_of_each_cpu(host, knob):
    for name in ("scaling_max_freq", "scaling_min_freq", "boost"):
        with open(host.root + Intel.CPU + "cpu10/cpufreq/" + name, "w") as out:
            out.write("1")
    touched = kinds.side_effects(
        host, {"kind": "sysfs", "name": "turbo", "path": Intel.CPU + knob, "wanted": "1", "device": None}
    )
    assert [(item["path"][len(Intel.CPU) :], item["wanted"]) for item in touched] == [
        ("cpu10/cpufreq/" + name, None) for name in ("scaling_max_freq", "scaling_min_freq", "boost")
    ]
