# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""watch and collect over real connections: local, an sshd of our own, and hosts that hang."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sshd import SSHD, loopback_sshd
from waiting import wait_for_end, wait_until

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = REPO / "playbooks" / "collections"
PLAYBOOK = str(Path(sys.executable).parent / "ansible-playbook")
RUN = "20261121T130000Z-qualify"
# Found again in the process list: nothing of a hanging connection may stay. Of this process alone, as others test too.
GIVE_UP_S = 600.0
HANGS = f"31{os.getpid():08}"

pytestmark = pytest.mark.skipif(not SSHD or os.geteuid() != 0, reason="needs root and sshd (Debian: openssh-server)")

WATCH = """---
- hosts: all
  gather_facts: false
  tasks:
    - ssdlab.fleet.watch:
        run_id: {run}
        state_dir: "{state_dir}"
        interval_s: 0.5
        host_timeout_s: {timeout_s}
        give_up_s: {give_up_s}
      run_once: true
      register: watched
    - ansible.builtin.copy:
        content: "{{{{ watched | to_json }}}}"
        dest: "{folder}/watched.json"
        mode: "0644"
      run_once: true
      delegate_to: localhost
      connection: local
"""
COLLECT = """---
- hosts: all
  gather_facts: false
  tasks:
    - ssdlab.fleet.collect:
        run_id: {run}
        state_dir: "{state_dir}"
        results_dir: "{folder}/results"
"""

# As find_run.yml, preflight and collect begin: each host is asked, and the play goes on with those that answered.
ASK = """---
- hosts: all
  gather_facts: false
  vars: {{ssd_step: kept}}
  tasks:
    - {task}
      register: heard
      timeout: {limit_s}
      ignore_unreachable: true
    - ansible.builtin.debug:
        msg: "{{{{ [inventory_hostname, heard is unreachable,
          (heard.asked | default((heard.diff | default({{}})).asked)).ssd_step | default('-'),
          heard.msg | default('')]
          | join(' ') }}}}"
"""


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """The variables of a host that is reached through an sshd of our own."""
    with loopback_sshd(tmp_path_factory.mktemp("sshd")) as variables:
        yield variables


@pytest.fixture
def job(tmp_path):
    """Starts host jobs that last some seconds, or until their input is closed; ends those that are left."""
    started = []

    def start(seconds):
        process = subprocess.Popen(
            [
                sys.executable,
                str(REPO / "tests" / "integration" / "fake_job.py"),
                str(tmp_path / "state"),
                RUN,
                str(seconds),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=str(COLLECTIONS)),
        )
        started.append(process)
        assert process.stdout.readline() == "running\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def hanging():
    """Like a host whose network swallows everything."""
    return {
        "ansible_connection": "ssh",
        "ansible_host": "127.0.0.1",
        "ansible_ssh_common_args": f"-o ProxyCommand='sleep {HANGS}' -o ControlPath=none",
    }


def play(folder, playbook, hosts, **popen):
    (folder / "inventory.json").write_text(
        json.dumps({"all": {"vars": {"ansible_python_interpreter": sys.executable}, "hosts": hosts}})
    )
    (folder / "play.yml").write_text(playbook)
    environment = dict(
        os.environ,
        ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
        ANSIBLE_CALLBACKS_ENABLED="ssdlab.fleet.fleet",
        ANSIBLE_INJECT_FACT_VARS="False",
    )
    (folder / "ansible.cfg").write_text("")  # found first, so that no other one counts
    command = [PLAYBOOK, "-i", str(folder / "inventory.json"), str(folder / "play.yml")]
    said = Path(tempfile.mkdtemp(dir=folder), "said")
    with said.open("w") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            **popen,
        )
    process.said = said
    return process


def finished(process):
    """What a play has said when it has ended."""
    wait_for_end(process, "the play")
    return process.said.read_text()


def watch(folder, hosts, timeout_s=20.0, give_up_s=GIVE_UP_S):
    text = WATCH.format(run=RUN, state_dir=folder / "state", folder=folder, timeout_s=timeout_s, give_up_s=give_up_s)
    return play(folder, text, hosts)


def finish(process, folder):
    output = finished(process)
    assert process.returncode == 0, output
    return output, json.loads((folder / "watched.json").read_text())


