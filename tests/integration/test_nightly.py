# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A nightly as AWX runs it: each job an ansible-runner process of its own, in a checkout of its own, with nothing in
common but the store and artifacts.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
RUNNER = Path(sys.executable).parent / "ansible-runner"
JOB_S = 120


class Unsafe(yaml.SafeDumper):  # pylint: disable=too-many-ancestors
    """Texts as AWX writes them: !unsafe 'plan'."""


Unsafe.add_representer(str, lambda dumper, text: dumper.represent_scalar("!unsafe", text, style="'"))


class Awx:
    """Runs job templates: their variables under artifacts of the jobs before, each job in a folder that is gone for the
    next one.
    """

    def __init__(self, site, folder):
        self.site, self.folder, self.artifacts, self.number = site, folder, {}, 0
        content = yaml.load((REPO / "roles/awx/vars/main.yml").read_text(), Loader)
        self.templates = content["__awx_templates"]
        self.variables = {"ssd_run_name": "nightly", "ssd_store_url": f"sqlite:///{folder}/store.sqlite"}

    def start(self, template, limit_s=JOB_S, **more):
        """Begin a job that may live for limit_s; returns its process and its private folder."""
        self.number += 1
        job = self.folder / f"job-{self.number}-{template}"
        (job / "env").mkdir(parents=True)
        (job / "inventory").mkdir()
        inventory = {"all": {"children": {"ssd_servers": {"vars": self.site.vars, "hosts": self.site.hosts}}}}
        (job / "inventory/hosts.json").write_text(json.dumps(inventory))
        about = self.templates[template]
        own = {name: value for name, value in about.get("variables", {}).items() if "{{" not in str(value)}
        given = {
            **own,
            **self.artifacts,
            **self.variables,
            **more,
            "awx_job_id": self.number,
            "ssd_results_dir": str(job / "results"),
        }
        (job / "env/extravars").write_text(yaml.dump(given, Dumper=Unsafe))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment["PATH"] = f"{RUNNER.parent}{os.pathsep}{environment.get('PATH', '')}"
        (job / "env/envvars").write_text(
            json.dumps({"ANSIBLE_CONFIG": str(REPO / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "False"})
        )
        # As AWX: its own stdout callback, and a limit of the job's time.
        (job / "env/settings").write_text(json.dumps({"job_timeout": limit_s}))
        argv = [str(RUNNER), "run", str(job), "--project-dir", str(REPO), "-p", about["playbook"], "--ident", "1"]
        log = open(job / "log", "w", encoding="utf-8")
        return subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        ), job

    def run(self, template, **more):
        """A whole job: (its status, its output). Its statistics become variables of the jobs after it."""
        process, job = self.start(template, **more)
        process.wait(JOB_S + 30)
        return self.ended(job)

    def ended(self, job):
        """What a job left: (status, output); its artifacts are taken over."""
        events = [json.loads(path.read_text()) for path in sorted((job / "artifacts/1/job_events").glob("*.json"))]
        for event in events:
            self.artifacts.update((event.get("event_data") or {}).get("artifact_data") or {})
        assert events, (job / "log").read_text()
        return (job / "artifacts/1/status").read_text(), (job / "artifacts/1/stdout").read_text()


class Loader(yaml.SafeLoader):  # pylint: disable=too-many-ancestors
    """YAML with Ansible's tag for texts that are no templates."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


def family(pid):
    """A process and all that it started: a container that is killed takes them all along, and none
    outlives the test.
    """
    children = [child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return [pid, *(each for child in children for each in family(int(child)))]


@pytest.fixture
def chat():
    """A webhook: what was posted to it."""
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):  # pylint: disable=arguments-differ
            """Quiet."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hooks/secret-path", posted
    server.shutdown()
    server.server_close()


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with two drives."""
    site.drives = [loop_drive("good"), loop_drive("bad")]
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector for drive in site.drives]}}
    site.vars.pop("ssd_mode")
    site.vars.pop("ssd_results_dir")
    site.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 100}]
    return Awx(site, tmp_path / "awx")


def test_a_night_from_the_plan_to_the_message_with_one_bad_drive(awx, chat):
    address, posted = chat
    before = [drive.digest() for drive in awx.site.drives]
    # A survey that was left empty: ansible-core 2.19 reads it as nothing at all.
    assert awx.run("plan", ssd_run_id="")[0] == "successful"
    assert [drive.digest() for drive in awx.site.drives] == before and awx.site.run_folders() == []
    run_id = awx.artifacts["ssd_run_id"]
    assert awx.run("start")[0] == "successful"
    assert [folder.name for folder in awx.site.run_folders()] == [run_id]
    awx.site.drives[1].detach()  # It dies before its turn comes.
    # A watch that ran out of time, was cancelled or killed costs nothing: the next one goes on.
    assert awx.run("watch", limit_s=4)[0] in ("timeout", "failed")
    for how in (signal.SIGTERM, signal.SIGKILL):
        process, _job = awx.start("watch")
        time.sleep(3)
        for each in family(process.pid) if how == signal.SIGKILL else [process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, how)
        process.wait(JOB_S)
    # One that ends by itself, though hosts are at work, is no failure.
    assert awx.run("watch", ssd_watch_for_s=1)[0] == "successful"
    assert awx.run("watch")[0] == "successful"
    assert awx.run("collect")[0] == "successful"
    status, said = awx.run("report")
    assert status == "failed" and "1 of 2 drives did not pass" in said
    assert awx.artifacts["ssd_verdicts"]["pass"] == 1 and len(json.dumps(awx.artifacts)) < 8000
    status, said = awx.run("notify", report_webhook_url=address)
    assert status == "successful" and "secret-path" not in said
    (message,) = posted
    assert message["text"].startswith(f"{run_id}: 1 of 2 drives did not pass (") and "No run before" in message["text"]
    assert awx.site.drives[1].file.name in message["text"]
