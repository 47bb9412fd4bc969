# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way in, driven with mutated real values: no crash, nobody else's result changes, no file elsewhere, no process
(docs/trust.md).
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import tarfile

import pytest

from ansible_collections.ssdlab.fleet.plugins.action import collect
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import queued
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import host_journal, run_sources, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_folder, results_log, unpack
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.results_log import ResultsFile
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers, record_check
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures import answers as real
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers, mutations
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

GOOD, BAD = generator.DEMO[0], generator.DEMO[1]
# When the controller reads it: after all that the hosts tell of.
TIME = "2026-11-23T13:00:00.000Z"
NOW = datetime.datetime(2026, 11, 21, 13, tzinfo=datetime.timezone.utc)
# How often each way in is tried; the sum is in docs/trust.md.
TRIES = {
    "answers": 400,
    "status": 1000,
    "records": 1000,
    "lines": 150,
    "journal": 200,
    "plan": 50,
    "archive": 400,
    "stream": 400,
}


@pytest.fixture(autouse=True)
def no_process(monkeypatch):
    """Nothing that comes from a host starts a process here."""

    def started(*args, **_kwargs):
        raise AssertionError(f"a process was started: {args}")

    for owner, name in ((os, "system"), (os, "posix_spawn"), (os, "execve"), (os, "fork"), (subprocess, "Popen")):
        monkeypatch.setattr(owner, name, started)


