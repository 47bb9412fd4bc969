# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server whose Python answers modules as it likes: the real one runs them, and a function of the test changes what
they say.
"""

from __future__ import annotations

import json
import sys
import typing as t
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import examine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = f"{REPO}/playbooks/collections:{REPO}/.ansible/collections"
GOOD, BAD = "good", "bad"
RUN = "20261121T130000Z-qualify"
ENDED = "2026-11-21T13:00:00.000Z"
# Ansible sends a module as a program, on the standard input (pipelining) or as a file.
INTERPRETER = """#!{python} -IS
import json, os, re, subprocess, sys
PARTS = {parts!r}
def asked(module, real, answer):
    if module != "examine":
        return answer(module, real)
    # A test says what a module answers; preflight asks them all in one go.
    whole = dict(real)
    for part, keys in PARTS.items():
        told = answer(part, dict({{key: real[key] for key in keys if key in real}}, changed=False))
        if isinstance(told, bytes):
            return told
        whole.update({{key: value for key, value in told.items() if key != "changed"}})
    return whole
args = sys.argv[1:]
source = b"" if args else sys.stdin.buffer.read()
text = open(args[0], "rb").read() if args and os.path.isfile(args[0]) else source
done = subprocess.run([{python!r}, *args], input=source, capture_output=True)
name = re.search(rb"(?:plugins|ansible)[./]modules[./](\\w+)", text)
said = done.stdout
if name:
    answers = {{}}
    exec(open({answers!r}).read(), answers)
    try:
        real = json.loads(said)
    except ValueError:
        real = {{}}
    told = asked(name.group(1).decode(), real, answers["answer"])
    said = told if isinstance(told, bytes) else json.dumps(told).encode()
sys.stdout.buffer.write(said)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
"""
HONEST = "def answer(module, real):\n    return real\n"


def hostile_python(folder: Path, answer: str = HONEST) -> str:
    """An interpreter for `ansible_python_interpreter`. answer: source of `answer(module, real)`, which returns what
    Ansible gets (or bytes).
    """
    folder.mkdir(parents=True, exist_ok=True)
    answers, path = folder / "answers.py", folder / "python3"
    answers.write_text(answer)
    path.write_text(INTERPRETER.format(parts=dict(examine.PARTS), python=sys.executable, answers=str(answers)))
    path.chmod(0o755)
    return str(path)


def finished_run(state_dir: Path, run_id: str = RUN, drive: str = "A1", host: str = "good") -> RunDir:
    """A run's folder as a host job leaves it, with one drive and one steady test."""
    run_dir = RunDir(str(state_dir), run_id)
    Path(run_dir.path).mkdir(parents=True)
    journal = finished_journal({"schema_version": 1, "time": ENDED, "run_id": run_id, "host": host}, drive)
    drives = [{"drive": drive, "tests": [steady_test.planned_json()]}]
    plan = planned.plan_json(run={"id": run_id, "name": "qualify"}, host=host, drives=drives)
    Path(run_dir.status).write_text(json.dumps(finished_status(run_id, drive, host)))
    Path(run_dir.journal).write_text("".join(json.dumps(record) + "\n" for record in journal))
    Path(run_dir.plan).write_text(json.dumps(plan))
    return run_dir


def finished_status(run_id: str, drive: str, host: str) -> dict[str, t.Any]:
    """The status.json of such a run."""
    entry = {
        "drive": drive,
        "path": "/dev/null",
        "phase": "done",
        "outcome": "complete",
        "test": "iops",
        "test_index": 1,
        "tests": 1,
        "round": 5,
        "round_max": 25,
        "cell": None,
        "last": None,
        "time_left_s": None,
        "later_s": None,
        "message": "",
        "updated": ENDED,
        "news_within_s": None,
    }
    return {
        "schema_version": 1,
        "run_id": run_id,
        "run_name": "qualify",
        "host": host,
        "boot_id": "b",
        "pid": 1,
        "pid_start": "1",
        "unit": None,
        "engine_version": "0.1.0",
        "state": "finished",
        "started": ENDED,
        "updated": ENDED,
        "restored": True,
        "message": "",
        "drives": [entry],
    }


def finished_journal(common: dict[str, t.Any], drive: str) -> list[dict[str, t.Any]]:
    """The records of its journal. common: to all of them."""
    of_test = {**common, "drive": drive, "test": "iops", "attempt": 1}
    return [
        {
            **common,
            "event": "job_started",
            "boot_id": "b",
            "pid": 1,
            "engine_version": "0.1.0",
            "fio_version": "fio-3.33",
        },
        {
            **common,
            "event": "drive_started",
            "drive": drive,
            "identity": {"serial": drive, "model": "Fake"},
            "path": "/dev/null",
            "tests": ["iops"],
        },
        {**of_test, "event": "test_started", "title": "Random IOPS"},
        *({**of_test, **event} for event in steady_test.events()),
        {**common, "event": "job_finished", "state": "finished"},
    ]


def asked_run(results: Path, hosts: dict[str, str], run_id: str = RUN, started: str = "2026-11-21T13:00:00Z") -> Path:
    """The controller's own record of a run: {host: drive}. Its folder."""
    folder = results / run_id
    folder.mkdir(parents=True)
    asked = [{"host": host, "drive": drive, "tests": ["iops"]} for host, drive in hosts.items()]
    record = {
        "schema_version": 1,
        "run": {"id": run_id, "name": "qualify"},
        "started": started,
        "asked": asked,
        "criteria": [],
        "tests": {"iops": {"title": "Random IOPS", "source": None, "tracked": [{"cell": "c", "metric": "write_iops"}]}},
        "versions": {"collection": "0.1.0", "ansible_core": "2.19", "python": "3"},
    }
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def play(site, tasks, *args, env=None, cwd=None):
    """Play these tasks on all hosts of the site: (exit code, output)."""
    path = site.folder / "play.yml"
    path.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    return site.play(path, *args, env={"ANSIBLE_COLLECTIONS_PATH": COLLECTIONS, **(env or {})}, cwd=cwd or REPO)


def files_outside(folder, *known):
    """Files below the test's folder that are in none of the known ones."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part in known for part in path.relative_to(folder).parts)
    ]
