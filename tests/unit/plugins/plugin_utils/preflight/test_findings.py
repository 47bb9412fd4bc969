# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import findings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

NOW = datetime.datetime(2026, 11, 21, 13, 0, 0, tzinfo=datetime.timezone.utc)
ASKED = {
    "ssd_drives": [{"serial": "S1"}],
    "ssd_mode": "plan",
    "ssd_run_name": "qualify",
    "ssd_run_id": "",
    "ssd_results_dir": "ssd-results",
    "ssd_criteria": [],
    "ssd_parallel_drives": 1,
    "ssd_assumed_write_mib_s": 500,
    "ssd_fio_min_version": "3.28",
}


def view(
    name="h1", runs=(), drives=None, facts=None, unreachable="", failures=None, similar=(), asked=True, **variables
):
    return host_answers.of(
        name, {**ASKED, **variables} if asked else None, runs, facts, drives, unreachable, failures or {}, similar
    )


def run_of(run_id, state, name="qualify"):
    return {"run_id": run_id, "run_name": name, "state": state}


def drive_of(serial="S1", refusals=(), **identity):
    who = {"serial": serial, "model": "M", "wwn": None, "diskseq": 1, "major_minor": "7:0", **identity}
    codes = [{"code": code, "message": f"{code} of {serial}"} for code in refusals]
    return {"drive": serial or "loop", "identity": who, "eligible": not codes, "refusals": codes}


def texts(found):
    return [finding.text() for finding in found]


def test_good_settings_give_no_finding():
    assert findings.settings([view("h1"), view("h2")]) == []
    assert (
        findings.settings(
            [view(ssd_mode="destructive", ssd_parallel_drives="4", ssd_run_id="20261121T130000Z-qualify")]
        )
        == []
    )
    watching = {"ssd_watch_interval_s": "0", "ssd_host_timeout_s": 0.1, "ssd_give_up_s": 0}
    assert (
        findings.settings(
            [view("rack 1-07.ö:é", tune_queue={"scheduler": "none", "nomerges": "2", "rq_affinity": 2}, **watching)]
        )
        == []
    )


