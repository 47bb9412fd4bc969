# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks and samples on NVMe drives of a real kernel: a degraded link, a wrong firmware, a drive that warns before and
during a run.
"""

from __future__ import annotations

import contextlib
import time

import pytest
from hardware import NEIGHBOUR, PLAIN
from lab import SHORT_TEST

RELIABILITY_DEGRADED = 0x04
# Long enough to set the warning while it measures.
LONGER_TEST = {**SHORT_TEST, "name": "longer", "cells": [{**SHORT_TEST["cells"][0], "runtime_s": 5}]}


def told(output):
    """The output as one line, as Ansible may wrap it."""
    return " ".join(output.split())


@contextlib.contextmanager
def warning(guest, serial, bits):
    """The drive's critical_warning while the block runs, set from outside by QEMU's monitor."""

    def tell(value):
        with guest.monitor() as monitor:
            monitor.cmd(
                "qom-set",
                path=f"/machine/peripheral/{guest.drives[serial].id}",
                property="smart_critical_warning",
                value=value,
            )

    tell(bits)
    try:
        yield
    finally:
        tell(0)


def test_a_degraded_link_and_a_wrong_firmware_are_found_together(lab):
    lab.host["ssd_drives"] = [{"serial": PLAIN}, {"serial": NEIGHBOUR}]
    lab.vars.update(
        preflight_firmware={"QEMU*": "9.9"},
        preflight_link={"QEMU*": {"speed_gts": 16, "width": 4}},
        preflight_levels={"virtual_machine": "ok"},
    )
    code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    text = told(output)
    assert code != 0
    for serial in (PLAIN, NEIGHBOUR):
        assert (
            f"guest: drive {serial}: firmware: its firmware is " in text
            and "preflight_firmware wants 9.9 for this model" in text
        )
        assert (
            f"guest: drive {serial}: pcie_wanted: its link runs at 2.5 GT/s x1; preflight_link wants 16 GT/s x4" in text
        )
    # Only the neighbour sits in a slot that can do more than QEMU's drive.
    assert (
        f"guest: drive {NEIGHBOUR}: pcie_slot: the drive supports only 2.5 GT/s x1, in a slot for 16 GT/s x4"
    ) in text
    assert f"{PLAIN}: pcie_slot" not in text and "virtual_machine" not in text
    assert "reports 0 % spare and a threshold of 0 %" in text


@pytest.mark.long
def test_a_drive_that_warns_blocks(lab, guest):
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    with warning(guest, PLAIN, RELIABILITY_DEGRADED):
        code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    assert (
        code != 0
        and f"guest: drive {PLAIN}: health: it warns: its reliability is degraded. To fix this: replace the drive"
        in told(output)
    ), output
    assert "Preflight found 1 thing to fix" in told(output)


@pytest.mark.long
def test_a_warning_during_the_run_fails_the_drive(lab, guest):
    lab.host["ssd_drives"] = [{"serial": PLAIN, "ssd_overwrite_data": True}]
    lab.vars.update(ssd_sample_interval_s=1, ssd_plan=[LONGER_TEST], purge_method="deallocate")
    process = lab.start("qualify")
    try:
        deadline = time.monotonic() + 600
        while not lab.journal("round"):
            assert process.poll() is None and time.monotonic() < deadline, process.stdout.read()
            time.sleep(2)
        with warning(guest, PLAIN, RELIABILITY_DEGRADED):
            before = len(lab.journal("sample"))
            while len(lab.journal("sample")) < before + 3:
                time.sleep(1)
        output, _none = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0
    (end,) = lab.ended()
    assert end["outcome"] != "invalid" and end["health"]["critical_warning"] == RELIABILITY_DEGRADED, output
    samples = lab.journal("sample")
    assert {sample["critical_warning"] for sample in samples} == {0, RELIABILITY_DEGRADED}
    assert all(
        sample["temperature_c"] == 50 and (sample["link_speed_gts"], sample["link_width"]) == (2.5, 1)
        for sample in samples
    )
    assert lab.summary()["verdicts"]["fail"] == 1
    assert "it raised 1 critical warnings (critical_warnings, max 0)" in told(output)
