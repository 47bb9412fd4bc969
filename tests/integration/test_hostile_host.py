# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile server can do to the controller and to the others: nothing (docs/trust.md). Each test is a case of
that page.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import RUN, asked_run, finished_run, hostile_python
from sshd import SSHD, loopback_sshd

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = f"{REPO}/playbooks/collections:{REPO}/.ansible/collections"
GOOD, BAD = "good", "bad"

needs_sshd = pytest.mark.skipif(not SSHD or os.geteuid() != 0, reason="needs root and sshd (Debian: openssh-server)")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """The variables of a host that is reached through an sshd of our own."""
    with loopback_sshd(tmp_path_factory.mktemp("sshd")) as variables:
        yield variables


@pytest.fixture
def pair(site, tmp_path):
    """Two servers on this machine, one honest and one that is not, each with a state folder of its own:
    pair(answer).
    """
    site.vars.pop("ssd_state_dir")
    site.vars["ssd_mode"] = "plan"

    def make(answer, **more):
        for name in (GOOD, BAD):
            site.hosts[name] = {
                "ssd_state_dir": str(tmp_path / name),
                "ssd_drives": [{"serial": {GOOD: "A1", BAD: "B2"}[name]}],
            }
        site.hosts[BAD].update(ansible_python_interpreter=hostile_python(tmp_path / "hostile", answer), **more)
        return site

    return make


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


# C1: paths

SFTP = """
import os
TRAP = {trap!r}
def answer(module, real):
    if "packed" in real:
        real["packed"]["path"] = TRAP
    if "bugreport" in real:
        real["bugreport"] = TRAP
    return real
"""


def sftp_trap(folder):
    """A path that runs a command where ansible-core hands it to sftp as a batch, and the file that sftp then takes for
    the one meant.
    """
    folder.mkdir(exist_ok=True)
    (folder / "x'\"'").write_text("bait")
    return f"{folder}/x\\'\"\n!touch {folder}/pwned\n#", folder / "pwned"


@needs_sshd
def test_a_path_in_an_answer_runs_nothing_when_results_are_collected(site, tmp_path, sshd):
    trap, pwned = sftp_trap(tmp_path / "trap")
    finished_run(tmp_path / "state")
    site.hosts[BAD] = dict(
        sshd, ansible_python_interpreter=hostile_python(tmp_path / "hostile", SFTP.format(trap=trap))
    )
    task = {
        "ssdlab.fleet.collect": {"run_id": RUN, "results_dir": str(site.results), "state_dir": str(tmp_path / "state")}
    }
    code, output = play(site, [task], cwd=tmp_path)
    assert not pwned.exists(), output
    assert code == 0 and (site.results / RUN / "raw" / BAD / "journal.jsonl").exists(), output


@needs_sshd
def test_a_path_in_an_answer_runs_nothing_when_a_bugreport_is_fetched(site, tmp_path, sshd):
    trap, pwned = sftp_trap(tmp_path / "trap")
    answer = SFTP.format(trap=trap).replace(
        "return real",
        """if module == "stat":
        return {"changed": False, "stat": {"exists": True, "isdir": False, "checksum": "0" * 40, "size": 4}}
    known = {"cards": [], "dma_delay": {"configured": None, "effective": None}, "driver_reload_required": False}
    return dict(known, changed=True, bugreport=TRAP) if module == "iomemory" else real""",
    )
    site.hosts[BAD] = dict(
        sshd, ansible_python_interpreter=hostile_python(tmp_path / "hostile", answer), ssd_mode="destructive"
    )
    tasks = [
        {"ansible.builtin.set_fact": {"ssd_run": {"id": RUN, "results_dir": str(site.results), "destructive": True}}},
        {"ansible.builtin.include_role": {"name": "ssdlab.fleet.vendor", "tasks_from": "bugreport"}},
    ]
    play(site, tasks, cwd=tmp_path)
    assert not pwned.exists()


# C2: facts

FACTS = """
def answer(module, real):
    stats = {{"data": {facts!r}, "aggregate": False, "per_host": False}}
    return dict(real, ansible_facts={facts!r}, ansible_stats=stats,
                warnings=["forged warning"], deprecations=[{{"msg": "forged deprecation", "version": "9"}}])
"""


