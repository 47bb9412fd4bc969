# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks against this machine and loop drives of the test's own."""

from __future__ import annotations

import concurrent.futures
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.action import host_job


@pytest.fixture
def lab(site, loop_drive):
    """One server with two drives."""
    site.drives = [loop_drive("one"), loop_drive("two")]
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector for drive in site.drives]}}
    return site


def schedulers(lab):
    return [Path("/sys/block", drive.name, "queue/scheduler").read_text() for drive in lab.drives]


def test_a_finished_run_is_neither_tuned_nor_erased_again(lab, tmp_path):
    """Also: results go below where ansible-playbook was started, and a survey's empty run id is no run id."""
    lab.vars["ssd_results_dir"] = "measured"
    lab.results = tmp_path / "measured"
    lab.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 1}]
    before = schedulers(lab)
    code, output = lab.play("qualify", "-e", "ssd_run_id=", cwd=tmp_path)
    assert code == 0, output
    assert lab.summary()["verdicts"]["pass"] == 2
    assert schedulers(lab) == before
    digests = [drive.digest() for drive in lab.drives]
    journal = lab.journal()
    code, output = lab.play("qualify", "-e", "ssd_run_id=" + lab.run_folders()[0].name, cwd=tmp_path)
    assert code == 0, output
    recap = output[output.index("PLAY RECAP") :]
    assert "changed=0" in recap and "failed=0" in recap
    assert [drive.digest() for drive in lab.drives] == digests and lab.journal() == journal


def test_another_criterion_on_a_finished_run_only_judges(lab):
    lab.vars["ssd_run_id"] = "fixed"
    code, output = lab.play("qualify")
    assert code == 0, output
    lab.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 100000}]
    code, output = lab.play("qualify")
    assert code == 2, output
    assert lab.summary()["verdicts"]["fail"] == 2
    assert len(lab.journal("purge")) == 2


def test_a_finished_run_is_judged_again_by_what_the_report_is_given(lab, tmp_path):
    """By report.yml alone, which asks no host: of the inventory only with ssd_rejudge, of the command line at once."""
    lab.vars["ssd_run_id"] = "fixed"
    code, output = lab.play("qualify")
    assert code == 0, output
    record = lab.results / "fixed" / "run.json"
    before = json.loads(record.read_text())
    # As if one of its drives had missed a criterion when it was measured.
    results = lab.results / "fixed/results.jsonl"
    (record_of_drive,) = [line for line in results.read_text().splitlines() if '"kind": "drive"' in line][:1]
    results.write_text(
        results.read_text().replace(record_of_drive, record_of_drive.replace('"left": "blank"', '"left": "evidence"'))
    )
    lab.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 100000}]
    code, output = lab.play("report")
    told = "fixed is judged by the criteria that it was started with. The inventory has others now"
    assert code == 0 and told in output and "+ criterion write_iops min 100000" in output, output
    assert json.loads(record.read_text()) == before
    code, output = lab.play("report", "-e", "ssd_rejudge=true")
    assert code == 2 and lab.summary()["verdicts"]["fail"] == 2, output
    (kept,) = json.loads(record.read_text())["rejudged"]
    assert kept["criteria"] == before["criteria"] and lab.summary()["run"]["rejudged"] == kept["at"]
    assert "by other criteria than before" in (lab.results / "fixed/report/message.txt").read_text()
    # Without criteria that all drives keep; the run remembers both.
    (tmp_path / "criteria.yml").write_text("ssd_criteria:\n  - {metric: write_iops, min: 1}\n")
    code, output = lab.play("report", "-e", f"@{tmp_path}/criteria.yml")
    assert code == 0 and len(json.loads(record.read_text())["rejudged"]) == 2, output
    name = json.loads(record_of_drive)["drive"]
    assert f"rack1-07 {name} stays evidence on the host all the same; release_evidence: fixed in" in output, output
    page = (lab.results / "fixed/report/index.html").read_text()
    assert "Judged by other criteria since" in page and "criterion write_iops min 100000" in page
    code, output = lab.play("report", "-e", '{"ssd_criteria": [{"metric": "write_iops", "minimum": 1}]}')
    assert code == 2 and "ssd_criteria: criterion write_iops has an unknown key minimum" in output, output