def left_behind(mark=HANGS):
    """Processes whose command line has this mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_hosts_are_watched_through_their_own_connections(tmp_path, ssh, job):
    running = job(8000)
    templated = dict(ssh, ansible_port="{{ my_port }}", my_port=ssh["ansible_port"])
    process = watch(tmp_path, {"by-ssh": ssh, "templated": templated, "here": {"ansible_connection": "local"}})
    told = "precondition iops (1 of 1) 50 % ≤ 2 h 14 min"
    wait_until(lambda: " ".join(process.said.read_text().split()).count(told) >= 3, "progress", process=process)
    running.stdin.close()
    output, watched = finish(process, tmp_path)
    assert watched["hosts"] == {"by-ssh": "finished", "templated": "finished", "here": "finished"}, output
    assert watched["ended"] and not watched["silent"] and not watched["dead"]


def test_a_host_that_hangs_is_marked_and_holds_up_nobody(tmp_path, ssh, job):
    job(3)
    process = watch(tmp_path, {"hangs": hanging(), "by-ssh": ssh}, timeout_s=10, give_up_s=15)
    output, watched = finish(process, tmp_path)
    assert watched["hosts"] == {"hangs": "silent", "by-ssh": "finished"}, output
    assert watched["silent"] == ["hangs"] and not watched["ended"]
    assert "still trying" in output and "no answer from hangs: no longer waiting" in output
    wait_until(lambda: not left_behind(), "the end of what hangs")


@pytest.mark.parametrize(
    "task",
    [
        "ssdlab.fleet.run_info: {state_dir: /nonexistent}",
        "ssdlab.fleet.examine: {variables: true}",
    ],
)
@pytest.mark.parametrize("pipelining", [True, False])
def test_a_host_that_hangs_in_a_task_counts_as_unreachable_once_its_time_is_over(tmp_path, ssh, task, pipelining):
    """Also one that lets ssh in, and hangs then: ssh itself would wait for it for ever."""
    shell = tmp_path / "hangs.sh"
    shell.write_text(f"#!/bin/sh\nexec sleep {HANGS}\n")
    shell.chmod(0o755)
    inside = {**ssh, "ansible_python_interpreter": str(shell), "ansible_ssh_pipelining": pipelining}
    process = play(tmp_path, ASK.format(task=task, limit_s=30), {"dead": hanging(), "inside": inside, "by-ssh": ssh})
    output = finished(process)
    kept = "kept" if "examine" in task else "-"
    assert process.returncode == 0, output
    assert f"dead True {kept}" in output, output
    assert re.search(rf"inside True {kept} .*it did not answer within 30 s \(ssd_task_timeout_s", output), output
    assert "by-ssh False" in output
    # The far end of ssh goes on until it sees that nobody listens; here nothing waits for it.
    wait_until(
        lambda: not [pid for pid in left_behind() if "ssh" in Path(f"/proc/{pid}/comm").read_text()], "the end of ssh"
    )
    for pid in left_behind():
        os.kill(int(pid), signal.SIGKILL)


def test_hosts_that_have_ended_or_never_began_end_the_watch_at_once(tmp_path, ssh, job):
    process = job(600)
    process.kill()
    process.wait()
    began = time.monotonic()
    output, watched = finish(watch(tmp_path, {"by-ssh": ssh, "here": {"ansible_connection": "local"}}), tmp_path)
    assert (
        watched["hosts"] == {"by-ssh": "dead", "here": "dead"}
        and watched["ended"]
        and watched["dead"] == ["by-ssh", "here"]
    ), output
    assert "the host job is gone" in output
    shutil.rmtree(tmp_path / "state")
    output, watched = finish(watch(tmp_path, {"by-ssh": ssh}), tmp_path)
    assert watched["hosts"] == {"by-ssh": "absent"} and watched["ended"] and "no such run on this host" in output
    assert time.monotonic() - began < GIVE_UP_S


def test_an_unknown_host_or_connection_does_not_keep_the_others_from_being_watched(tmp_path, job):
    job(2)
    hosts = {
        "odd": {"ansible_connection": "no_such_connection"},
        "undefined": {"ansible_host": "{{ nowhere }}"},
        "here": {"ansible_connection": "local"},
    }
    playbook = WATCH.format(run=RUN, state_dir=tmp_path / "state", folder=tmp_path, timeout_s=20, give_up_s=5)
    playbook = playbook.replace("hosts: all", "hosts: here")
    playbook = playbook.replace("        interval_s", "        hosts: [odd, undefined, here]\n        interval_s")
    output, watched = finish(play(tmp_path, playbook, hosts), tmp_path)
    assert watched["hosts"] == {"odd": "silent", "undefined": "silent", "here": "finished"}, output
    assert "no_such_connection" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_watch_ends_at_once_and_leaves_nothing(tmp_path, job, number):
    job(3600)
    # A worker of a killed ansible-playbook sees that at its next look.
    process = watch(
        tmp_path,
        {"hangs": hanging(), "here": {"ansible_connection": "local"}},
        timeout_s=5 if number == signal.SIGKILL else 3600,
    )
    wait_until(left_behind, "the connection that hangs", process=process)
    process.send_signal(number)
    wait_for_end(process)
    assert process.returncode != 0
    wait_until(lambda: not left_behind() and not left_behind(str(tmp_path / "play.yml")), "the end of all of it")


def test_results_are_collected_and_a_second_time_changes_nothing(tmp_path, ssh, job):
    running = job(3600)
    hosts = {"by-ssh": ssh, "here": {"ansible_connection": "local"}}
    playbook = COLLECT.format(run=RUN, state_dir=tmp_path / "state", folder=tmp_path)
    results = tmp_path / "results" / RUN
    early = finished(play(tmp_path, playbook, {"here": hosts["here"]}))
    running.stdin.close()
    running.wait()
    first, second = (finished(play(tmp_path, playbook, hosts)) for _time in range(2))
    assert "still works on A1, B2" in early, early
    assert first.count("changed=1") == 2 and second.count("changed=0") == 2, first + second
    records = [json.loads(line) for line in (results / "results.jsonl").read_text().splitlines()]
    kinds = sorted((record["host"], record["kind"], record.get("state") or record["outcome"]) for record in records)
    ended = [("drive", "complete"), ("drive", "complete"), ("host", "ok"), ("test", "steady")]
    assert kinds == sorted(
        [("by-ssh", *e) for e in ended] + [("here", *e) for e in ended] + [("here", "host", "unfinished")]
    )
    for name in hosts:
        assert (results / "raw" / name / "raw" / "A1" / "iops-1-0001-c.json").read_text() == "{}"
        assert (results / "raw" / name / "journal.jsonl").read_text() == (
            tmp_path / "state/runs" / RUN / "journal.jsonl"
        ).read_text()
    assert os.listdir(tmp_path / "state") == ["runs"], "the archive is taken away"
    assert sorted(os.listdir(results / "raw")) == ["by-ssh", "here"]
    assert "iops steady after 5 rounds, write 41,201 IOPS" in first
