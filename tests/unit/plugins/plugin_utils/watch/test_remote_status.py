# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import remote_status

HOST = Host()
NO_PID = 2**22 + 1


def ask(state_dir, run_id="r1", before=""):
    """What a connection gives: the command in a login shell, which may print something first."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"{before}{remote_status.command(str(state_dir), run_id)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return remote_status.parse(done.stdout, done.stderr)


STATUS = {
    "schema_version": 1,
    "run_id": "r1",
    "run_name": "qualify",
    "host": "h",
    "unit": None,
    "engine_version": "0.1.0",
    "restored": False,
    "message": "",
    "started": "2026-11-21T13:00:00Z",
    "updated": "2026-11-21T13:00:00Z",
}


def write(state_dir, indent=1, **changes):
    status = {
        **STATUS,
        "state": "running",
        "boot_id": HOST.get(BOOT_ID),
        "pid": os.getpid(),
        "pid_start": pid_start(HOST, os.getpid()),
        "drives": [],
    }
    folder = state_dir / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps(dict(status, **changes), indent=indent))


@pytest.mark.parametrize("indent", [1, None], ids=["indented", "one line"])
@pytest.mark.parametrize(
    "changes, state",
    [
        ({}, "running"),
        ({"state": "starting"}, "starting"),
        ({"state": "finished", "pid": NO_PID}, "finished"),
        ({"state": "failed", "boot_id": "another"}, "failed"),
        ({"pid": NO_PID}, "dead"),
        ({"pid_start": "1"}, "dead"),
        ({"boot_id": "another"}, "dead"),
    ],
)
def test_the_state_is_that_of_the_host(tmp_path, indent, changes, state):
    write(tmp_path, indent, **changes)
    assert ask(tmp_path).state == state


def test_a_path_is_an_argument_whatever_it_holds(tmp_path):
    folder = tmp_path / 'it\'s "here" $(touch pwned) ;\\ & now'
    folder.mkdir()
    write(folder)
    assert ask(folder).state == "running"


def test_a_host_without_the_run_says_absent(tmp_path):
    assert ask(tmp_path)[:2] == ("absent", None)


def test_what_a_login_shell_prints_before_does_no_harm(tmp_path):
    write(tmp_path)
    assert ask(tmp_path, before="echo '{\"state\": 1}'; echo -n motd; echo noise >&2; ").state == "running"


def test_a_damaged_status_is_no_answer(tmp_path):
    write(tmp_path)
    (tmp_path / "runs/r1/status.json").write_text('{"state": ')
    with pytest.raises(remote_status.NoStatus, match="not JSON"):
        ask(tmp_path)


MARKED = "--- ssdlab.fleet {}\n{}\n"


def output(**parts):
    sections = dict({"pid": "7", "stat": "", "init": "1 (init)", "boot": "b", "status": "{}", "end": ""}, **parts)
    return "".join(MARKED.format(name, text) for name, text in sections.items())


def running(**fields):
    return json.dumps(
        dict({**STATUS, "state": "running", "boot_id": "b", "pid": 7, "pid_start": "9", "drives": []}, **fields)
    )


@pytest.mark.parametrize(
    "parts, state",
    [
        ({"status": running()}, "dead"),
        # /proc of others is hidden from us: we cannot know.
        ({"status": running(), "init": ""}, "running"),
        ({"status": running(), "init": "", "boot": "c"}, "dead"),
        # Another job took over between our two looks: what we saw of the first one's process does not count.
        ({"status": running(pid=8)}, "running"),
        ({"status": running(pid=8, boot_id="c")}, "dead"),
        # The job ended between our two looks.
        ({"status": running(state="finished")}, "finished"),
    ],
)
def test_an_unknown_is_not_taken_for_a_dead_job(parts, state):
    assert remote_status.parse(output(**parts), "").state == state


@pytest.mark.parametrize(
    "stdout, stderr, message",
    [
        ("", "cat: /x/status.json: Permission denied", "Permission denied"),
        ("This account is not available.", "", "not available"),
        ("", "", "no output"),
        ("--- ssdlab.fleet pid\n--- ssdlab.fleet status\n", "", "no output"),
        (output(status="[]"), "", "cannot be trusted"),
        (output(status=running())[:-30], "", "cut off"),
    ],
)
def test_anything_else_is_told_as_it_is(stdout, stderr, message):
    with pytest.raises(remote_status.NoStatus, match=message):
        remote_status.parse(stdout, stderr)