def test_another_definition_is_refused_for_a_run_that_has_its_figures(lab):
    lab.vars["ssd_run_id"] = "fixed"
    code, output = lab.play("qualify")
    assert code == 0, output
    (plan,) = lab.vars["ssd_plan"]
    lab.vars["ssd_plan"] = [dict(plan, rounds={"max": 24})]
    record = lab.results / "fixed" / "run.json"
    before = record.read_text()
    for kept in (True, False):
        code, output = lab.play("qualify")
        told = (
            f"rack1-07: run fixed was started with another definition of test {plan['name']} (differs in: "
            "rounds); use another ssd_run_id"
        )
        assert code != 0 and told in " ".join(output.split()), output
        assert not kept or record.read_text() == before
        record.unlink(missing_ok=True)  # Then the host alone knows.


def test_a_step_alone_does_just_that(lab):
    code, output = lab.play("purge", "-e", "purge_method=overwrite", "-e", "ssd_run_id=p")
    assert code == 0, output
    records = [json.loads(line) for line in (lab.state / "runs/p/journal.jsonl").read_text().splitlines()]
    events = [record["event"] for record in records]
    assert events.count("purge") == 2 and "precondition" not in events and "cell" not in events
    # Random data over everything, the last block too.
    assert all(any(drive.file.read_bytes()[-512:]) for drive in lab.drives)
    assert lab.play("cleanup")[0] == 0
    assert lab.run_folders() == []


def test_tuning_stays_until_it_is_restored(lab):
    for drive in lab.drives:  # which scheduler a kernel gives a loop device is its own affair
        Path("/sys/block", drive.name, "queue/scheduler").write_text("mq-deadline")
    before, digests = schedulers(lab), [drive.digest() for drive in lab.drives]
    code, output = lab.play("tune")
    assert code == 0 and "changed=0" not in output, output
    assert all("[none]" in text for text in schedulers(lab)) and schedulers(lab) != before
    # Only writing tells that this kernel takes no ASPM policy.
    for again in ((), ("--check", "--skip-tags", "power")):
        code, output = lab.play("tune", *again)
        assert code == 0 and "changed=0" in output, output
    code, output = lab.play("cleanup")
    assert code != 0 and "restore.yml" in output
    assert lab.play("restore")[0] == 0
    assert schedulers(lab) == before
    code, output = lab.play("restore")
    assert "changed=0" in output and code == 0
    assert [drive.digest() for drive in lab.drives] == digests


def test_a_run_may_be_started_watched_and_collected_by_plays_of_their_own(lab):
    with lab.held(lambda: lab.play("start")) as (code, output):
        assert code == 0, output
        code, output = lab.play("collect")
        assert code == 0 and "still works on" in output, output
    code, output = lab.play("watch")
    assert code == 0 and "2 done" in output, output
    assert lab.play("collect")[0] == 0
    code, output = lab.play("report")
    assert code == 0, output
    assert lab.summary()["verdicts"]["pass"] == 2


@pytest.mark.parametrize(
    ("playbook", "arguments", "succeeds"),
    [
        ("start", (), False),
        ("start", ("-e", "ssd_slice=true"), True),
        # Of a slice that has none of the servers that were asked for.
        ("start", ("-e", "ssd_slice=true", "-e", "ssd_hosts=rack9-99"), True),
        ("watch", (), False),
        ("watch", ("-e", "ssd_slice=true"), True),
        ("report", (), False),
    ],
)
def test_only_a_slice_may_be_without_servers(lab, playbook, arguments, succeeds):
    """AWX slices the hosts of an inventory, whatever groups they are in; and a host may be disabled during a night."""
    code, output = lab.play(playbook, *arguments, group="others")
    assert (code == 0) is succeeds and ("No server to work on" in output) is not succeeds, output