@pytest.mark.parametrize("name", ["a/b", "..", ".", "h" * 201, "ö" * 101, "a\nb", "a\0b"])
def test_a_name_that_cannot_be_a_folder_is_found_before_collect(name):
    (found,) = findings.settings([view(name)])
    assert (
        found.host == name
        and "cannot name the folder of its results" in found.message
        and "ansible_host" in found.message
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ssd_mode", True, "h1: ssd_mode: True must be one of: plan, destructive"),
        ("ssd_mode", False, "h1: ssd_mode: False must be"),
        ("ssd_mode", "yes", "h1: ssd_mode: 'yes' must be"),
        ("ssd_mode", "Destructive", "did you mean destructive?"),
        ("ssd_mode", ["plan"], "h1: ssd_mode: ['plan'] must be"),
        ("ssd_mode", None, "h1: ssd_mode: None must be"),
        ("ssd_run_name", "a/b", "ssd_run_name: 'a/b' is not a valid name"),
        ("ssd_run_name", 7, "ssd_run_name: 7 is not a valid name"),
        ("ssd_run_name", 7, "it was read as a number"),
        ("ssd_run_name", False, "ssd_run_name: False is not a valid name"),
        ("ssd_run_name", [], "ssd_run_name: [] is not a valid name"),
        # What a survey's no and 0 become: no empty answer, for which a new run would be made.
        ("ssd_run_id", False, "ssd_run_id: False is not a valid id"),
        ("ssd_run_id", 0, "ssd_run_id: 0 is not a valid id"),
        ("ssd_run_id", 0, "it was read as a number"),
        ("ssd_run_id", [], "ssd_run_id: [] is not a valid id"),
        ("ssd_run_id", "../x", "ssd_run_id: '../x' is not a valid id"),
        ("ssd_run_id", ".", "ssd_run_id: '.' is not a valid id"),
        ("ssd_run_id", 20261121, "ssd_run_id: 20261121 is not a valid id"),
        ("ssd_parallel_drives", 0, "h1: ssd_parallel_drives: 0 must be a whole number of at least 1"),
        ("ssd_parallel_drives", "two", "h1: ssd_parallel_drives: 'two' must be a whole number"),
        ("ssd_parallel_drives", 1.5, "h1: ssd_parallel_drives: 1.5 must be"),
        ("ssd_parallel_drives", "1.5", "h1: ssd_parallel_drives: '1.5' must be"),
        ("ssd_parallel_drives", float("inf"), "h1: ssd_parallel_drives: inf must be"),
        ("ssd_watch_interval_s", -3, "h1: ssd_watch_interval_s: -3 must be 0 (automatic) or a number of at least 0.5"),
        ("ssd_watch_interval_s", "0.4", "h1: ssd_watch_interval_s: '0.4' must be"),
        ("ssd_task_timeout_s", 5, "h1: ssd_task_timeout_s: 5 must be 0 (no limit) or a whole number of seconds"),
        ("ssd_task_timeout_s", 2 * 10**7, "h1: ssd_task_timeout_s: 20000000 must be 0"),
        ("ssd_collect_timeout_s", "1.5", "h1: ssd_collect_timeout_s: '1.5' must be 0 (no limit)"),
        ("ssd_host_timeout_s", 0, "h1: ssd_host_timeout_s: 0 must be a number above 0"),
        ("ssd_overlap", "wait", "h1: ssd_overlap: 'wait' must be"),
        ("ssd_watch_for_s", "-1", "h1: ssd_watch_for_s: '-1' must be 0 (until all have ended)"),
        ("ssd_give_up_s", "-1", "h1: ssd_give_up_s: '-1' must be 0 (never give up)"),
        ("ssd_give_up_s", "soon", "h1: ssd_give_up_s: 'soon' must be"),
        ("tune_queue", ["none"], "h1: tune_queue: ['none'] must be a mapping of attributes below /sys/block"),
        ("tune_queue", {"../x": 1}, "h1: tune_queue: '../x' is not the name of an attribute"),
        ("tune_queue", {"a/b": 1}, "h1: tune_queue: 'a/b' is not the name"),
        ("tune_queue", {7: 1}, "h1: tune_queue: 7 is not the name"),
        ("tune_queue", {"nomerges": [2]}, "h1: tune_queue.nomerges: [2] must be a word or a whole number"),
        ("tune_queue", {"add_random": False}, "h1: tune_queue.add_random: False must be"),
        ("tune_queue", {"scheduler": None}, "h1: tune_queue.scheduler: None must be"),
        ("ssd_parallel_drives", True, "h1: ssd_parallel_drives: True must be"),
        ("ssd_assumed_write_mib_s", "fast", "h1: ssd_assumed_write_mib_s: 'fast' must be"),
        (
            "ssd_criteria",
            {"metric": "iops"},
            "h1: ssd_criteria: {'metric': 'iops'} must be a list of mappings with metric",
        ),
        (
            "ssd_criteria",
            [{"metric": "iops", "min": 1, "model": ["A*"]}],
            "model is ['A*'], not a string; write one criterion for each",
        ),
        ("ssd_criteria", [{"metric": "iops", "min": 1, "test": 7}], "test is 7, not a string"),
        ("ssd_criteria", [{"metric": "iops", "min": 1, "cell": {}}], "cell is {}, not a string"),
        ("ssd_criteria", [{"metric": ["iops"], "min": 1}], "metric is ['iops'], not a string"),
        ("ssd_criteria", [{"metric": "iops"}], "ssd_criteria: criterion iops has no limit; give one of min, max"),
        (
            "ssd_criteria",
            [{"metric": "iops", "min_of_median": -1}],
            "min_of_median must be a share above 0, such as 0.9",
        ),
        (
            "ssd_criteria",
            [{"metric": "iops", "min_of_baseline": 1}],
            "baseline (the id of a run) and min_of_baseline or max_of_baseline go together",
        ),
        (
            "ssd_criteria",
            [{"metric": "iops", "min_of_baseline": 1, "baseline": "../x"}],
            "'../x' is not the id of a run",
        ),
    ],
)
def test_a_wrong_setting_names_host_and_key(variable, value, expected):
    assert expected in "\n".join(texts(findings.settings([view(**{variable: value})])))


@pytest.mark.parametrize("variable", findings.FLEET_WIDE)
def test_what_belongs_to_the_run_is_the_same_everywhere(variable):
    (found, *_more) = texts(findings.settings([view("h1"), view("h2", **{variable: "x"}), view("h3")]))
    assert found.startswith(f"{variable}: must be the same") and "on h1, h3" in found and "on h2" in found


