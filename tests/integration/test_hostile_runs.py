# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile server can say of runs and drives so that the controller acts on it: nothing (docs/trust.md)."""

from __future__ import annotations

import pytest
from hostile import BAD, GOOD, RUN, asked_run, files_outside, finished_run, play

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
    assert not files_outside(tmp_path, "hostile", "inventory.json", "_nights", GOOD, BAD), output


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
