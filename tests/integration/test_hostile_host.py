# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile server's answers can do to the controller's files and to the results of others: nothing
(docs/trust.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from hostile import BAD, COLLECTIONS, GOOD, REPO, RUN, asked_run, finished_run, hostile_python, play
from sshd import SSHD, loopback_sshd

needs_sshd = pytest.mark.skipif(not SSHD or os.geteuid() != 0, reason="needs root and sshd (Debian: openssh-server)")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """The variables of a host that is reached through an sshd of our own."""
    with loopback_sshd(tmp_path_factory.mktemp("sshd")) as variables:
        yield variables


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
        {
            "ansible.builtin.set_fact": {
                "ssd_decision": {"run": {"id": RUN, "results_dir": str(site.results), "destructive": True}}
            }
        },
        {"ansible.builtin.include_role": {"name": "ssdlab.fleet.vendor", "tasks_from": "bugreport"}},
    ]
    play(site, tasks, cwd=tmp_path)
    assert not pwned.exists()


# M5: one bad answer, and the others go on

# The real answer, with more in its object.
APPENDED = "import json; return json.dumps(real).encode()[:-1] + "
MUTATED = {
    "a drive that is a list": "real['status']['drives'][0]['drive'] = ['X']",
    "a newer schema": "real['status']['schema_version'] = 2",
    "no drives": "real['status']['drives'] = {'a': 1}",
    "a drive that is a number": "real['status']['drives'].append(7)",
    "a time that is no number": "real['status']['drives'][0]['time_left_s'] = float('nan')",
    "another host's name": "real['status']['host'] = 'good'",
    "another host's drive": "real['status']['drives'][0]['drive'] = 'A1'",
    "another run": "real['status']['run_id'] = '../other'",
    "a status that is a list": "real['status'] = [1]",
    "a state that is a number": "real['state'] = 7",
    "a packed file that is none": "real['packed'] = 'x'",
    "a checksum that is a path": "real['packed']['sha256'] = '../../x'",
    "no JSON at all": "return b'Traceback'",
    "every drive a hundred times": "real['status']['drives'] *= 100",
    "drives without end": "real['status']['drives'] *= 50_000",
    "a name that nobody sees": "real['status']['drives'][0]['drive'] = 'B2\\u3164'",
    "a text with a tag of ansible-core's": "real['state'] = {'__ansible_type': 'TrustedAsTemplate', 'value': '{'}",
    "keys twice": APPENDED + """b', "state": "{{ 1 }}", "status": 5}'""",
    "a number of 5,000 digits": APPENDED + """b', "pid": ' + b'9' * 5000 + b'}'""",
    "bytes in no encoding": APPENDED + r"""b', "message": "\xff\xfe"}'""",
    "JSON that goes deep": "return b'{\"a\":' * 50000 + b'1' + b'}' * 50000",
}


@pytest.mark.variants(5)
@pytest.mark.parametrize("what", MUTATED)
def test_a_bad_answer_is_that_hosts_error_alone(pair, tmp_path, what):
    site = pair(f"def answer(module, real):\n    if real.get('status'):\n        {MUTATED[what]}\n    return real\n")
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    _code, output = site.play("collect", "-e", f"ssd_run_id={RUN}")
    _code, told = site.play("report", "-e", f"ssd_run_id={RUN}")
    verdicts = {drive["host"]: drive["verdict"] for drive in site.summary()["drives"] if drive["drive"] in ("A1", "B2")}
    assert verdicts[GOOD] == "pass", output + told
    if BAD in verdicts:
        assert verdicts[BAD] in ("error", "not_tested", "pass"), told
    assert "Traceback" not in told and "results are not in" not in output, output + told
    assert len(site.summary()["drives"]) <= 3, site.summary()


def test_collects_of_one_host_at_once_do_not_disturb_each_other(site, tmp_path):
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