@pytest.fixture
def run_dir(tmp_path):
    """A run of three hosts as it was collected; of its files only those of one host are changed."""
    return generator.make(tmp_path / "results", tests=("wsat", "iops"), rounds=6)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, values):
    path.write_bytes(
        b"".join(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n" for value in values)
    )


def elsewhere(tmp_path, run_dir):
    return sorted(str(path) for path in tmp_path.rglob("*") if run_dir not in path.parents and path != run_dir)


def judged(run_dir, with_files=False):
    """The verdict of every drive, as the report makes it; its files too."""
    run = write_report.load_run(str(run_dir.parent), run_dir.name)
    sources = run_sources.sources(str(run_dir), run, results_log.load_all(str(run_dir / "results.jsonl")))
    if with_files:
        for _name, text in write_report.files(sources, str(run_dir)):
            assert text
    return {
        drive["host"]: drive["verdict"]
        for drive in sources.judgement["drives"]
        if (drive["host"], drive["drive"]) in MINE
    }


MINE = {(drive.host, drive.serial) for drive in generator.DEMO}


@pytest.fixture(autouse=True)
def unchanged_files_are_read_once(monkeypatch):
    """Reading them is most of the time that a report takes."""
    files = {}

    def read(run_dir, host, really=host_journal.read):
        paths = [pathlib.Path(host_journal.folder_of(run_dir, host), name) for name in ("journal.jsonl", "plan.json")]
        content = [path.read_bytes() if path.is_file() else None for path in paths]
        if files.get((run_dir, host), [None])[0] != content:
            files[run_dir, host] = content, really(run_dir, host)
        return files[run_dir, host][1]

    monkeypatch.setattr(host_journal, "read", read)


def status_of_bad():
    """As run_info reports that host's ended job."""
    entry = dict(queued(BAD.serial), phase="done", outcome="complete", path="/dev/loop7")
    job = {"boot_id": "b-1", "pid": 4711, "pid_start": "1", "unit": None, "engine_version": "0.1.0"}
    about = {"run_id": generator.RUN_ID, "run_name": "qualify", "host": BAD.host, "state": "finished", "message": ""}
    return {**job, **about, "schema_version": 1, "started": TIME, "updated": TIME, "restored": True, "drives": [entry]}


def collected(run_dir, status=None):
    """The records that `collect` makes of that host's folder."""
    run, status = json.loads((run_dir / "run.json").read_text()), status or status_of_bad()
    results = host_folder.read(str(run_dir / "raw" / BAD.host), run_dir.name, "finished", status)
    told = record_check.collected(results.records, run_dir.name, BAD.host, TIME, record_check.asked_of(run, BAD.host))
    info = {"state": "finished", "status": status_of_bad(), "unfinished": []}
    host = collect._host_record(run_dir.name, BAD.host, info, [*results.problems, *told.problems], results)
    host.update(time=TIME)
    return [host, *told.records]


def collect_again(run_dir, status=None):
    """Put what `collect` makes of that host's folder in the place of what stands in results.jsonl."""
    path = run_dir / "results.jsonl"
    write_lines(path, [record for record in lines_of(path) if record["host"] != BAD.host])
    results = ResultsFile()
    results.open(str(run_dir.parent), run_dir.name)
    results.add(collected(run_dir, status))


def test_an_honest_host_is_collected_as_it_measured(run_dir):
    """Else the tests below would change what counts for nothing."""
    stored = [record for record in lines_of(run_dir / "results.jsonl") if record["host"] == BAD.host]
    before = judged(run_dir)
    host, *told = collected(run_dir)
    assert host["state"] == "ok" and before[BAD.host] == "pass"
    tests = {record["test"]: record for record in stored if record["kind"] == "test"}
    assert {record["test"]: record for record in told if record["kind"] == "test"} == tests
    collect_again(run_dir)
    assert judged(run_dir) == before


@pytest.mark.thorough
def test_what_a_host_reports_of_its_run(run_dir, tmp_path):
    """run_info's status, and the journal, to results.jsonl, the judge and the closing table."""
    path, journal = run_dir / "results.jsonl", run_dir / "raw" / BAD.host / "journal.jsonl"
    run, events = json.loads((run_dir / "run.json").read_text()), lines_of(journal)
    before, outside = judged(run_dir), elsewhere(tmp_path, run_dir)
    for seed in mutations.seeds(TRIES["records"]):
        chance = random.Random(seed)
        changed = [
            mutations.mutated(event, seed) if event["event"] != "cell" and chance.random() < 0.1 else event
            for event in events
        ]
        write_lines(journal, changed if seed % 2 else events)
        collect_again(run_dir, status_of_bad() if seed % 2 else mutations.mutated(status_of_bad(), seed))
        loaded = results_log.load(str(path))
        verdicts = {
            drive["host"]: drive["verdict"]
            for drive in judge.judge(run, loaded)["drives"]
            if (drive["host"], drive["drive"]) in MINE
        }
        assert {**verdicts, BAD.host: ""} == {**before, BAD.host: ""}, seed
        assert all(line.isprintable() for line in final_tables.lines(run, loaded, None)), seed
    assert elsewhere(tmp_path, run_dir) == outside


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["lines", "journal", "plan"])
def test_files_of_a_run(run_dir, tmp_path, what):
    """results.jsonl, and one host's journal and plan, to its records and the report's files."""
    path = {
        "lines": run_dir / "results.jsonl",
        "journal": run_dir / "raw" / BAD.host / "journal.jsonl",
        "plan": run_dir / "raw" / BAD.host / "plan.json",
    }[what]
    values = lines_of(path) if what != "plan" else [json.loads(path.read_text())]
    before, outside = judged(run_dir), elsewhere(tmp_path, run_dir)
    for seed in mutations.seeds(TRIES[what]):
        chance = random.Random(seed)
        place = chance.choice([i for i, value in enumerate(values) if what == "plan" or value["host"] == BAD.host])
        changed = list(values)
        changed[place] = mutations.mutated(values[place], seed)
        if what == "journal" and seed % 20 == 0:
            changed[place] = [b"{\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"event": "cell"' + b"\n"][seed // 20 % 4]
        write_lines(path, changed)
        if what != "lines":
            collect_again(run_dir)
        after = judged(run_dir, with_files=seed % 4 == 0 or what == "plan")
        assert {**after, BAD.host: ""} == {**before, BAD.host: ""}, seed
        assert what == "lines" or after[BAD.host] in judge.VERDICTS, seed
    assert elsewhere(tmp_path, run_dir) == outside


@pytest.mark.parametrize("name", ["journal.jsonl", "plan.json"])
def test_a_folder_in_the_place_of_a_file_ends_nobodys_report(run_dir, name):
    before, path = judged(run_dir), run_dir / "raw" / BAD.host / name
    path.unlink()
    (path / "x").mkdir(parents=True)
    collect_again(run_dir)
    assert {**judged(run_dir, with_files=True), BAD.host: ""} == {**before, BAD.host: ""}


def asked(tmp_path, **more):
    return {
        "ssd_drives": [{"serial": "S1"}],
        "ssd_plan": "demo",
        "ssd_step": "qualify",
        "ssd_mode": "plan",
        "ssd_run_name": "qualify",
        "ssd_run_id": "",
        "ssd_results_dir": str(tmp_path / "results"),
        "ssd_criteria": [],
        "ssd_tests_dirs": [],
        "ssd_parallel_drives": 1,
        "ssd_assumed_write_mib_s": 500,
        "ssd_fio_min_version": "3.28",
        **more,
    }


KEYS = {
    "run_info": ("runs", "runs"),
    "host_info": ("host_info", "facts"),
    "drive_facts": ("drives", "drives"),
    "host_checks": ("findings", "checks"),
}


def view_of(name, given, answered):
    """A host's view as the action preflight makes it of four answers."""
    fields, failures = {}, {}
    for module, (key, field) in KEYS.items():
        if answered[module].get("failed"):
            failures[module] = answered[module]["msg"]
        elif key in answered[module]:
            fields[field] = answered[module][key]
    if "snapshot" in answered["host_checks"]:
        fields["snapshot"] = answered["host_checks"]["snapshot"]
    return host_answers.of(name, given, failures=failures, **fields)


# Asked before any process is forbidden.
REAL = {module: real.of(module) for module in KEYS}


def test_answers_that_preflight_decides_by(tmp_path):
    honest = {module: module_answers.passed(module, REAL[module]) for module in KEYS}
    honest["run_info"]["runs"] = []
    honest["drive_facts"]["drives"][0].update(selector={"serial": "S1"}, drive="S1")
    other = json.loads(json.dumps(honest))
    other["host_info"]["host_info"].update(hostname="other", boot_id="c")
    other["drive_facts"]["drives"][0].update(refusals=[], eligible=True)
    other["drive_facts"]["drives"][0]["identity"].update(serial="S2", wwn="w2")
    other["host_checks"]["findings"] = []
    good = view_of("good", asked(tmp_path), other)

    def told(view):
        decided = decision.decide(decision.Request([good, view], False, NOW))
        assert all(line.isprintable() for line in decided.findings + decided.plan_text + decided.warnings)
        return [line for line in decided.findings if line.startswith("good:")]

    before = told(view_of("bad", asked(tmp_path), honest))
    for seed in mutations.seeds(TRIES["answers"]):
        module = list(KEYS)[seed % len(KEYS)]
        answered = {
            **honest,
            module: module_answers.passed(
                module, mutations.mutated(REAL[module] if module == "run_info" else honest[module], seed)
            ),
        }
        mine = [
            line
            for line in told(view_of("bad", asked(tmp_path), answered))
            if "duplicate" not in line and "same_machine" not in line and "differ" not in line
        ]
        assert set(mine) <= set(before), seed
    assert sorted(path.name for path in tmp_path.iterdir()) == []


def archive(entries, kind="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=kind) as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_archives(tmp_path):
    folder = tmp_path / "raw" / "h1"
    aside = tmp_path / "raw" / ".aside"
    plain = archive(
        {"status.json": b"{}", "raw/A1/iops-1-0001-c.json.gz": b"z" * 3000, "journal.jsonl": b"{}\n" * 500}, "w"
    )
    unpacked = 0
    for seed in mutations.seeds(TRIES["archive"]):
        shutil.rmtree(tmp_path / "raw", ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "old").write_text("as it was")
        aside.mkdir()
        chance = random.Random(seed)
        changed = bytearray(plain)
        for _change in range(chance.randint(1, 8)):
            place = chance.randrange(1536) if seed % 2 else chance.randrange(len(changed))
            changed[place] = chance.choice([0, 1, 0x2F, 0x2E, 0x30, 0x31, 0x37, 0x4C, 0x53, 0x78, 0x67, 0xFF])
        data = gzip.compress(bytes(changed))
        if seed % 5 == 0:
            data = data[: chance.randrange(len(data))]
        (aside / "archive.tar.gz").write_bytes(data)
        try:
            unpack.replace(str(folder), str(aside / "archive.tar.gz"), hashlib.sha256(data).hexdigest())
            unpacked += 1
            assert not any(path.is_symlink() for path in folder.rglob("*"))
        except (unpack.UnpackError, OSError):
            assert (folder / "old").read_text() == "as it was", seed
        assert {path.name for path in tmp_path.iterdir()} == {"raw"}
        assert {path.name for path in (tmp_path / "raw").iterdir()} == {"h1", ".aside"}
    assert 0 < unpacked < len(mutations.seeds(TRIES["archive"]))
