# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that let others connect and say nothing, under an ansible.cfg that limits nothing: each playbook ends in time
for all others, fails, and names them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sshd import SSHD, loopback_sshd
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir

pytestmark = pytest.mark.skipif(not SSHD or os.geteuid() != 0, reason="needs root and sshd (Debian: openssh-server)")
JOB = Path(__file__).with_name("fake_job.py")
RUN, OLD_RUN = "20261121T130000Z-qualify", "20261120T130000Z-qualify"
# Enough for the server that answers, on a busy machine too.
LIMIT_S, PLAYS_S = 25, 280
# What a user of the installed collection has: nothing of ours but what preflight asks for.
BARE = (
    "[defaults]\ninject_facts_as_vars = False\ncallbacks_enabled = ssdlab.fleet.fleet\n[ssh_connection]\nssh_args =\n"
)
# Found again in the process list.
HANGS = f"32{os.getpid():08}"


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    with loopback_sshd(tmp_path_factory.mktemp("sshd")) as variables:
        yield variables


@pytest.fixture
def lab(site, ssh, tmp_path):
    """One server that answers, one whose port says nothing, and one that lets ssh in and hangs."""
    shell = tmp_path / "hangs.sh"
    shell.write_text(f"#!/bin/sh\nexec sleep {HANGS}\n")
    shell.chmod(0o755)
    (tmp_path / "ansible.cfg").write_text(BARE)
    site.vars.update(ssd_task_timeout_s=LIMIT_S, ssd_plan=["smoke"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = {**ssh, "ansible_port": silent.getsockname()[1], "ssd_state_dir": str(tmp_path / "none")}
        # `timeout` of ssh itself does not end it.
        inside = {**ssh, "ansible_python_interpreter": str(shell), "ssd_state_dir": str(tmp_path / "none")}
        site.hosts = {"dead": {**dead, "ansible_timeout": 3600}, "inside": inside, "answers": {}}
        yield site
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if HANGS.encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            continue


def leave_run(site, run_id, ends):
    """A run on the server that answers: ended well, or whose job was killed."""
    with subprocess.Popen(
        [sys.executable, str(JOB), str(site.state), run_id, "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    ) as job:
        assert job.stdout.readline() == b"running\n"
        if not ends:
            job.kill()
        job.communicate()


@pytest.mark.parametrize("name", ["stop", "restore", "cleanup", "discover"])
def test_a_silent_host_keeps_nobody_else_waiting(lab, tmp_path, name):
    leave_run(lab, RUN, ends=False)
    leave_run(lab, OLD_RUN, ends=True)
    code, output = lab.play(name, env={"ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg")}, stall_s=PLAYS_S)
    assert code != 0, output
    assert not RunDir(str(lab.state), RUN).read_status()["state"] == "running" or name != "stop", output
    assert Path(lab.state, "runs", OLD_RUN).exists() == (name != "cleanup"), output
    if name == "discover":
        assert re.search(r"No answer from dead, inside", output) and "answers:" in output, output
    else:
        recap = {line.split()[0]: line for line in output.partition("PLAY RECAP")[2].splitlines() if " : ok=" in line}
        assert all("unreachable=1" in recap[host] for host in ("dead", "inside")), output
        assert "unreachable=0" in recap["answers"] and "failed=0" in recap["answers"], output
    assert f"it did not answer within {LIMIT_S} s" in " ".join(output.split()), output
    wait_until(lambda: not left_behind(), "the end of what hangs")


def left_behind():
    """Processes of ssh that still wait for the server that hangs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if HANGS.encode() in command and command.startswith(b"ssh"):
            found.append(path.parent.name)
    return found


def test_the_staging_hangs(ssh, lab, tmp_path):
    """Without a limit each of the two hosts outlasts it, so that what ends above is ours."""
    book = tmp_path / "raw.yml"
    book.write_text(
        json.dumps([{"hosts": "dead,inside", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]}])
    )
    with pytest.raises(AssertionError, match="nothing moved"):
        lab.play(book, env={"ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg")}, stall_s=LIMIT_S + 5)
