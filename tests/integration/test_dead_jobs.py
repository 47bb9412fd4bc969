# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play makes of a job that died after its last drive and before it put the host back, and of hosts that do not
answer.
"""

from __future__ import annotations

import datetime
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
    setting = {
        "kind": "sysfs",
        "name": "nomerges",
        "path": str(path),
        "before": path.read_text().strip(),
        "wanted": "1",
        "device": lab.drive.name,
    }
    record = {
        "boot_id": Host().get(BOOT_ID),
        "keep": False,
        "order": 1,
        "made": "2026-11-21T13:00:00.000Z",
        "settings": [setting],
    }
    (run / "tuning.json").write_text(json.dumps(record))
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(
        json.dumps(dict(status, state="running", restored=False, pid=2**22, pid_start="1"))
    )
    path.write_text("1")
    return path, setting["before"]


def test_the_play_that_finds_a_dead_job_puts_its_host_back_and_says_so(lab):
    code, output = lab.play("qualify")
    assert code == 0, output
    path, before = kill_before_restore(lab)
    code, output = lab.play("collect")
    assert path.read_text().strip() == before and not (lab.run_folders()[0] / "tuning.json").exists(), output
    assert "Restore the settings that a dead host job left" in output and "changed: [rack1-07]" in output and code == 0
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


def status_of(run_id, state, updated):
    """A host's status.json of a run, as its job left it."""
    job = {
        "schema_version": 1,
        "run_id": run_id,
        "run_name": "qualify",
        "host": "rack1-07",
        "boot_id": None,
        "pid": 2**22,
        "pid_start": None,
        "unit": None,
    }
    times = {"engine_version": "1", "started": "2026-01-01T00:00:00.000Z", "updated": updated}
    return dict(job, **times, state=state, restored=True, message="", drives=[])


def test_cleanup_keeps_failed_runs_for_a_while_and_says_so(site):
    """They can be gone on with: what they measured would be lost."""
    site.hosts = {"rack1-07": {"ssd_drives": []}}
    recent = f"{datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=3):%Y-%m-%dT%H:%M:%S}.000Z"
    runs = {
        "done": ("finished", recent),
        "broken": ("failed", recent),
        "old": ("failed", "2026-01-01T00:00:00.000Z"),
        "gone": ("running", recent),
    }
    for name, (state, updated) in runs.items():
        folder = site.state / "runs" / name
        folder.mkdir(parents=True)
        (folder / "status.json").write_text(json.dumps(status_of(name, state, updated)))
    code, output = site.play("cleanup")
    told = " ".join(output.split())
    assert code == 0 and [path.name for path in site.run_folders()] == ["broken", "gone"], output
    assert (
        "rack1-07: run broken stays: its job failed" in told
        and "for 14 days" in told
        and "or remove it (cleanup.yml), with -e ssd_run_id=broken" in told
    )
    assert "rack1-07: run gone stays: its job died before the end" in told
    code, output = site.play("cleanup", "-e", "ssd_keep_failed_days=2", "--check")
    assert code == 0 and "changed=1" in output, output
    code, output = site.play("cleanup", "-e", "ssd_run_id=broken")
    assert code == 0 and [path.name for path in site.run_folders()] == ["gone"] and "stays" not in output, output