def test_a_host_without_variables_is_a_finding_unless_it_is_unreachable():
    assert "h2: could not be checked" in texts(findings.settings([view("h1"), view("h2", asked=False)]))[0]
    assert findings.settings([view("h1"), view("h2", asked=False, unreachable="no route")]) == []


@pytest.mark.parametrize(
    ("drives", "expected"),
    [
        (None, "no drive is named"),
        ([], "no drive is named"),
        ("S1", "'S1' is not a list"),
        ({"serial": "S1"}, "is not a list"),
        ("all", "is not a list"),
        ([{"serial": 123}], "ssd_drives[0]: bad_selector: serial is 123, not a string: put it in quotes"),
        ([{"serial": "S1"}, {"serial": 1e5}], "ssd_drives[1]: bad_selector: serial is 100000.0, not a string"),
        ([{"serial": False}], "serial is False, not a string"),
        ([{"serial": ""}], "serial is empty"),
        (["S1"], "ssd_drives[0]: bad_selector: it is 'S1', not a mapping"),
        ([{}], "ssd_drives[0]: bad_selector: its keys are (none)"),
        ([{"seral": "S1"}], "ssd_drives[0]: bad_selector: its keys are seral"),
        ([{"seral": "S1"}], "discover.yml prints entries to copy; did you mean serial?"),
        ([{"serial": "S1", "writecache": "off"}], "entries to copy; did you mean write_cache?"),
        ([{"serial": "S1", "ssd_overwrite": True}], "entries to copy; did you mean ssd_overwrite_data?"),
    ],
)
def test_drives_have_to_be_named(drives, expected):
    (found,) = texts(findings.named_drives(view(ssd_drives=drives)))
    assert found.startswith("h1: ssd_drives") and expected in found


def test_a_misspelt_variable_is_pointed_at():
    (found,) = texts(findings.named_drives(view(ssd_drives=[], similar=["ssd_disks"])))
    assert "ssd_disks is set; did you mean ssd_drives?" in found


@pytest.mark.parametrize("state", ["absent", "dead", "stopped", "failed"])
def test_a_refused_drive_stops_the_run(state):
    attach = {} if state == "absent" else {"h1": state}
    given = view(drives=[drive_of(refusals=["mounted", "busy"]), drive_of("S2")])
    assert texts(findings.refused(given, Run("r", "n", attach))) == [
        "h1: drive S1: mounted: mounted of S1",
        "h1: drive S1: busy: busy of S1",
    ]
    assert len(findings.refused(given, None)) == 2


@pytest.mark.parametrize("state", ["starting", "running", "finished"])
def test_drives_that_the_run_itself_holds_are_not_refused(state):
    given = view(drives=[drive_of(refusals=["busy"])])
    assert findings.refused(given, Run("r", "n", {"h1": state})) == []
    assert findings.refused(given, Run("r", "n", {"h2": state})) != []


@pytest.mark.parametrize(
    "state, run_id, codes, expected, proved",
    [
        ("writing", "r", ["unsigned_data"], [], "content"),
        ("writing", "r", ["unsigned_data"], ["unsigned_data"], ""),
        ("writing", "other", ["unsigned_data"], ["unsigned_data"], "content"),
        ("writing", "r", ["unsigned_data", "mounted"], ["mounted"], "content"),
        ("writing", "r", ["signature"], ["signature"], ""),
        ("writing", "r", ["sanitize_running", "probe_failed"], [], ""),
        ("writing", "r", ["sanitize_running", "probe_failed", "mounted"], ["mounted"], ""),
        ("writing", "r", ["probe_failed"], ["probe_failed"], ""),
        ("writing", "r", ["ata_security", "probe_failed"], [], ""),
        ("writing", "r", ["ata_security", "mounted"], ["mounted"], ""),
        ("writing", "other", ["ata_security"], ["ata_security"], ""),
        ("released", "r", ["ata_security"], ["ata_security"], ""),
        ("writing", "other", ["sanitize_running"], ["sanitize_running"], ""),
        ("released", "r", ["sanitize_running"], ["sanitize_running"], ""),
        ("writing", "other", ["unsigned_data"], ["unsigned_data"], ""),
        ("released", "r", ["unsigned_data"], ["unsigned_data"], ""),
    ],
)
def test_what_an_interrupted_run_wrote_does_not_stop_it_from_going_on(state, run_id, codes, expected, proved):
    known = {"run_id": run_id, "state": state, "released": None, "proved": proved}
    entry = host_answers.drive({**drive_of(refusals=codes), "own_data": known})
    assert [refusal.code for refusal in findings.standing(entry, Run("r", "n", {"h1": "dead"}))] == expected
    assert [refusal.code for refusal in findings.standing(entry, None)] == codes
    assert len(findings.refused(view(drives=[entry]), Run("r", "n", {"h1": "dead"}))) == len(expected)


