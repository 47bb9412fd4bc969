# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that hang, fail or do not come back: the rest is tuned and put back, and what is missing is told."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import sysfs
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.tuning import Setting
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import setting_kinds
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.tuning.tuned_hosts import (
    drift_texts,
    expand,
    values,
)

SLOW = "no answer in 2 s from writing none to /sys/block/nvme0n1/queue/scheduler"


@pytest.fixture
def blocked(host, files_by_a_child, monkeypatch):
    """Makes a file one that blocks who writes to it, as the kernel does while a queue is frozen for I/O that never
    ends: it is a pipe, which lets some read.
    """
    monkeypatch.setattr(setting_kinds, "DEVICE_TIMEOUT_S", 2.0)
    monkeypatch.setattr(setting_kinds, "HOST_TIMEOUT_S", 2.0)

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


def test_what_cannot_be_put_back_keeps_its_record(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    assert "failed" in {item.outcome for item in tuning.restore(host, record)}
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
            "no answer in 2 s from writing mq-deadline to " + SCHEDULER,
        ),
        (SCHEDULER, "none", 0, ["restored", "failed", "failed"], "no answer in 2 s from reading " + SCHEDULER),
        (
            GOVERNOR,
            "performance",
            1,
            ["failed", "restored", "restored"],
            "no answer in 2 s from writing powersave to " + GOVERNOR,
        ),
        (GOVERNOR, "performance", 0, ["failed", "restored", "restored"], "no answer in 2 s from reading " + GOVERNOR),
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
    assert time.monotonic() - began < 120  # it would take hours; a busy machine takes some time of its own
    assert [(item.name, item.outcome) for item in done] == list(zip(("governor", "scheduler", "nomerges"), outcomes))
    # One wait for the drive, not one for each of its settings.
    failed = [item.message for item in done if item.outcome == "failed"]
    assert failed == [said, "nvme0n1 hangs"][: len(failed)] and os.path.exists(record)
    unblock(host, path, shown)
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"} and not os.path.exists(record)


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
    assert sorted(item.message for item in done if item.outcome == "failed") == [
        "governor hangs",
        "no answer in 2 s from writing powersave to " + GOVERNOR,
    ]


def test_a_write_that_blocks_is_given_up_and_the_rest_is_tuned(host, tmp_path, blocked):
    """As the kernel does while a queue is frozen for I/O that never ends; once the drive answers, the write is done."""
    record, hung = str(tmp_path / "tuning.json"), set()
    before, began = values(host), time.monotonic()
    blocked(SCHEDULER, "mq-deadline", 2)
    done = tuning.apply(host, expand(host), record, hung=hung)
    assert time.monotonic() - began < 10 and hung == {"nvme0n1"}
    assert [(item.name, item.outcome) for item in done if item.outcome in ("changed", "failed")] == [
        ("governor", "changed"),
        ("scheduler", "failed"),
        ("nomerges", "failed"),
    ]
    # One wait for the drive, not one for each of its settings.
    assert [item.message for item in done if item.outcome == "failed"] == [SLOW, "nvme0n1 hangs"]
    # What still waits may yet be done: the record stays, and the next restore finds it.
    assert {item.outcome for item in tuning.restore(host, record, hanging=hung)} == {
        "restored",
        "failed",
    } and os.path.exists(record)
    unblock(host, SCHEDULER, "none")
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"} and not os.path.exists(record)
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
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"}
    assert {path: sysfs.effective(text) for path, text in values(host).items()} == {
        path: sysfs.effective(text) for path, text in before.items()
    }


def test_a_setting_that_failed_counts_for_its_own_drive_and_not_for_another(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    assert drift_texts(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 0, tuned to 2"]
    assert drift_texts(host, applied, "nvme1n1") == []


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
    (told,) = drift_texts(host, applied, "nvme0n1")
    assert told.endswith(
        "nr_requests is 1023, tuned to 4096 (Invalid argument: the drive's queue takes fewer; lower "
        "tune_queue.nr_requests)"
    )


@pytest.mark.parametrize(
    "path, number, outcome, words",
    [
        ("/sys/module/pcie_aspm/parameters/policy", errno.EPERM, "not_applicable", "firmware"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", errno.EINVAL, "failed", "no such governor"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", errno.EBUSY, "failed", "governor"),
        ("/sys/block/nvme0n1/queue/nomerges", errno.EROFS, "not_applicable", "Read-only"),
        ("/sys/block/nvme0n1/queue/nomerges", errno.EINVAL, "failed", "Invalid argument"),
        ("/sys/block/sda/device/queue_depth", errno.EINVAL, "failed", "lower tune_queue.queue_depth"),
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
    setting = Setting("sysfs", "n", path, "y")
    (item,) = tuning.apply(host, [setting], str(tmp_path / "tuning.json"))
    assert item.outcome == outcome and words in item.message


def test_what_could_only_be_read_and_another_changed_meanwhile_is_not_ours_to_put_back(host, tmp_path):
    """As in a container, whose /proc/sys is the machine's and read-only."""

    def refuse(*_given):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    path, record, write = "/proc/sys/vm/swappiness", str(tmp_path / "tuning.json"), host.write
    os.makedirs(host.root + "/proc/sys/vm", exist_ok=True)
    with open(host.root + path, "w") as out:
        out.write("60")
    host.write = refuse
    (made,) = tuning.apply(host, [Setting("sysfs", "vm.swappiness", path, "1")], record)
    write(path, "7")
    (back,) = tuning.restore(host, record)
    assert (made.outcome, back.outcome) == ("not_applicable", "not_applicable") and not os.path.exists(record)
