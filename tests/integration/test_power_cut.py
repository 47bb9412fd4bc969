# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts by the whole playbook, over ssh: a server whose power an emulated BMC cuts, and simulated drives with a
volatile cache, honest ones and liars.
"""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest
import simulated_ssd as simulator
from bmcs import Bmc
from cut_machine import CutMachine
from host_jobs import MIB
from sshd import SSHD
from volatile_cache import LIES
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.processes import children, signal_all

pytestmark = pytest.mark.skipif(
    not SSHD or os.geteuid() != 0 or not shutil.which("openssl"), reason="needs root, sshd and openssl"
)
FAST = {"fresh_iops": 1e5, "steady_iops": 1e5, "read_iops": 1e5, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
SHORT = {"cycles": 2, "mode": "hard", "min_write_s": 1, "max_write_s": 2, "back_s": 60}
TEST = {"base": "power-cut", "power_cut": SHORT}
OTHER = "4c4c4544-0042-3110-8051-b4c04f564433"


class Lab:
    """A site of one such server."""

    def __init__(self, site, machine, drives):
        self.site, self.machine, self.folder = site, machine, drives

    def drive(self, name="drive", lies="", host="server", machine=None):
        """Add a drive; its entry of ssd_drives."""
        more = {"cache_bytes": 8 * MIB, "power_file": simulator.power_file(self.folder, name), "power_lies": lies}
        record = simulator.create(self.folder, name, simulator.model_plugin(16 * MIB, **FAST, **more))
        (machine or self.machine).drives.append((self.folder, name))
        # The server is a PID namespace, which the guard takes for a container.
        entry = {"backing_file": record["backing_file"], "allow": ["unseen_users"]}
        self.site.hosts[host]["ssd_drives"].append(entry)
        return entry

    def verdicts(self):
        (summary,) = self.site.results.glob("*/report/summary.json")
        return {drive["drive"]: drive for drive in json.loads(summary.read_text())["drives"]}

    def cuts(self):
        """What the controller has on record."""
        (path,) = self.site.results.glob("*/power-cuts/server.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def lab(site, tmp_path):
    folder = tmp_path / "bmc"
    folder.mkdir()
    (tmp_path / "machine").mkdir()
    machine = CutMachine(tmp_path / "machine")
    machine.bmc = Bmc(folder)
    try:
        machine.boot()
        machine.start()
        site.vars.pop("ansible_connection")
        site.hosts = {"server": {**machine.variables, "ssd_drives": []}}
        # This machine has mounts and containers of its own, which none of this reaches.
        site.vars.update(machine.bmc_variables(), ssd_plan=[TEST], ssd_power_cut_others="accept")
        yield Lab(site, machine, tmp_path / "drives")
    finally:
        machine.end()
        machine.bmc.end()
        simulator.destroy(tmp_path / "drives")


def test_plan_mode_names_what_is_cut_and_a_bmc_of_another_host_is_refused_there(lab):
    lab.drive()
    code, output = lab.site.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0 and "would cut the host's power by its BMC 2 times" in output and not lab.machine.powers, output
    dmi = lab.machine.folder / "dmi/dmi/id/product_uuid"
    dmi.write_text(OTHER)
    lab.machine.lose_power()
    lab.machine.boot()
    for mode in ("plan", "destructive"):
        code, output = lab.site.play("qualify", "-e", f"ssd_mode={mode}")
        assert code != 0 and "it is another machine's; nothing was started on this host" in output, output
    assert not lab.machine.powers and not list(lab.site.state.glob("runs/*"))


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"vendor_bmc_password": ""}, "no vendor_bmc_password; a hard power cut needs the host's BMC"),
        ({"ssd_plan": [TEST, "integrity"]}, "can't be in a plan with power-cut"),
    ],
)
def test_plan_mode_refuses_what_can_not_be_cut(lab, variables, told):
    lab.drive()
    lab.site.vars.update(variables)
    code, output = lab.site.play("preflight", "-e", "ssd_mode=plan")
    assert code != 0 and told in output, output


def test_a_drive_that_keeps_what_it_acknowledged_passes_and_one_that_forgets_it_fails(lab, loop_drive):
    kept, lost, other = lab.drive("kept"), lab.drive("lost", "no-flush"), loop_drive("other")
    before = other.digest()
    code, output = lab.site.play("qualify")
    assert other.digest() == before
    found = lab.verdicts()
    assert code != 0 and found[kept["backing_file"]]["verdict"] == "pass", output
    assert found[lost["backing_file"]]["verdict"] == "fail", output
    assert lab.machine.powers == ["Off", "On"] * 2 and len(lab.cuts()) == 2


@pytest.mark.long
def test_a_host_that_is_not_back_is_an_error_and_the_run_goes_on_once_it_is(lab):
    """The cut that nobody verified is verified then, and no other is done in its place."""
    drive = lab.drive()
    lab.site.vars["ssd_plan"] = [{**TEST, "power_cut": {**SHORT, "back_s": 20}}]
    lab.machine.may_boot = False
    code, output = lab.site.play("qualify")
    lost = lab.verdicts()[drive["backing_file"]]
    assert code != 0 and lost["verdict"] == "error" and "did not come back within 20 s" in lost["reasons"][0], output
    lab.machine.may_boot = True
    lab.machine.boot()
    (run,) = lab.site.results.glob("*/run.json")
    code, output = lab.site.play("qualify", "-e", f"ssd_run_id={run.parent.name}")
    assert code == 0 and lab.verdicts()[drive["backing_file"]]["verdict"] == "pass", output
    assert [cut["cycle"] for cut in lab.cuts()] == [1, 2] and lab.machine.powers == ["Off", "On"] * 2


@pytest.mark.long
def test_a_drive_that_is_gone_fails_and_a_host_that_is_gone_keeps_no_other_waiting(lab, tmp_path):
    kept, gone = lab.drive("kept"), lab.drive("gone")
    lab.machine.doomed.append((lab.folder, "gone"))
    (tmp_path / "second").mkdir()
    (tmp_path / "second-bmc").mkdir()
    second = CutMachine(tmp_path / "second", OTHER)
    second.bmc, second.may_boot = Bmc(tmp_path / "second-bmc", OTHER), False
    lab.site.vars["ssd_plan"] = [{**TEST, "power_cut": {**SHORT, "back_s": 30}}]
    own = {"ssd_drives": [], "ssd_state_dir": str(tmp_path / "second-state")}
    lab.site.hosts["second"] = {**second.variables, **second.bmc_variables(), **own}
    lost = lab.drive("lost", host="second", machine=second)
    try:
        second.boot()
        second.start()
        code, output = lab.site.play("qualify", "-f", "2", stall_s=600)
    finally:
        second.end()
        second.bmc.end()
    found = {path: lab.verdicts()[path]["verdict"] for path in (one["backing_file"] for one in (kept, gone, lost))}
    assert code != 0 and list(found.values()) == ["pass", "fail", "error"], output
    assert "did not come back after cut 1" in lab.verdicts()[gone["backing_file"]]["reasons"][0], output
    assert lab.machine.powers == ["Off", "On"] * 2 and second.powers == ["Off", "On"], output


@pytest.mark.long
def test_a_controller_that_dies_between_two_cuts_is_followed_by_the_next_play(lab):
    drive = lab.drive()
    process = lab.site.start("qualify")
    wait_until(
        lambda: lab.machine.powers == ["Off", "On"], "the first cut", process=process, said=lambda: lab.site.said
    )
    process.kill()
    process.wait()
    wait_until(lambda: lab.machine.process is not None, "the host")
    (run,) = lab.site.results.glob("*/run.json")
    code, output = lab.site.play("qualify", "-e", f"ssd_run_id={run.parent.name}")
    assert code == 0 and lab.verdicts()[drive["backing_file"]]["verdict"] == "pass", output
    assert lab.machine.powers == ["Off", "On"] * 2


def kill(process):
    """End a playbook and its workers, which have sessions of their own, as when the controller dies."""
    found = [process.pid]
    for pid in found:
        found += children(pid)
    signal_all(found, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_a_host_that_a_dead_controller_left_off_is_told_and_switched_on(lab):
    """But not by a BMC that is another host's by then."""
    drive, other = lab.drive(), lab.site.folder / "other-bmc"
    lab.site.vars["vendor_power_cycle_off_s"] = 300
    process = lab.site.start("qualify")
    wait_until(lambda: lab.machine.powers == ["Off"], "the cut", process=process, said=lambda: lab.site.said)
    kill(process)
    lab.site.vars["vendor_power_cycle_off_s"] = 1
    (run,) = [path.parent.name for path in lab.site.results.glob("*/run.json")]
    again = ("-e", f"ssd_run_id={run}")
    for playbook, arguments in (("preflight", ["-e", "ssd_mode=plan"]), ("watch", [*again, "-e", "ssd_give_up_s=1"])):
        _code, output = lab.site.play(playbook, *arguments)
        assert f"run {run} cut its power at 20" in output and "restore.yml switches it on" in output, output
    other.mkdir()
    wrong = Bmc(other, OTHER)
    try:
        with_wrong = {"vendor_bmc_address": f"localhost:{wrong.port}", "vendor_bmc_ca_path": str(other / "cert.pem")}
        _code, output = lab.site.play("restore", "-e", json.dumps(with_wrong))
        assert "it is left off" in output and "it is another machine's" in output, output
    finally:
        wrong.end()
    assert lab.machine.powers == ["Off"]
    code, output = lab.site.play("qualify", *again)
    assert code == 0 and "it is switched on; waiting until it answers" in output, output
    assert lab.verdicts()[drive["backing_file"]]["verdict"] == "pass" and lab.machine.powers == ["Off", "On"] * 2
    assert "cut its power" not in lab.site.play("restore")[1]