def test_a_password_on_a_drive_with_what_a_finished_run_left_is_somebody_elses():
    known = {"run_id": "r", "state": "released", "released": "2026-11-21T13:00:00Z", "proved": "content"}
    entry = host_answers.drive({**drive_of(refusals=["ata_security", "signature"]), "own_data": known})
    assert [refusal.code for refusal in findings.standing(entry, Run("r", "n", {"h1": "stopped"}))] == [
        "ata_security",
        "signature",
    ]


def test_a_whole_host_cannot_give_up_its_data():
    (found,) = texts(findings.settings([view()._replace(misplaced=["ssd_overwrite_data"])]))
    assert found.startswith("h1: ssd_overwrite_data: ") and "ssd_drives" in found


@pytest.mark.parametrize(
    "entry, says",
    [({"serial": "S", "allow": ["mounted"]}, "can't be overridden"), ({"serial": "S", "allow": "x"}, "a list of")],
)
def test_a_wrong_override_is_told_without_the_host(entry, says):
    (found,) = texts(findings.named_drives(view(ssd_drives=[entry])))
    assert found.startswith("h1: ssd_drives[0]: ") and says in found


def test_a_malformed_selector_is_told_once():
    given = view(ssd_drives=[{"serial": 123}], drives=[{**drive_of(refusals=["bad_selector"]), "identity": None}])
    assert findings.refused(given, None) == [] and len(findings.named_drives(given)) == 1


@pytest.mark.parametrize(
    "malformed", [{"serial": 123}, {"serial": "S", "allow": ["mounted"]}, {"serial": ""}, "/dev/sda"]
)
def test_a_malformed_entry_makes_no_answer_one_about_other_drives(malformed, tmp_path):
    asked = [malformed, {"backing_file": str(tmp_path / "none")}]
    answer = inspect(Host(), [parse(each) for each in asked])
    assert findings.answered_drives(view(ssd_drives=asked, drives=answer)) == []
    assert findings.answered_drives(view(ssd_drives=asked, drives=answer[::-1]))
    assert findings.answered_drives(view(ssd_drives=asked, drives=[*answer, answer[0]]))
    answer[1]["drive"] = "another"
    assert findings.answered_drives(view(ssd_drives=asked, drives=answer))


def test_another_live_run_on_a_host_is_a_finding():
    given = view(runs=[run_of("r1", "running"), run_of("r2", "running"), run_of("r3", "dead")])
    (found,) = texts(findings.other_live_runs(given, Run("r1", "qualify", {"h1": "running"})))
    assert "h1: locked: run r2 is under way" in found


@pytest.mark.parametrize("counts", [True, False])
def test_an_unreachable_host_stops_only_a_plan(counts):
    assert bool(findings.answers(view(unreachable="no route"), counts)) is counts


def test_a_module_that_failed_stops_the_run():
    assert texts(findings.answers(view(failures={"drive_facts": "no sudo"}), False)) == [
        "h1: drive_facts failed: no sudo"
    ]


@pytest.mark.parametrize(
    ("drive", "message", "line"),
    [
        ("S1", "S1 (/dev/sda): it is mounted: /mnt. Unmount it", "drive S1 (/dev/sda): mounted: it is mounted: /mnt. "),
        ("S1", "S1: this host has no such drive", "drive S1: mounted: this host has no such drive"),
        ("S1", "S10 (/dev/sda): it is mounted", "drive S1: mounted: S10 (/dev/sda): it is mounted"),
        (
            "/srv/a (b): c.img",
            "/srv/a (b): c.img (/dev/loop1): no",
            "drive /srv/a (b): c.img (/dev/loop1): mounted: no",
        ),
    ],
)
def test_a_line_names_its_drive_once(drive, message, line):
    found = findings.of_refusal(Refusal("mounted", message), "h1", drive)
    assert found.text().startswith(f"h1: {line}")


def test_many_hosts_are_shortened():
    assert findings.host_list([f"h{n}" for n in range(7)]) == "h0, h1, h2, h3, h4 and 2 more"
