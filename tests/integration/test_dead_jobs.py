# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play makes of a job that died after its last drive and before it put the host back, and of hosts that do not answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host


@pytest.fixture
def lab(site, loop_drive):
    """One server with one drive, whose run is measured."""
    site.drive = loop_drive("one")
    site.hosts = {"rack1-07": {"ssd_drives": [site.drive.selector]}}
    site.vars["ssd_run_id"] = "fixed"
    return site


def kill_before_restore(lab):
    """As a SIGKILL leaves a host without systemd; the tuned setting."""
    (run,) = lab.run_folders()
    path = Path("/sys/block", lab.drive.name, "queue/nomerges")
    setting = {"kind": "sysfs", "name": "nomerges", "path": str(path), "before": path.read_text().strip(), "wanted": "1", "device": lab.drive.name}
    record = {"boot_id": Host().get(BOOT_ID), "keep": False, "order": 1, "made": "2026-11-21T13:00:00.000Z", "settings": [setting]}
    (run / "tuning.json").write_text(json.dumps(record))
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(dict(status, state="running", restored=False, pid=2**22, pid_start="1")))
    path.write_text("1")
    return path, setting["before"]


def test_the_play_that_finds_a_dead_job_puts_its_host_back_and_says_so(lab):
    code, output = lab.play("qualify")
    assert code == 0, output
    path, before = kill_before_restore(lab)
    code, output = lab.play("collect")
    assert path.read_text().strip() == before and not (lab.run_folders()[0] / "tuning.json").exists(), output
    assert "Put back the settings that a dead host job left" in output and "changed: [rack1-07]" in output and code == 0
    # Where that is not possible, the play fails though every drive passed.
    path, before = kill_before_restore(lab)
    record = json.loads((lab.run_folders()[0] / "tuning.json").read_text())
    record["settings"][0]["before"] = "no such value"
    (lab.run_folders()[0] / "tuning.json").write_text(json.dumps(record))
    code, output = lab.play("collect")
    path.write_text(before)
    assert code != 0 and "could not put back" in output, output


def test_collect_fails_where_its_only_host_does_not_answer(lab):
    lab.hosts["rack1-07"].update(ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    code, output = lab.play("collect")
    assert code != 0, output
