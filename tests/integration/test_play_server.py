# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play of the server is what the command would have done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PLAYS, REPO
from play_server import SETTINGS, PlayServer
from waiting import wait_until

COMMAND = str(Path(sys.executable).parent / "ansible-playbook")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}


@pytest.fixture
def playbook(tmp_path):
    """Write a playbook of these tasks: its path."""

    def write(*tasks):
        path = tmp_path / "play.json"
        path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": list(tasks)}]))
        return str(path)

    return write


def test_a_play_ends_prints_and_fails_as_by_the_command(playbook, tmp_path):
    task = {"ansible.builtin.fail": {"msg": "{{ lookup('env', 'COLOUR') }} in {{ lookup('pipe', 'pwd') }}"}}
    arguments = [playbook(task), "-i", "localhost,", "-c", "local"]
    environment = {**ENVIRONMENT, **SETTINGS, "COLOUR": "green"}
    real = subprocess.run(
        [COMMAND, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    served = PLAYS.run(arguments, tmp_path, environment, 60)
    assert f"green in {tmp_path}" in real.stdout + real.stderr
    assert (served.returncode, served.stdout, served.stderr) == (real.returncode, real.stdout, real.stderr)


def test_a_play_that_takes_too_long_is_killed(playbook, tmp_path):
    """By its callers' deadline, as subprocess.run does; the next play runs."""
    mark = tmp_path / "pid"
    write = {"ansible.builtin.copy": {"dest": str(mark), "content": "{{ lookup('pipe', 'ps -o ppid= -p $PPID') }}"}}
    rest = ["-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=" + sys.executable]
    with pytest.raises(AssertionError, match="nothing moved for 20 s"):
        PLAYS.run([playbook(write, {"ansible.builtin.pause": {"seconds": 600}}), *rest], REPO, ENVIRONMENT, 20)
    play = Path("/proc", mark.read_text().strip())
    wait_until(lambda: not play.exists(), "the play to be gone")
    assert PLAYS.run([playbook({"ansible.builtin.meta": "noop"}), *rest], REPO, ENVIRONMENT, 60).returncode == 0


def test_a_play_with_other_settings_of_ansible_is_left_to_the_command():
    assert PlayServer.serves({**ENVIRONMENT, "ANSIBLE_CONFIG": SETTINGS["ANSIBLE_CONFIG"]})
    assert not PlayServer.serves({**ENVIRONMENT, "ANSIBLE_INJECT_FACT_VARS": "True"})
    assert not PlayServer.serves({**ENVIRONMENT, "ANSIBLE_COLLECTIONS_PATH": "/elsewhere"})