def test_no_play_cuts_the_machine_that_it_runs_on(lab):
    lab.drive()
    lab.site.hosts["server"] = {"ansible_connection": "local", "ssd_drives": lab.site.hosts["server"]["ssd_drives"]}
    # By the emulated BMC: a reset, of which the same is asked, would be this machine's.
    code, output = lab.site.play("start")
    assert code != 0 and "it is the machine that this play runs on" in output, output
    assert not lab.machine.powers and not list(lab.site.state.glob("runs/*"))


@pytest.mark.long
def test_twenty_cuts_find_each_lying_drive_and_no_good_one(lab):
    """All of them in one server. No loop device hands on FUA, so a drive that ignores it alone is good here."""
    lab.site.vars["ssd_plan"] = [{**TEST, "power_cut": {**SHORT, "cycles": 20}}]
    good = [lab.drive("good"), lab.drive("no-fua", "no-fua")]
    liars = {lie: lab.drive(lie, lie) for lie in LIES if lie != "no-fua"}
    _code, output = lab.site.play("qualify", stall_s=1200)
    found = lab.verdicts()
    reasons = {lie: found[drive["backing_file"]]["reasons"] for lie, drive in liars.items()}
    assert all(found[drive["backing_file"]]["verdict"] == "pass" for drive in good), output
    failed = {lie for lie, drive in liars.items() if found[drive["backing_file"]]["verdict"] == "fail"}
    # What tears blocks of 4 KiB in its cache is allowed to, as a loop device states no atomicity beyond a sector.
    assert failed == set(liars) - {"torn"}, reasons
    assert lab.machine.powers == ["Off", "On"] * 20, output
