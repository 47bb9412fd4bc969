# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue depths of ESXi's devices, by an emulator of esxcli (tests/emulators/esxcli says what it follows)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import esxi_devices as esxi
from ansible_collections.ssdlab.fleet.tests.fixtures import elsewhere

ESXCLI = Path(__file__).resolve().parents[4] / "emulators/esxcli"
ONE, TWO, NVME = "naa.500a0751aaaa0001", "naa.500a0751aaaa0002", "eui.0025385b71b0f6a1"
WANTED = [{"device": ONE, "queue_depth": 255, "outstanding": 255}]


@pytest.fixture
def host(tmp_path):
    """Call the module: host(state, devices, check); host.state() reads the emulator's, host.change(...) alters it."""
    path = Path(elsewhere.esxi_host(tmp_path / "esxi.json"))

    def run(command):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "ESXCLI_STATE": str(path)}
        )
        return done.returncode, done.stdout, done.stderr

    def call(state="present", devices=(), check=False):
        asked = {"esxcli": str(ESXCLI), "record_dir": str(tmp_path / "state"), "state": state, "devices": list(devices)}
        return esxi.module_result(run, asked, check)

    def change(device="", **changed):
        host = json.loads(path.read_text())
        (host["devices"][device] if device else host).update(changed)
        path.write_text(json.dumps(host))

    def state(device):
        one = json.loads(path.read_text())["devices"][device]
        return one["queue_depth"], one["outstanding"]

    call.change, call.state, call.record = change, state, tmp_path / "state" / esxi.RECORD
    return call


def test_depths_are_set_once_recorded_and_restored(host):
    planned = host(devices=WANTED, check=True)
    assert planned["changed"] and planned["commands"] == [] and host.state(ONE) == (64, 32) and not host.record.exists()
    assert planned["diff"]["after"] == {f"{ONE} queue_depth": 255, f"{ONE} outstanding": 255}
    done = host(devices=WANTED)
    assert done["commands"] == [
        [
            *(str(ESXCLI), "storage", "core", "device", "set", "--device", ONE),
            *("--max-queue-depth", "255", "--sched-num-req-outstanding", "255"),
        ]
    ]
    (device,) = done["devices"]
    assert (device["queue_depth"], device["driver"], device["path_selection"]) == (255, "lsi_msgpt3", "VMW_PSP_FIXED")
    assert host.state(ONE) == (255, 255) and host.state(TWO) == (64, 32)
    assert not host(devices=WANTED)["changed"]
    # Set again to another value: what it was before the first change comes back.
    host(devices=[{"device": ONE, "queue_depth": 128, "outstanding": 128}])
    assert host("restored", check=True)["changed"] and host.state(ONE) == (128, 128)
    assert host("restored")["changed"] and host.state(ONE) == (64, 32) and not host.record.exists()
    assert not host("restored")["changed"]


def test_what_another_changed_meanwhile_stays_and_a_device_that_is_gone_is_remembered(host):
    host(devices=[*WANTED, {"device": TWO, "queue_depth": 100}])
    host.change(ONE, outstanding=64)
    everything = json.loads((host.record.parent.parent / "esxi.json").read_text())
    gone = everything["devices"].pop(TWO)
    (host.record.parent.parent / "esxi.json").write_text(json.dumps(everything))
    told = host("restored")
    assert f"device {ONE}: outstanding is 64 and not 255 as it was set, so it stays" in told["message"]
    assert f"device {TWO} is not there now; its record stays" in told["message"] and host.state(ONE) == (64, 64)
    everything["devices"][TWO] = gone
    (host.record.parent.parent / "esxi.json").write_text(json.dumps(everything))
    assert host("restored")["changed"] and host.state(TWO) == (64, 32) and not host.record.exists()


def test_facts_are_of_ssds_with_stable_names(host):
    told = host("facts")
    assert {one["name"] for one in told["devices"]} == {ONE, TWO, NVME} and not told["changed"]
    assert told["release"] == "VMware ESXi 8.0.2 Releasebuild-22380479"
    assert told["summary"]["queue_depth"] == "1023/64" and told["summary"]["path_selection"] == "FIXED/VMW_PSP_FIXED"
    assert told["summary"]["driver"].startswith("lsi_msgpt3 17.00.12.00-2vmw.802/nvme_pcie")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"device": "mpx.vmhba32:C0:T0:L0", "queue_depth": 2}, "name it by what stays with it: naa., eui. or t10."),
        ({"device": "naa.0", "queue_depth": 2}, f"this host has no such device .it has: .*{ONE}"),
        ({"device": ONE, "queue_depth": 0}, "queue_depth 0 must be above 0"),
        ({"device": ONE, "outstanding": 65}, "outstanding 65 is more than its queue_depth of 64; raise that too"),
    ],
)
def test_what_can_not_be_set_is_refused_before_anything_is(host, entry, said):
    with pytest.raises(esxi.EsxiError, match=said):
        host(devices=[entry])
    assert not host.record.exists() and host.state(ONE) == (64, 32)


def test_what_esxi_refuses_or_does_not_take_is_told_and_can_be_restored(host):
    with pytest.raises(esxi.EsxiError, match="Unable to set device's max-queue-depth"):
        host(devices=[{"device": ONE, "queue_depth": 2000}])
    host.change(stuck=True)
    with pytest.raises(
        esxi.EsxiError, match=r"queue_depth is 64 after it was set to 128; .* list -m lsi_msgpt3. and reboot"
    ):
        host(devices=[{"device": ONE, "queue_depth": 128}])
    assert host.record.exists() and not host("restored")["changed"] and not host.record.exists()


def test_a_depth_that_the_driver_cuts_is_restored_too(host):
    host.change(driver_limit=100)
    with pytest.raises(esxi.EsxiError, match="is 100 after it was set to 255"):
        host(devices=WANTED)
    assert host.state(ONE) == (100, 100)
    assert host("restored")["message"] == "" and host.state(ONE) == (64, 32) and not host.record.exists()


def test_another_system_than_esxi_and_a_damaged_record_are_told(host, tmp_path):
    def no_program(command):
        raise FileNotFoundError(2, "No such file or directory")

    asked = {"esxcli": "esxcli", "record_dir": str(tmp_path), "state": "facts", "devices": []}
    with pytest.raises(
        esxi.EsxiError, match="esxcli: No such file or directory; this module is for hosts that run ESXi"
    ):
        esxi.module_result(no_program, asked, False)
    host.record.parent.mkdir()
    host.record.write_text('{"devices": {"naa.1": {"queue_depth": {}}}}')
    with pytest.raises(esxi.EsxiError, match=r"esxi_devices\.json is damaged .*: set the devices back by hand"):
        host("restored")
