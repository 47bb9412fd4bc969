# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""esxi.yml on an emulated esxcli (tests/emulators/esxcli says what it follows), and what a guest's report has of it."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.ssdlab.fleet.tests.fixtures import elsewhere

ESXCLI = Path(__file__).resolve().parents[1] / "emulators/esxcli"
DEVICE = "naa.500a0751aaaa0001"


def test_esxi_is_set_shown_with_its_guests_and_restored(site, loop_drive, tmp_path):
    machine = Path(elsewhere.esxi_host(tmp_path / "esxi.json"))
    site.hosts["esxi-3"] = {
        "esxi_devices": [{"device": DEVICE, "queue_depth": 255, "outstanding": 255}],
        "esxi_record_dir": str(tmp_path / "esxi-state"),
        "esxi_esxcli": str(ESXCLI),
    }

    def play(*args):
        return site.play("esxi", *args, env={"ESXCLI_STATE": str(machine)}, group="esxi_servers")

    def depths():
        device = json.loads(machine.read_text())["devices"][DEVICE]
        return device["queue_depth"], device["outstanding"]

    code, said = play("--check", "--diff")
    assert code == 0 and depths() == (64, 32) and f'+    "{DEVICE} queue_depth": 255' in said.replace("'", '"'), said
    code, said = play()
    assert code == 0 and depths() == (255, 255), said
    code, said = play()
    assert code == 0 and "changed=0" in said, said

    # A guest of it, whose drive stands for one that the host gives it.
    site.hosts = {"guest": {"ssd_drives": [loop_drive().selector], "ssd_hypervisor": "esxi-3"}}
    code, said = site.play("qualify")
    assert code == 0, said
    (results,) = site.results.glob("*/results.jsonl")
    host = [json.loads(line) for line in results.read_text().splitlines() if '"kind": "host"' in line][-1]
    assert host["snapshot"]["hypervisor"] == {
        "release": "VMware ESXi 8.0.2 Releasebuild-22380479",
        **{"driver": "lsi_msgpt3 17.00.12.00-2vmw.802", "firmware": "U001", "path_selection": "VMW_PSP_FIXED"},
        **{"queue_depth": "255", "outstanding": "255"},
    }
    (page,) = results.parent.glob("report/hosts/*.html")
    assert "hypervisor" in page.read_text() and "17.00.12.00-2vmw.802" in page.read_text()

    site.hosts = {"esxi-3": {"esxi_record_dir": str(tmp_path / "esxi-state"), "esxi_esxcli": str(ESXCLI)}}
    code, said = play("-e", "esxi_state=restored")
    assert code == 0 and depths() == (64, 32), said
