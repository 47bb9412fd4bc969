# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a drive that failed: of NVMe by the emulator, run as a command."""

from __future__ import annotations

import gzip
import json
import os
import sys
from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import TIMED_OUT, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import error_logs, identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

EMULATOR = os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators", "nvme")
ERRORS = [{"error_count": 3, "status_field": 0x281}, {"error_count": 2, "status_field": 0x281}]


@pytest.fixture(name="nvme")
def fixture_nvme(fake, tmp_path, monkeypatch):
    """A drive whose logs the state file has: nvme(errors=[…], telemetry_bytes=…); (its identity, the raw folder)."""

    def make(**drive):
        state, raw = tmp_path / "state.json", tmp_path / "raw"
        raw.mkdir()
        state.write_text(json.dumps({"real": "/nowhere", "drives": [{"controller": "nvme3", "sn": "S1", **drive}]}))
        monkeypatch.setenv("SSDLAB_EMULATED_NVME", str(state))
        fake.nvme("nvme3n1", "259:1", "S1")
        fake.link("/sys/class/nvme/nvme3", "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme3")

        def run(argv, timeout_s=60, stdin=None, started=None):
            fake.commands.append(list(argv))
            return Host.run(fake, [sys.executable, EMULATOR, *argv[1:]], timeout_s, stdin, started)

        monkeypatch.setattr(fake, "run", run)
        return identity.identity(fake, "nvme3n1"), raw

    return make


def by_log(kept):
    return {item.log: item for item in kept}


def test_an_nvme_drive_gives_its_error_log_and_its_telemetry(fake, nvme):
    seen, raw = nvme(errors=ERRORS, telemetry_bytes=1 << 20)
    kept = by_log(error_logs.keep(fake, seen, str(raw)))
    assert [item.message for item in kept.values()] == ["", ""]
    assert sorted(os.listdir(raw)) == sorted([error_logs.ERROR_LOG, error_logs.TELEMETRY])
    assert json.loads(gzip.decompress((raw / error_logs.ERROR_LOG).read_bytes())) == {"errors": ERRORS}
    telemetry = gzip.decompress((raw / error_logs.TELEMETRY).read_bytes())
    assert len(telemetry) == kept["telemetry"].size_bytes == 1 << 20 and telemetry[0] == 7
    # The logs are the controller's, and captured now.
    assert [words[2] for words in fake.commands] == ["/dev/nvme3"] * 2
    assert "--host-generate=1" in fake.commands[1]


def test_a_telemetry_that_is_too_long_is_cut_off_while_it_is_written(fake, nvme, monkeypatch):
    monkeypatch.setattr(error_logs, "TELEMETRY_BYTES", 1 << 16)
    seen, raw = nvme(telemetry_bytes=1 << 27)
    kept = by_log(error_logs.keep(fake, seen, str(raw)))["telemetry"]
    assert (kept.size_bytes, kept.message) == (1 << 16, "cut off after 65536 bytes")
    assert len(gzip.decompress((raw / error_logs.TELEMETRY).read_bytes())) == 1 << 16


def test_what_a_drive_does_not_offer_is_a_line(fake, nvme):
    seen, raw = nvme()
    kept = error_logs.keep(fake, seen, str(raw))
    assert [(item.log, item.file, item.size_bytes) for item in kept] == [
        ("error log", "", None),
        ("telemetry", "", None),
    ]
    assert all("Invalid Log Page" in item.message for item in kept) and os.listdir(raw) == []


def test_a_full_disk_takes_no_telemetry(fake, nvme, monkeypatch):
    monkeypatch.setattr(error_logs, "TELEMETRY_BYTES", 1 << 60)
    seen, raw = nvme(errors=ERRORS, telemetry_bytes=4096)
    kept = by_log(error_logs.keep(fake, seen, str(raw)))
    assert kept["error log"].file and "bytes are free" in kept["telemetry"].message
    assert os.listdir(raw) == [error_logs.ERROR_LOG]


def test_another_drive_at_the_name_is_not_asked(fake, nvme):
    seen, raw = nvme(errors=ERRORS, telemetry_bytes=4096)
    (kept,) = error_logs.keep(fake, replace(seen, serial="S2"), str(raw))
    assert kept.message == "/dev/nvme3n1 is no longer this drive" and fake.commands == []


@pytest.mark.parametrize(
    "answer, file, says",
    [
        ((0, "SMART overall-health self-assessment test result: PASSED\n", ""), error_logs.SMARTCTL, ""),
        # Bits 3 and 6: the drive is failing and has errors in its log, which is just what is asked for.
        ((0x48, "SMART overall-health: FAILED!\n", ""), error_logs.SMARTCTL, ""),
        (
            (2, "Smartctl open device: /dev/sda failed: No such device\n", ""),
            "",
            "smartctl -x ended with 2: Smartctl open",
        ),
        ((127, "", "cannot run smartctl"), "", "smartctl is not installed"),
        ((TIMED_OUT, "", "smartctl gave no answer in 30 s"), "", "smartctl gave no answer in 30 s"),
    ],
)
def test_of_other_drives_smartctl_tells(fake, tmp_path, answer, file, says):
    fake.disk("sda", "8:0", device__model="X", device__vendor="ATA")
    fake.answers["smartctl -x"] = answer
    (kept,) = error_logs.keep(fake, identity.identity(fake, "sda"), str(tmp_path))
    assert kept.file == file and kept.message.startswith(says) and bool(says) == bool(kept.message)
    if file:
        assert gzip.decompress((tmp_path / file).read_bytes()).decode() == answer[1]


def test_a_loop_device_keeps_none(fake, tmp_path):
    (kept,) = error_logs.keep(fake, Identity(transport="loop", path="/dev/loop7"), str(tmp_path))
    assert kept == ("logs", "", None, "loop drives keep no logs") and fake.commands == []
