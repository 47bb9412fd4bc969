# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BIOS attributes and fans by the playbooks, over ssh: a server that boots anew when its emulated BMC (redfish_bmc.py)
switches it on, which is when that applies what was staged.
"""

from __future__ import annotations

import os
import shutil

import pytest
import simulated_ssd as simulator
from bmcs import PASSWORD, SYSTEM
from cut_machine import CutMachine
from redfish_bmc import ATTRIBUTES, BIOS, RESET, StagingBmc
from sshd import SSHD
from vendor_lab import REPO
from waiting import wait_until

pytestmark = pytest.mark.skipif(
    not SSHD or os.geteuid() != 0 or not shutil.which("openssl"), reason="needs root, sshd and openssl"
)
MIB = 1 << 20
OTHER = "4c4c4544-0042-3110-8051-b4c04f564433"
FAST = {"fresh_iops": 1e5, "steady_iops": 1e5, "read_iops": 1e5, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
# Where set-up unpacks community.general, whose modules speak to the BMC.
COLLECTIONS = {"ANSIBLE_COLLECTIONS_PATH": str(REPO / ".ansible" / "collections")}
WANTED = {**ATTRIBUTES, "SysProfile": "PerfOptimized", "NodeInterleave": "Disabled"}


class Lab:
    """A site of one such server with a drive."""

    def __init__(self, site, machine, bmc):
        self.site, self.machine, self.bmc = site, machine, bmc

    def play(self, playbook, *arguments):
        return self.site.play(playbook, *arguments, env=COLLECTIONS)

    def record(self):
        return self.site.state / "bmc.json"


@pytest.fixture
def lab(site, tmp_path):
    (tmp_path / "machine").mkdir()
    machine = CutMachine(tmp_path / "machine")
    machine.bmc = bmc = StagingBmc(tmp_path / "bmc", "supermicro")
    drives = tmp_path / "drives"
    try:
        machine.boot()
        machine.start()
        record = simulator.create(drives, "drive", simulator.model_plugin(16 * MIB, **FAST))
        machine.drives.append((drives, "drive"))
        site.vars.pop("ansible_connection")
        entry = {"backing_file": record["backing_file"], "allow": ["unseen_users"]}
        site.hosts = {"server": {**machine.variables, "ssd_drives": [entry]}}
        short = dict(site.vars["ssd_plan"][0], precondition=False)
        short["steady_state"] = dict(short["steady_state"], min_capacity_multiple=0, confirm_windows=0)
        site.vars.update(
            bmc.variables(vendor_power_cycle=True, vendor_power_cycle_off_s=1, tune_bios_read_back_s=12),
            ssd_plan=[short],
        )
        yield Lab(site, machine, bmc)
    finally:
        machine.end()
        bmc.end()
        simulator.destroy(drives)


def test_a_run_sets_bios_and_fans_records_them_and_restore_brings_them_back(lab):
    lab.site.vars.update(tune_bios={"profile": "performance"}, tune_fans="high")
    code, output = lab.play("qualify", "--check", "--diff")
    assert code == 0 and "The host would be power-cycled." in output, output
    assert "the fans would be high" in output and lab.bmc.changes == [] and not lab.machine.powers, output
    assert "+NodeInterleave: Disabled" in output and "-NodeInterleave: Enabled" in output, output
    code, output = lab.play("qualify", "-vvv")
    assert code == 0 and lab.machine.powers == ["Off", "On"], output
    assert lab.bmc.attributes == WANTED and PASSWORD not in output
    # The run is over, so the fans are as they were; the BIOS stays.
    assert [body for path, body in lab.bmc.changes if "FanMode" in path] == [{"Mode": "FullSpeed"}, {"Mode": "Optimal"}]
    snapshot = lab.site.journal("snapshot")[0]["bios_settings"]
    assert snapshot["attributes"] == WANTED and lab.record().exists()
    code, output = lab.play("restore")
    assert code == 0 and lab.bmc.attributes == ATTRIBUTES and lab.bmc.staged == {}, output
    assert lab.machine.powers == ["Off", "On"] * 2 and not lab.record().exists()


def test_what_was_staged_by_a_controller_that_died_is_taken_back_by_the_next_play(lab):
    """The host never boots, so nothing of it was ever in force; the fans are high."""
    lab.site.vars.update(tune_bios={"attributes": {"ProcCStates": "Disabled"}}, tune_fans="high")
    lab.bmc.answers[RESET] = 503
    process = lab.site.start("qualify", env=COLLECTIONS)
    wait_until(lambda: lab.bmc.staged, "the staged attribute", process=process)
    process.kill()
    process.wait()
    assert lab.bmc.staged == {"ProcCStates": "Disabled"} and lab.record().exists()
    lab.bmc.answers.clear()
    code, output = lab.play("restore")
    assert code == 0 and lab.bmc.attributes == ATTRIBUTES, output
    assert lab.bmc.staged == {"ProcCStates": "Enabled"} and not lab.record().exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"vendor_power_cycle": False}, "Nothing was staged, as this host may not be power-cycled"),
        ({"tune_bios": {"attributes": {"ProcCState": "Disabled"}}}, "no attribute ProcCState; it has ProcCStates"),
        ({"tune_bios": {"attributes": {"ProcC1E": "Off"}}}, "ProcC1E may be Enabled, Disabled, not Off"),
    ],
)
@pytest.mark.variants(1)
def test_what_can_not_be_set_is_refused_before_anything_is_staged(lab, change, told):
    lab.site.vars.update({"tune_bios": {"profile": "performance"}, **change})
    code, output = lab.play("tune")
    assert code != 0 and told in output and lab.bmc.changes == [] and not lab.record().exists(), output


def test_fans_that_a_run_left_high_are_restored_by_the_next_play(lab):
    """Nobody watched the first run to its end."""
    lab.site.vars["tune_fans"] = "high"
    code, output = lab.play("start")
    assert code == 0 and lab.bmc.mode == "FullSpeed" and "high until the run ends" in output, output
    wait_until(lambda: lab.site.journal("job_finished"), "the host job")
    lab.site.vars["tune_fans"] = ""
    code, output = lab.play("start")
    assert code == 0 and lab.bmc.mode == "Optimal" and "the fans are restored to Optimal" in output, output
    assert not lab.record().exists()


def test_fans_of_another_machine_are_left_alone(lab):
    """Its address was given to another BMC; so it is when they are to be restored."""
    lab.site.vars["tune_fans"] = "high"
    lab.bmc.uuid = OTHER
    code, output = lab.play("start")
    assert code == 0 and "it is another machine's" in output and lab.bmc.changes == [], output
    wait_until(lambda: lab.site.journal("job_finished"), "the host job")
    assert not lab.record().exists()
    lab.record().write_text('{"fans": {"way": "Supermicro", "before": "HeavyIO", "since": ""}}')
    code, output = lab.play("restore")
    assert code != 0 and "it is another machine's" in output and lab.bmc.changes == [], output


def test_who_watches_an_older_run_leaves_the_fans_of_the_next_one_high(lab):
    lab.site.vars["tune_fans"] = "high"
    code, output = lab.play("qualify", "-e", "ssd_run_id=older")
    assert code == 0 and lab.bmc.mode == "Optimal", output
    (test,) = lab.site.vars["ssd_plan"]
    lab.site.vars["ssd_plan"] = [dict(test, cells=[dict(test["cells"][0], runtime_s=600)])]
    code, output = lab.play("start", "-e", "ssd_run_id=newer")
    assert code == 0 and lab.bmc.mode == "FullSpeed", output
    try:
        code, output = lab.play("watch", "-e", "ssd_run_id=older")
        assert code == 0 and lab.bmc.mode == "FullSpeed", output
    finally:
        code, output = lab.play("stop", "-e", "ssd_run_id=newer")
    assert code == 0, output


def test_a_slow_bmc_stops_no_run(lab):
    """The attributes are unknown, in the plan's warnings and the report, the fans are as they were, and the run
    goes on.
    """
    lab.site.vars["tune_fans"] = "high"
    lab.bmc.delay_s = 30
    code, output = lab.play("qualify")
    assert code == 0 and "the BIOS attributes are unknown: the BMC localhost:" in output, output
    assert "tune_fans: the BMC localhost:" in output and lab.bmc.mode == "Optimal", output
    assert lab.site.journal("snapshot")[0]["bios_settings"]["unknown"].startswith("the BMC localhost:")


def test_a_bmc_that_is_wrong_or_not_there_is_a_remark(lab):
    faults = {"is no JSON": {}, "another machine's": {}, "refused": {"vendor_bmc_address": "localhost:1"}}
    for told, variables in faults.items():
        lab.bmc.answers = {BIOS: b"<html>"} if told == "is no JSON" else {}
        lab.bmc.uuid = OTHER if told == "another machine's" else SYSTEM
        extra = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        code, output = lab.play("preflight", "-e", "ssd_mode=plan", *extra)
        (remark,) = [line for line in output.splitlines() if "bios_unknown" in line]
        assert code == 0 and told in remark and PASSWORD not in output, output
