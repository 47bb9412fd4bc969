# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: each an ansible-runner process with folders of its own, which are gone for the next one."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import yaml
from waiting import wait_for_end, wait_until

REPO = Path(__file__).resolve().parents[2]
RUNNER = Path(sys.executable).parent / "ansible-runner"
# As in AWX, where jobs may live for hours.
JOB_S = 3600
# AWX leaves a task's result out of the events where it has more characters.
EVENT_LIMIT = 700_000
# What the command line of a host job holds: the engine.
JOB = b"/engine-"


class Unsafe(yaml.SafeDumper):
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
        self.nodes = {
            name: {node["id"]: node for node in [*about["nodes"], *content["__awx_measured"]]}
            for name, about in content["__awx_workflows"].items()
        }
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

    def run(self, template, limit_s=JOB_S, **more):
        """A whole job: (its status, its output). Its statistics become variables of the jobs after it."""
        process, job = self.start(template, limit_s, **more)
        wait_for_end(process, template)
        return self.ended(job)

    def workflow(self, name, first="plan", **credentials):
        """Run a workflow's nodes along its edges, as AWX does: (node's id, status, output) of each job once it ended.
        credentials: what a template's job alone gets.
        """
        following = [first]
        while following:
            node = self.nodes[name][following.pop(0)]
            status, said = self.run(node["template"], **credentials.get(node["template"], {}))
            yield node["id"], status, said
            after = "success" if status == "successful" else "failure"
            following += [*node.get("always", []), *node.get(after, [])]

    def begun(self, job):
        """The tasks that a job has begun."""
        for path in (job / "artifacts/1/job_events").glob("*.json"):
            with contextlib.suppress(OSError, ValueError):  # it is being written
                event = json.loads(path.read_text())
                if event["event"] == "playbook_on_task_start":
                    yield event["event_data"]["task"]

    def kill_in(self, template, task, when=lambda: True, **more):
        """Kill a job once it has begun that task, and `when` holds."""
        process, job = self.start(template, **more)
        self.await_task(process, job, task, when)
        kill(process)
        return job

    def await_task(self, process, job, task, when=lambda: True):
        """Wait until a job has begun that task, and `when` holds."""
        wait_until(
            lambda: task in self.begun(job) and when(),
            f"the task {task}",
            progress=lambda: sum(1 for _task in self.begun(job)),
            process=process,
            said=(job / "log").read_text,
            poll_s=0.02,
        )

    def forget(self):
        """The workflow is over; the next one knows nothing of its artifacts."""
        self.artifacts = {}

    def ended(self, job):
        """What a job left: (status, output); its artifacts are taken over."""
        texts = [path.read_text() for path in sorted((job / "artifacts/1/job_events").glob("*.json"))]
        assert max(map(len, texts), default=0) < EVENT_LIMIT, "AWX would drop what a task returned"
        events = [json.loads(text) for text in texts]
        for event in events:
            self.artifacts.update((event.get("event_data") or {}).get("artifact_data") or {})
        assert events, (job / "log").read_text()
        return (job / "artifacts/1/status").read_text(), (job / "artifacts/1/stdout").read_text()


def nightly(site, folder, *drives):
    """The nightly of one server with these drives."""
    site.drives = drives
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector for drive in drives]}}
    site.vars.pop("ssd_mode")
    site.vars.pop("ssd_results_dir")
    site.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 1}]
    return Awx(site, folder)


@contextlib.contextmanager
def webhook():
    """A chat's address, and what was posted to it."""
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            """Quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hooks/secret-path", posted
        finally:
            server.shutdown()


class Loader(yaml.SafeLoader):
    """YAML with Ansible's tag for texts that are no templates."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


def family(pid):
    """A process and all that it started, but for host jobs, which are elsewhere in truth: a container that is killed
    takes them all along, and none outlives the test.
    """
    with contextlib.suppress(OSError):
        if JOB in Path(f"/proc/{pid}/cmdline").read_bytes():
            return []
        children = [
            child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
        ]
        return [pid, *(each for child in children for each in family(int(child)))]
    return []


def kill(process):
    """As the node's end would: at once, and all of it."""
    for each in family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()