def test_a_fact_never_outranks_the_inventory(pair, tmp_path):
    target = tmp_path / ".bashrc"
    target.write_text("mine")
    site = pair(
        FACTS.format(
            facts={"ssd_discover_file": str(target), "vendor_bmc_address": "evil.example", "ssd_run": {"id": "x"}}
        )
    )
    code, output = site.play("discover", env={"ANSIBLE_SHOW_CUSTOM_STATS": "1"})
    assert target.read_text() == "mine", output
    assert code == 0 and "forged" not in output and "CUSTOM STATS" not in output, output


@pytest.mark.parametrize(
    "module",
    [
        "examine",
        "run_info",
        "host_info",
        "campaign_info",
        "host_facts",
        "drive_facts",
        "host_checks",
        "boot_arguments",
        "iomemory",
        "rssdm",
        "irq_affinity",
        "tunables",
    ],
)
def test_no_module_of_ours_brings_facts(site, tmp_path, module):
    """Whichever the site calls: a fact is known to no later task, nor a statistic to AWX."""
    answer = (
        "def answer(module, real):\n    return {'changed': False, 'ansible_facts': {'ssd_mode': 'forged'}, "
        "'ansible_stats': {'data': {'ssd_mode': 'forged'}}}\n"
    )
    site.hosts[BAD] = {"ansible_python_interpreter": hostile_python(tmp_path / "hostile", answer)}
    arguments = {"rssdm": {"serial": "1"}, "boot_arguments": {"state": "absent"}, "irq_affinity": {"drives": []}}.get(
        module, {}
    )
    tasks = [
        {f"ssdlab.fleet.{module}": arguments, "register": "told", "ignore_errors": True},
        {
            "ansible.builtin.debug": {
                "msg": (
                    "mode={{ ssd_mode }} facts={{ ansible_facts.ssd_mode | default('none') }} told={{ "
                    "told.ansible_facts | default('none') }}"
                )
            }
        },
    ]
    _code, output = play(site, tasks, env={"ANSIBLE_SHOW_CUSTOM_STATS": "1"})
    assert "mode=destructive facts=none told=none" in output, output
    assert "CUSTOM STATS" not in output


@pytest.mark.parametrize(
    "name", ["preflight", "discover", "collect", "watch", "stop", "restore", "cleanup", "report", "vendor"]
)
def test_every_playbook_refuses_facts_as_variables(site, name):
    """Another ansible.cfg than ours, or AWX's settings, would let the facts of other modules outrank the inventory."""
    site.hosts[GOOD] = {"ssd_drives": [{"serial": "A1"}], "vendor_rssdm": [{"serial": "A1"}]}
    code, output = site.play(name, env={"ANSIBLE_INJECT_FACT_VARS": "True"})
    assert code != 0, output
    assert "inject_facts_as_vars = False" in output, output


# H3: discover


def test_discover_writes_no_template_for_a_serial(pair, tmp_path):
    pwned, listed = tmp_path / "pwned", tmp_path / "drives.yml"
    serial = f"{{{{ lookup('pipe', 'touch {pwned}') }}}}"
    drive = {
        "selector": {"serial": serial},
        "drive": serial,
        "path": "/dev/sdx",
        "identity": {"serial": serial, "model": "{% raw %}"},
        "eligible": True,
        "refusals": [],
        "overridden": [],
        "own_data": None,
        "purge": [],
        "purge_capabilities": {},
    }
    site = pair(f"def answer(module, real):\n    return {{'changed': False, 'drives': [{drive!r}]}}\n")
    code, output = site.play("discover", "-e", f"ssd_discover_file={listed}")
    assert code == 0, output
    site.hosts.clear()
    tasks = [
        {"ansible.builtin.debug": {"msg": "{{ ssd_drives }}"}, "ignore_errors": True},
        {"ssdlab.fleet.drive_facts": {"drives": "{{ ssd_drives }}"}, "ignore_errors": True},
    ]
    play(site, tasks, "-i", str(listed))
    assert not pwned.exists(), listed.read_text()


# H4: run ids

BAD_IDS = ["../trav/.config/x", "/abs", "..", ".", "", "a/b", "a\n", "-x", "a" * 101, "a b", None, 5, ["a"], "\u00e9"]


