# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils import tuning
from ansible_collections.ssdlab.fleet.plugins.module_utils.host import Host, Result

TUNE = {
    "sysfs": [
        {"name": "governor", "path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", "value": "performance"},
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
        if path in self.refuses:
            return
        if path.endswith("scheduler"):
            text = " ".join("[{0}]".format(name) if name == text else name for name in ("none", "mq-deadline"))
        super().write(path, text)

    def run(self, argv, timeout_s=60, stdin=None):
        """tee, by which a drive's attribute is put back, writes through this tree too."""
        if argv[0] in self.hangs:
            return Result(argv, 124, "", "%s gave no answer in %g s" % (argv[0], timeout_s))
        self.write(argv[1][len(self.root) :], stdin)
        return Result(argv, 0, "", "")


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


def values(host):
    return {path: host.read(path) for path in host.glob("/sys/block/*/queue/*") + host.glob("/sys/devices/system/cpu/*/*/*")}


def test_apply_verifies_and_restore_brings_everything_back(host, tmp_path):
    record, before = str(tmp_path / "tuning.json"), values(host)
    applied = tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), record)
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
    tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), record)
    assert [len(settings) for settings in seen] == [3, 3, 3]


def test_a_second_apply_does_not_record_its_own_values(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    settings = tuning.expand(host, TUNE, ["nvme0n1"])
    tuning.apply(host, settings, record)
    tuning.apply(host, settings, record)
    tuning.restore(host, record)
    assert host.read("/sys/block/nvme0n1/queue/nomerges") == "0"


def test_a_value_that_does_not_take_is_failed_and_says_what_is_in_force(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), str(tmp_path / "tuning.json"))
    (failed,) = [item for item in applied if item["outcome"] == "failed"]
    assert failed["message"] == "/sys/block/nvme0n1/queue/nomerges is 0 after writing 2"


def test_drift_is_noticed(host, tmp_path):
    applied = tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), str(tmp_path / "tuning.json"))
    host.write("/sys/block/nvme0n1/queue/nomerges", "1")
    assert tuning.drifted(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 1, tuned to 2"]


def test_after_a_reboot_only_the_record_goes(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), record)
    host.write(tuning.BOOT_ID, "boot-2")
    assert {item["message"] for item in tuning.restore(host, record)} == {"by a reboot"}
    assert host.read("/sys/block/nvme0n1/queue/nomerges") == "2"


def test_what_cannot_be_put_back_keeps_its_record(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), record)
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    assert "failed" in {item["outcome"] for item in tuning.restore(host, record)}
    assert os.path.exists(record)


def test_a_drive_that_hangs_does_not_keep_the_rest_from_being_put_back(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), record)
    host.hangs = ("tee",)
    done = tuning.restore(host, record)
    assert [(item["name"], item["outcome"]) for item in done] == [("governor", "restored"), ("nomerges", "failed"), ("scheduler", "failed")]
    assert "no answer" in done[1]["message"] and os.path.exists(record)


def test_what_is_not_back_yet_stays_what_to_go_back_to(host, tmp_path):
    """A restore that fails, then another start: the first values must not be lost."""
    record, before = str(tmp_path / "tuning.json"), values(host)
    settings = tuning.expand(host, TUNE, ["nvme0n1"])
    tuning.apply(host, settings, record)
    host.hangs = ("tee",)
    tuning.restore(host, record)
    host.hangs = ()
    tuning.apply(host, settings, record)
    assert {item["outcome"] for item in tuning.restore(host, record)} == {"restored"}
    assert {path: tuning.effective(text) for path, text in values(host).items()} == {path: tuning.effective(text) for path, text in before.items()}


def test_a_setting_that_failed_counts_for_its_own_drive_and_not_for_another(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, tuning.expand(host, TUNE, ["nvme0n1"]), str(tmp_path / "tuning.json"))
    assert tuning.drifted(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 0, tuned to 2"]
    assert tuning.drifted(host, applied, "nvme1n1") == []


@pytest.mark.parametrize("text, value", [("[none] mq-deadline", "none"), ("none [kyber] bfq", "kyber"), (" 2 ", "2")])
def test_the_value_in_force(text, value):
    assert tuning.effective(text) == value
