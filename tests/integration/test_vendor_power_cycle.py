# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of emulated drives that need a power cycle, through a BMC, by vendor.yml and within a run.

The host is this machine; that it "boots" is staged in a mount namespace of the play's own, where a file of the test
lies over the kernel's boot id.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
import threading
import uuid
from pathlib import Path

import emulator
import pytest
import vendor_lab
from bmcs import PASSWORD, SYSTEM, USER, Bmc, IpmiBmc
from vendor_lab import pending

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for the drives' locks and a mount namespace")


@pytest.fixture
def lab(site, tmp_path):
    """A site with emulated drives."""
    return vendor_lab.furnished(site, tmp_path)


@pytest.fixture
def ipmi_bmc(tmp_path):
    """A BMC by IPMI whose system is on."""
    made = IpmiBmc(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def redfish_bmc(tmp_path):
    """A BMC by Redfish whose system is on."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl for the BMC's certificate")
    folder = tmp_path / "bmc"
    folder.mkdir()
    made = Bmc(folder)
    try:
        yield made
    finally:
        made.end()


class Machine(threading.Thread):
    """The server behind the BMC: while it is off it forgets what is pending, and when it comes on it has another boot
    id.
    """

    def __init__(self, bmc, lab, boot_id_file):
        super().__init__(daemon=True)
        self.bmc, self.lab, self.file, self.powers, self.ended = bmc, lab, boot_id_file, [], threading.Event()

    def run(self):
        while not self.ended.wait(0.5):
            power = self.bmc.power()
            if power is None or power == (self.powers or [None])[-1]:
                continue
            self.powers.append(power)
            if power == "On" and len(self.powers) > 1:
                emulator.power_cycle(self.lab.machine)
                self.file.write_text(f"{uuid.uuid4()}\n")


def allowed(bmc, **more):
    return dict(
        {
            "vendor_power_cycle": True,
            "vendor_bmc_address": f"localhost:{bmc.port}",
            "vendor_bmc_user": USER,
            "vendor_bmc_password": PASSWORD,
            "vendor_bmc_ca_path": str(getattr(bmc, "folder", Path()) / "cert.pem"),
            "vendor_power_cycle_off_s": 1,
            "vendor_bmc_system": SYSTEM,
        },
        **more,
    )


@pytest.mark.parametrize("protocol", ["redfish", "ipmi"])
def test_the_host_is_power_cycled_and_the_setting_checked(lab, protocol, request, tmp_path):
    bmc = request.getfixturevalue(protocol + "_bmc")
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    server = Machine(bmc, lab, boot_id)
    server.start()
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    code, output = lab.vendor(
        "-vvv",
        prefix=namespace,
        vendor_rssdm=[{"serial": "S1", "queue_depth": 256}],
        **allowed(bmc, vendor_bmc_protocol=protocol),
    )
    server.ended.set()
    assert code == 0, output
    assert server.powers == ["On", "Off", "On"]
    drive = lab.seen()["rssdm"]["drives"][1]
    assert drive["interrupt_coalescing"] == 0xD801F and "pending" not in drive
    assert "Wait with the power off" in output and PASSWORD not in output and USER not in output
    assert base64.b64encode((f"{USER}:{PASSWORD}").encode()).decode() not in output
    code, output = lab.vendor(prefix=namespace)
    assert code == 0 and "changed=0" in output, output


@pytest.mark.parametrize("protocol, shutdown", [("redfish", "hangs"), ("redfish", "refuses"), ("ipmi", "hangs")])
def test_a_host_that_does_not_shut_down_is_switched_off_hard_only_where_that_is_allowed(
    lab, protocol, shutdown, request, tmp_path
):
    bmc = request.getfixturevalue(protocol + "_bmc")
    bmc.deaf.write_text(shutdown)
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    asked = allowed(bmc, vendor_bmc_protocol=protocol, vendor_power_cycle_shutdown_s=5)
    code, output = lab.vendor(prefix=namespace, vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **asked)
    assert code != 0 and "failed at this step: " in output and bmc.power() == "On", output
    server = Machine(bmc, lab, boot_id)
    server.start()
    code, output = lab.vendor(prefix=namespace, vendor_power_cycle_force=True)
    server.ended.set()
    assert code == 0 and server.powers == ["On", "Off", "On"], output
    assert lab.seen()["rssdm"]["drives"][1]["interrupt_coalescing"] == 0xD801F and PASSWORD not in output


def test_a_bmc_that_refuses_is_told_without_the_password(lab, redfish_bmc):
    wrong = PASSWORD + "-wrong"
    code, output = lab.vendor(
        "-vvv", vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **allowed(redfish_bmc, vendor_bmc_password=wrong)
    )
    assert code != 0 and "failed at this step: " in output and "Shut the host down" in output, output
    assert PASSWORD not in output and USER not in output and redfish_bmc.power() == "On"


def test_a_host_that_did_not_boot_anew_is_told(lab, redfish_bmc, tmp_path):
    """The BMC switches, but it is another machine's: our boot id stays."""
    code, output = lab.vendor(
        vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **allowed(redfish_bmc, vendor_power_cycle_timeout_s=5)
    )
    assert code != 0 and "Wait until the host has rebooted" in output, output


@pytest.fixture
def measured(lab, loop_drive):
    """The lab with a drive to measure: the vendors' drives beside it are only set."""
    lab.hosts["server"]["ssd_drives"] = [loop_drive().selector]
    short = dict(lab.vars["ssd_plan"][0], precondition=False)
    short["steady_state"] = dict(short["steady_state"], min_capacity_multiple=0, confirm_windows=0)
    lab.vars["ssd_plan"] = [short]
    lab.qualify = lambda *args, prefix=(), book="qualify": lab.play(book, *args, env=lab.environment, prefix=prefix)
    return lab


@pytest.mark.long
def test_a_run_stops_the_host_whose_setting_waits_for_a_power_cycle_and_the_others_go_on(
    measured, loop_drive, tmp_path
):
    """A second server with a host name of its own: this machine in another UTS namespace."""
    python = tmp_path / "python-of-rack1-08"
    python.write_text(
        f'#!/bin/sh\nexec unshare --uts sh -c \'hostname rack1-08; exec "$0" "$@"\' {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    measured.hosts["rack1-08"] = {
        "ssd_drives": [loop_drive("other").selector],
        "ansible_python_interpreter": str(python),
    }
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "queue_depth": 256}]
    for plan in (("-e", "ssd_mode=plan"), ("--check",)):
        code, output = measured.qualify(*plan)
        assert code == 0 and "The host would be left out: it may not be power-cycled" in output, output
        assert not any(pending(measured).values()) and measured.run_folders() == []
    code, output = measured.qualify()
    assert code != 0 and "Power-cycle the host (a reboot is not enough)" in output, output
    assert pending(measured)["S1"] == {"interrupt_coalescing": 0xD801F}
    verdicts = {drive["host"]: (drive["verdict"], " ".join(drive["reasons"])) for drive in measured.summary()["drives"]}
    assert verdicts["rack1-08"][0] == "pass" and verdicts["server"][0] == "not_tested", verdicts
    assert "waits for a power cycle" in verdicts["server"][1], verdicts
    code, output = measured.qualify("--limit", "server", book="restore")
    assert code == 0 and pending(measured)["S1"] == {"interrupt_coalescing": 0xD200F}, output
    assert "interrupt_coalescing = 0xD200F is set and waits for a power cycle" in output, output