def claims(run_id, state, name="qualify"):
    run = {
        "run_id": run_id,
        "run_name": name,
        "state": state,
        "drives": 1,
        "updated": "2099-01-01T00:00:00.000Z",
        "definitions": {},
    }
    return f"def answer(module, real):\n    return dict(real, runs=[{run!r}]) if module == 'run_info' else real\n"


@pytest.mark.parametrize("run_id", BAD_IDS[:6:2])
def test_a_run_id_from_a_host_is_no_path(pair, tmp_path, run_id):
    site = pair(claims(run_id, "dead"))
    site.vars["ssd_mode"] = "destructive"
    code, output = site.play("preflight")
    assert code != 0, output
    assert "run_id" in output and BAD in output, output
    assert not files_outside(tmp_path, "hostile", "inventory.json", GOOD, BAD), output


@pytest.mark.parametrize("state", ["dead", "running"])
def test_an_old_run_is_not_adopted_for_a_hosts_word(pair, tmp_path, state):
    """All hosts finished it; one now says that it is unfinished, so its old verdicts would be those of today."""
    site = pair(claims(RUN, state))
    finished_run(tmp_path / GOOD)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    site.vars["ssd_mode"] = "destructive"
    code, output = site.play("qualify")
    assert code != 0, output
    assert f"ssd_run_id={RUN}" in output, output
    assert not (site.results / RUN / "report").exists(), "nothing of the old run is reported"


def test_a_run_that_the_controller_does_not_know_is_not_adopted(pair):
    site = pair(claims(RUN, "dead"))
    code, output = site.play("preflight")
    assert code != 0 and f"ssd_run_id={RUN}" in output, output
    assert f"Run {RUN}" not in output, "the plan of another run"


def test_report_and_collect_do_not_take_a_hosts_word_for_the_newest_run(pair, tmp_path):
    older, newer = "20260101T000000Z-qualify", "20261121T130000Z-qualify"
    site = pair(claims(older, "finished"))
    asked_run(site.results, {GOOD: "A1", BAD: "B2"}, older, "2026-01-01T00:00:00Z")
    asked_run(site.results, {GOOD: "A1", BAD: "B2"}, newer, "2026-11-21T13:00:00Z")
    _code, output = site.play("collect")
    assert (site.results / newer / "results.jsonl").exists() and not (
        site.results / older / "results.jsonl"
    ).exists(), output


# M5: one bad answer, and the others go on

MUTATED = {
    "a drive that is a list": "real['records'][0]['drive'] = ['X']",
    "a newer schema": "[record.update(schema_version=2) for record in real['records']]",
    "no records": "real['records'] = {'a': 1}",
    "a record that is a number": "real['records'].append(7)",
    "metrics that are text": "[record.update(metrics='much') for record in real['records']]",
    "a figure that is no number": "[record.update(metrics={'write_iops': float('nan')}) for record in real['records']]",
    "another host's name": "[record.update(host='good') for record in real['records']]",
    "another run": "[record.update(run_id='../other') for record in real['records']]",
    "a status that is a list": "real['status'] = [1]",
    "a state that is a number": "real['state'] = 7",
    "a packed file that is none": "real['packed'] = 'x'",
    "a checksum that is a path": "real['packed']['sha256'] = '../../x'",
    "no JSON at all": "return b'Traceback'",
    "JSON that goes deep": "return b'{\"a\":' * 50000 + b'1' + b'}' * 50000",
}


@pytest.mark.parametrize("what", MUTATED)
def test_a_bad_answer_is_that_hosts_error_alone(pair, tmp_path, what):
    site = pair(
        f"def answer(module, real):\n    if real.get('records') is not None:\n        {MUTATED[what]}\n    return "
        "real\n"
    )
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    _code, output = site.play("collect", "-e", f"ssd_run_id={RUN}")
    _code, told = site.play("report", "-e", f"ssd_run_id={RUN}")
    verdicts = {drive["host"]: drive["verdict"] for drive in site.summary()["drives"] if drive["drive"] in ("A1", "B2")}
    assert verdicts[GOOD] == "pass", output + told
    if what != "another host's name":
        assert verdicts[BAD] in ("error", "not_tested", "pass"), told
    assert "Traceback" not in told and "results are not in" not in output, output + told
    assert len(site.summary()["drives"]) <= 3, site.summary()