def test_a_sites_task_timeout_ends_no_watch(lab):
    """It is for tasks that ask one host; watching takes as long as the run."""
    limit_s = 15
    with concurrent.futures.ThreadPoolExecutor() as pool:
        with lab.held(lambda: lab.play("start")) as (code, output):
            assert code == 0, output
            watching = pool.submit(lab.play, "watch", env={"ANSIBLE_TASK_TIMEOUT": str(limit_s)})
            # Well into the watch: its first task begins long before the limit.
            with pytest.raises(concurrent.futures.TimeoutError):
                watching.result(timeout=2 * limit_s)
        code, output = watching.result()
    (run,) = lab.run_folders()
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


def test_an_engine_on_the_host_is_run_only_if_it_is_the_controllers(lab, tmp_path):
    """And one that is there is not written again."""
    marker, engine = tmp_path / "marker", lab.state / host_job.ENGINE.name
    lab.state.mkdir(mode=0o755)
    engine.write_text(f"open({str(marker)!r}, 'w').close()\n")
    code, output = lab.play("qualify")
    assert code == 0 and lab.summary()["verdicts"]["pass"] == 2, output
    assert engine.read_bytes() == host_job.ENGINE.data and not marker.exists()
    first = engine.stat()
    code, output = lab.play("start", "-e", "ssd_run_id=another")
    assert code == 0 and len(lab.run_folders()) == 2, output
    assert (engine.stat().st_ino, engine.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


def test_discover_prints_what_can_be_pasted_and_why_not(lab):
    first, second = lab.drives
    subprocess.run(["mkswap", "-q", second.path], check=True, capture_output=True)
    code, output = lab.play("discover")
    assert code == 0, output
    lines = output.splitlines()
    assert [line for line in lines if line.strip().startswith(f'- backing_file: "{first.file}"')], output
    assert [line for line in lines if line.strip().startswith("#") and str(second.file) in line], output
    assert "#   retired: true" in output and "holds swap" in output, output


def test_discover_knows_the_runs_own_job_and_programs_that_only_look(lab, loop_drive, tmp_path):
    spare, agent = loop_drive("spare"), tmp_path / "agent"
    shutil.copy(shutil.which("sh"), agent)
    watching = [str(agent), "-c", 'exec 3<"$0" && echo ready && read -r _', spare.path]
    with subprocess.Popen(watching, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with lab.held(lambda: lab.play("start")) as (code, output):
            assert code == 0, output
            shown = {}
            for programs in ([], [{"path": str(agent)}]):
                lab.vars["ssd_passing_programs"] = programs
                code, output = lab.play("discover")
                assert code == 0, output
                shown[bool(programs)] = " ".join(output.replace("#", " ").split())
        process.stdin.close()
    (run,) = lab.run_folders()
    for named, text in shown.items():
        told = [text.partition(str(drive.file))[2].partition("not eligible")[0] for drive in [*lab.drives, spare]]
        works = [f"locked: another run or check is using this drive: run {run.name}" in one for one in told]
        assert any(works) and not works[2] and not any("opened" in one for one in told[:2]), text
        assert ("opened" in told[2]) is not named, text


def test_precondition_alone_fills_the_drives(lab):
    code, output = lab.play("precondition")
    assert code == 0, output
    assert [record["passes"] for record in lab.journal("precondition")] == [2, 2]
    assert lab.journal("purge") == [] and lab.journal("cell") == []


def test_preflight_alone_changes_nothing(lab):
    digests = [drive.digest() for drive in lab.drives]
    code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    assert code == 0 and "would erase" in output, output
    assert [drive.digest() for drive in lab.drives] == digests and lab.run_folders() == []