def test_a_run_power_cycles_the_host_for_its_settings_and_restore_brings_the_old_ones(measured, redfish_bmc, tmp_path):
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    server = Machine(redfish_bmc, measured, boot_id)
    server.start()
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    asked = {"interrupt_coalescing": 0xD801F, "power_limiting": 1}
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "queue_depth": 256, "power_limiting": True}]
    measured.vars.update(allowed(redfish_bmc))
    code, output = measured.qualify("-e", "ssd_mode=plan", prefix=namespace)
    assert code == 0 and "The host would be power-cycled." in output and server.powers == ["On"], output
    code, output = measured.qualify(prefix=namespace)
    assert code == 0 and measured.summary()["verdicts"]["pass"] == 1, output
    drive = measured.seen()["rssdm"]["drives"][1]
    assert {name: drive[name] for name in asked} == asked and server.powers == ["On", "Off", "On"]
    # The job began in the boot that has the settings.
    assert measured.journal("job_started")[0]["boot_id"] == boot_id.read_text().strip()
    code, output = measured.qualify(prefix=namespace, book="restore")
    server.ended.set()
    drive = measured.seen()["rssdm"]["drives"][1]
    assert code == 0 and "pending" not in drive and server.powers == ["On", "Off", "On", "Off", "On"], output
    assert (drive["interrupt_coalescing"], drive["power_limiting"]) == (0xD200F, 0)
    code, output = measured.qualify(prefix=namespace, book="restore")
    assert code == 0 and "changed=0" in output and "pending" not in measured.seen()["rssdm"]["drives"][1], output


def test_a_wrong_setting_stops_its_host_before_the_host_job(measured):
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "interrupt_coalescing": "0xD800F"}]
    code, output = measured.qualify()
    assert code != 0 and "unexpected results" in output and measured.run_folders() == [], output
    assert not any(pending(measured).values())