# M9: results.csv

SPREADSHEET = """
def answer(module, real):
    for record in real.get("records") or []:
        if record["kind"] == "drive":
            record["identity"].update(serial="=cmd|' /C calc'!A0", model="\\t=1+1", firmware="+1", note="-1")
            record["path"] = "@SUM(1)"
        else:
            {test}
    return real
"""


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        (
            (
                "record['title'] = '=1'; record['purge'] = {'method': '-2+3', 'seconds': 1, 'verified': True, "
                "'verification': {}, 'purge_class': 'pts'}"
            ),
            "pass",
        ),
        # A lone CR begins a row for a spreadsheet, and the formula in it.
        ("record.update(outcome='invalid', reasons=['a\\r=cmd()', '\\n+1', '\\uff1d1'])", "invalid"),
        ("record['metrics'].update({'serial': 1.0})", "error"),
        ("record['metrics'].update({'=1+1': 1.0})", "error"),
    ],
    ids=["formulas", "a lone CR", "a metric called serial", "a metric that is a formula"],
)
def test_a_spreadsheet_takes_nothing_of_a_hosts_for_a_formula_or_a_row(pair, tmp_path, test, verdict):
    site = pair(SPREADSHEET.format(test=test))
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    _code, output = site.play("collect", "-e", f"ssd_run_id={RUN}")
    _code, told = site.play("report", "-e", f"ssd_run_id={RUN}")
    raw = (site.results / RUN / "report" / "results.csv").read_bytes()
    assert b"\r" not in raw and raw.count(b"\n") == 3, output + told
    header, *rows = csv.reader(io.StringIO(raw.decode(), newline=""))
    assert len(set(header)) == len(header) and "=1+1" not in header, header
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in tuple("=+-@\uff1d") or cell[:1] == "\t"], (
        rows
    )
    found = {row[header.index("host")]: dict(zip(header, row)) for row in rows}
    assert (found[GOOD]["serial"], found[GOOD]["verdict"], found[GOOD]["write_iops"]) == ("A1", "pass", "100.0")
    assert (found[BAD]["serial"], found[BAD]["verdict"]) == ("'=cmd|' /C calc'!A0", verdict), found[BAD]


# M10: what is printed

CONTROL = "\x1b]0;title\x07\x1b[2Jcleared\r\nforged: all passed\x9b31m\u202e"


def unclean(output):
    """Where a control character or a forged line stands in an output; "" for a clean one."""
    found = re.search("[\x1b\x07\x9b\u202e\r]|\nforged", output)
    return ascii(output[max(0, found.start() - 200) : found.end() + 50]) if found else ""


def test_nothing_that_a_host_says_reaches_the_terminal_as_it_is(pair, tmp_path):
    answer = f"""
def spread(value):
    if isinstance(value, dict):
        return {{key: spread(item) for key, item in value.items()}}
    if isinstance(value, list):
        return [spread(item) for item in value]
    short = isinstance(value, str) and len(value) < 60
    return value + {CONTROL!r} if short and value not in ("finished", "B2", {RUN!r}) else value
def answer(module, real):
    return spread(real)
"""
    site = pair(answer)
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    for name in ("preflight", "discover", "collect", "report"):
        _code, output = site.play(name, *(["-e", f"ssd_run_id={RUN}"] if name in ("collect", "report") else []))
        assert not unclean(output), name


def test_a_failure_that_a_host_makes_up_is_printed_clean(pair):
    site = pair(
        f"def answer(module, real):\n    return {{'failed': True, 'msg': {CONTROL!r} + 'x' * 100000, 'exception': "
        f"{CONTROL!r}}}\n"
    )
    for name in ("preflight", "discover", "stop"):
        _code, output = site.play(name)
        assert not unclean(output) and len(output) < 60_000, name


def watch_play(site, **more):
    tasks = [
        {
            "ssdlab.fleet.watch": {"run_id": RUN, "interval_s": 0.3, "host_timeout_s": 5, "give_up_s": 2, **more},
            "run_once": True,
            "register": "seen",
        },
        {"ansible.builtin.debug": {"msg": "{{ seen.hosts }}"}, "run_once": True},
    ]
    return play(site, tasks)


