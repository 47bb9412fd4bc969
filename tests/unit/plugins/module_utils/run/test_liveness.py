# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start, state_of

HOST = Host()
ME = {"pid": os.getpid(), "pid_start": pid_start(HOST, os.getpid()), "boot_id": HOST.get(BOOT_ID)}


@pytest.mark.parametrize(
    "changes, state",
    [
        ({}, "running"),
        ({"state": "starting"}, "starting"),
        ({"state": "finished", "pid": 0}, "finished"),
        ({"state": "finished", "boot_id": "another"}, "finished"),
        ({"pid": 2**22 + 1}, "dead"),
        ({"pid_start": "1"}, "dead"),
        ({"pid_start": None, "pid": 2**22 + 1}, "dead"),
        ({"boot_id": "another"}, "dead"),
    ],
)
def test_a_job_lives_only_as_the_same_process_of_the_same_boot(changes, state):
    assert (
        state_of(HOST, dict(ME, state="running", **changes) if "state" not in changes else dict(ME, **changes)) == state
    )


def test_a_run_without_a_status_is_dead():
    assert state_of(HOST, None) == "dead"


def test_a_name_with_brackets_and_blanks_does_not_shift_the_fields(tmp_path):
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "stat").write_text("7 (a) b (c) S " + " ".join(str(n) for n in range(4, 30)))
    assert pid_start(Host(str(tmp_path)), 7) == "22"
