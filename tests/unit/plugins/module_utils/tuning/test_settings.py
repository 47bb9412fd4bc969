# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a host are applied, verified, and put back as they were."""

from __future__ import annotations

import json
import os

from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import tuned_host
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.tuning.tuned_hosts import (
    drift_texts,
    expand,
    values,
)


def test_apply_verifies_and_restore_brings_everything_back(host, tmp_path):
    record, before = str(tmp_path / "tuning.json"), values(host)
    applied = tuning.apply(host, expand(host), record)
    assert [(item.name, item.effective, item.outcome) for item in applied] == [
        ("governor", "performance", "changed"),
        ("governor", "performance", "unchanged"),
        ("scheduler", "none", "changed"),
        ("nomerges", "2", "changed"),
        ("absent", None, "not_applicable"),
    ]
    assert drift_texts(host, applied, "nvme0n1") == []
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"}
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
    (failed,) = [item for item in applied if item.outcome == "failed"]
    assert failed.message == "/sys/block/nvme0n1/queue/nomerges is 0 after writing 2"


def test_drift_is_noticed(host, tmp_path):
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    host.write("/sys/block/nvme0n1/queue/nomerges", "1")
    assert drift_texts(host, applied, "nvme0n1") == ["/sys/block/nvme0n1/queue/nomerges is 1, tuned to 2"]


def test_after_a_reboot_only_the_record_goes(host, tmp_path):
    record = str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    host.write(tuning.BOOT_ID, "boot-2")
    assert {item.message for item in tuning.restore(host, record)} == {"by a reboot"}
    assert host.read("/sys/block/nvme0n1/queue/nomerges") == "2"


def test_what_a_purge_reset_is_made_again_and_what_never_worked_is_not(host, tmp_path):
    host.refuses = ("/sys/block/nvme0n1/queue/nomerges",)
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    host.write("/sys/block/nvme0n1/queue/scheduler", "mq-deadline")
    again = tuned_host.reapply_settings(host, applied, "nvme0n1")
    assert [(item.name, item.before, item.effective, item.outcome) for item in again] == [
        ("scheduler", "mq-deadline", "none", "changed")
    ]
    assert tuned_host.reapply_settings(host, applied, "nvme0n1") == []


def test_many_that_drift_alike_are_told_in_one_sentence(host, tmp_path):
    for cpu in (1, 2):
        file = host.root + f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        os.makedirs(os.path.dirname(file))
        with open(file, "w") as out:
            out.write("performance")
    applied = tuning.apply(host, expand(host), str(tmp_path / "tuning.json"))
    for cpu in (0, 1, 2):
        host.write(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave")
    (told,) = drift_texts(host, applied, "nvme0n1")
    assert told.endswith("cpu0/cpufreq/scaling_governor (and 2 more like it) is powersave, tuned to performance")


def test_a_preview_changes_nothing_and_tells_what_would(host):
    before = values(host)
    seen = tuning.preview(host, expand(host))
    assert [item.outcome for item in seen] == ["changed", "unchanged", "changed", "changed", "not_applicable"]
    assert values(host) == before


def test_what_somebody_changed_meanwhile_is_told_and_comes_back_as_before_the_run(host, tmp_path):
    """A job that ends leaves the host as it found it: whose the value in between was, it can't tell."""
    path, record = "/sys/block/nvme0n1/queue/nomerges", str(tmp_path / "tuning.json")
    applied = tuning.apply(host, expand(host), record)
    host.write(path, "1")
    assert drift_texts(host, applied, "nvme0n1") == [f"{path} is 1, tuned to 2"]
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"} and host.read(path) == "0"


def test_a_value_that_is_changed_while_it_is_put_back_keeps_the_record(host, tmp_path, monkeypatch):
    """So that the host is not called restored, and the next play tries again."""
    path, record = "/sys/block/nvme0n1/queue/nomerges", str(tmp_path / "tuning.json")
    tuning.apply(host, expand(host), record)
    write = host.write

    def raced(name, text):
        write(name, "1" if name == path else text)

    with monkeypatch.context() as somebody:
        somebody.setattr(host, "write", raced)
        (failed,) = [item for item in tuning.restore(host, record) if item.outcome == "failed"]
    assert (failed.path, failed.effective, os.path.exists(record)) == (path, "1", True)
    assert {item.outcome for item in tuning.restore(host, record)} == {"restored"} and not os.path.exists(record)
    assert host.read(path) == "0"