STATUSES = {
    "drives are numbers": {"drives": [1]},
    "no phase": {"drives": [{"drive": "B2", "outcome": None}]},
    "a state of its own": {"state": ["finished"]},
    "a pid that is a path": {"pid": "../../etc/passwd", "state": "running"},
    "a number without end": {
        "state": "running",
        "drives": [{"drive": "B2", "phase": "measure", "outcome": None, "time_left_s": float("inf")}],
    },
    "a name of lists": {"drives": [{"drive": ["x"], "phase": "measure", "outcome": None}]},
}


@pytest.mark.parametrize("what", STATUSES)
def test_a_bad_status_ends_the_watch_for_nobody(pair, tmp_path, what):
    site = pair("def answer(module, real):\n    return real\n")
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        run_dir = finished_run(tmp_path / name, drive=drive, host=name)
    status = json.loads(Path(run_dir.status).read_text())
    Path(run_dir.status).write_text(json.dumps({**status, **STATUSES[what]}))
    code, output = watch_play(site)
    assert code == 0 and f"'{GOOD}': 'finished'" in output.replace('"', "'"), output


def test_a_status_is_printed_clean_and_from_each_hosts_own_folder(pair, tmp_path):
    """The hosts have state folders of their own; the first one's is not taken for all."""
    site = pair("def answer(module, real):\n    return real\n")
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        run_dir = finished_run(tmp_path / name, drive=drive, host=name)
    status = json.loads(Path(run_dir.status).read_text())
    status.update(state="failed", message=CONTROL)
    status["drives"][0].update(outcome="error", message=CONTROL)
    Path(run_dir.status).write_text(json.dumps(status))
    code, output = watch_play(site)
    seen = output.replace('"', "'")
    assert code == 0 and f"'{GOOD}': 'finished'" in seen and f"'{BAD}': 'failed'" in seen, output
    assert not unclean(output)


# C2 again: what the callback takes


def test_the_callback_is_led_nowhere_by_a_host(pair, tmp_path):
    """Any task's result could name a run and its folder; only actions on the controller may."""
    elsewhere = tmp_path / "elsewhere"
    run = {"id": "x", "results_dir": str(elsewhere)}
    record = {
        "schema_version": 1,
        "kind": "drive",
        "time": "2026-11-21T13:00:00Z",
        "run_id": "x",
        "host": GOOD,
        "drive": "A1",
        "outcome": "complete",
    }
    site = pair(
        f"def answer(module, real):\n    return dict(real, ssd_run={run!r}, records=[{record!r}], "
        f"results=[{{'ssd_run': {run!r}, 'records': [{record!r}]}}])\n"
    )
    (elsewhere / "x").mkdir(parents=True)
    tasks = [{"ssdlab.fleet.run_info": {}}, {"ansible.builtin.ping": {}}]
    play(site, tasks)
    assert not (elsewhere / "x" / "results.jsonl").exists()


def test_collects_of_one_host_at_once_do_not_spoil_each_other(site, tmp_path):
    finished_run(tmp_path / "state")
    site.hosts = {GOOD: {}}
    task = {
        "ssdlab.fleet.collect": {"run_id": RUN, "results_dir": str(site.results), "state_dir": str(tmp_path / "state")}
    }
    play(site, [task] * 6)
    argv = [
        os.path.join(os.path.dirname(sys.executable), "ansible-playbook"),
        str(tmp_path / "play.yml"),
        "-i",
        str(tmp_path / "inventory.json"),
    ]
    environment = dict(os.environ, ANSIBLE_CONFIG=str(REPO / "ansible.cfg"), ANSIBLE_COLLECTIONS_PATH=COLLECTIONS)
    # A file that changes makes each collect fetch anew.
    plays = [
        subprocess.Popen(argv, cwd=REPO, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _play in range(4)
    ]
    journal = tmp_path / "state/runs" / RUN / "journal.jsonl"
    text = journal.read_text()
    while any(each.poll() is None for each in plays):
        text += json.dumps({"event": "unknown"}) + "\n"
        aside = journal.parent / ".journal"
        aside.write_text(text)
        aside.replace(journal)
        time.sleep(0.05)
    outputs = [each.communicate()[0] for each in plays]
    assert all(each.returncode == 0 for each in plays), "\n".join(outputs)
    assert sorted(os.listdir(site.results / RUN / "raw")) == [GOOD]
