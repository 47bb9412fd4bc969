# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results from elsewhere, good and damaged, as runs' folders; tests/integration/test_ingest.py plays the whole way."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.ingest import run_writer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.ingest.drive_journal import StatedDrive
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.ingest.measured_run import IngestError
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log, run_record
from ansible_collections.ssdlab.fleet.tests.fixtures import elsewhere

CELL = "rand-4k-r100-tc1-qd32"
NORMAL = (
    "mine: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=windowsaio\nfio-3.36\n\nmine: (groupid=0, jobs=1): err= 0\n"
)


def ingested(folder, contents, serial="S1", host="win-1", write=True, **changed):
    """Take these files, {name: text or bytes}, of a drive into the run r."""
    source = folder / f"given-{serial}"
    for name, content in contents.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    identity = {"serial": serial, "model": "M", "firmware": "F", "size_bytes": 10**9, "logical_block_size_bytes": 512}
    drive = StatedDrive(host, serial, "Windows Server 2022", identity)
    given = {"run_name": "elsewhere", "rendered": None, "test": "elsewhere", "criteria": [], **changed}
    asked = run_writer.Request(str(folder / "results"), "r", drive=drive, files=[str(source)], **given)
    return run_writer.ingest(asked, write)


def record_of(folder, serial="S1"):
    """The record of the drive's test."""
    loaded = results_log.load(str(folder / "results/r/results.jsonl"))
    return next(one for one in loaded if one["kind"] == "test" and one["drive"] == serial)


FIO = {
    "as it is": lambda text: text,
    "with normal output around it": lambda text: NORMAL + text + "\nRun status group 0 (all jobs):\n",
    "with the ends of lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "redirected by PowerShell 5": lambda text: text.encode("utf-16"),
    "with the mark of UTF-8": lambda text: "\ufeff".encode() + text.encode(),
}


@pytest.mark.parametrize("form", FIO.values(), ids=list(FIO))
def test_fio_of_windows_is_read_in_every_form(tmp_path, form):
    done = ingested(tmp_path, {r"results\mine.1.json": form(elsewhere.fio())})
    found = record_of(tmp_path)
    assert done.tests == {"elsewhere": 1} and found["outcome"] == "complete"
    assert found["metrics"]["iops"] == 4000 and found["metrics"]["read_p99_latency_us"] == 0.126
    drive = next(one for one in results_log.load(f"{done.folder}/results.jsonl") if one["kind"] == "drive")
    assert drive["identity"]["serial"] == "S1" and drive["outcome"] == "complete"


def test_several_documents_in_a_file_are_rounds_by_their_times(tmp_path):
    later, earlier = (elsewhere.fio(ios=ios, ended=elsewhere.BEGAN + at) for ios, at in ((3000, 20), (5000, 10)))
    done = ingested(tmp_path, {"all.json": NORMAL + later + NORMAL + earlier})
    journal = (tmp_path / "results/r/raw/win-1/journal.jsonl").read_text().splitlines()
    cells = [one for one in map(json.loads, journal) if one["event"] == "cell"]
    assert [one["read"]["ios"] for one in cells] == [5000, 3000] and done.tests == {"elsewhere": 2}
    assert record_of(tmp_path)["metrics"]["iops"] == 4000


@pytest.mark.parametrize("version", list(elsewhere.COLUMNS))
def test_both_formats_of_iometer_give_the_same(tmp_path, version):
    done = ingested(tmp_path, {"results.csv": elsewhere.iometer(version, rounds=3)})
    metrics = record_of(tmp_path)["metrics"]
    assert done.tests == {"elsewhere": 3} and done.began.startswith("2025-10-09T08:00:50.5")
    assert metrics["read_iops"] == 1000.5 and metrics["read_bandwidth"] == 1000.5 * 4096
    assert metrics["read_mean_latency_us"] == 250 and metrics["read_max_latency_us"] == 7500
    assert "read_p99_latency_us" not in metrics or metrics["read_p99_latency_us"] is None
    run = run_record.read_run(str(tmp_path / "results/r"))
    assert run["asked"][0]["engine"] == "iometer (elsewhere)"
    assert run["tests"]["elsewhere"]["cells"] == ["rand-4k-r100-tc2-qd16"]


def cut(text, share):
    return text[: int(len(text) * share)]


TWO = elsewhere.fio() + elsewhere.fio(ended=elsewhere.BEGAN + 10)
IOMETER = elsewhere.iometer()
BAD = {
    "fio, cut off": (
        {"a.json": cut(TWO, 0.9)},
        r"a\.json line 72: the JSON that begins here breaks off .* run that job",
    ),
    "fio, nothing of it": ({"a.json": NORMAL + '"jobs"'}, r"a\.json: there is no whole result of fio"),
    "fio 2": (
        {"a.json": elsewhere.fio(version="fio-2.2.10")},
        r"a\.json line 1: it is of fio-2\.2\.10; results of fio 3",
    ),
    "impossible counts": (
        {"a.json": elsewhere.fio().replace('"total_ios": 4000', '"total_ios": 9000')},
        r"a\.json line 1: reads: 16384000 bytes are not 9000 I/Os of 4096; so its figures can't be right",
    ),
    "two devices": (
        {"a.json": elsewhere.fio(), "b.json": elsewhere.fio(ended=elsewhere.BEGAN + 9, filename="other")},
        r"they are of 2 devices, .* \(a\.json line 1\) and other \(b\.json line 1\): give those of one drive alone",
    ),
    "an interim report": (
        {"a.json": elsewhere.fio(runtime_ms=9000), "b.json": elsewhere.fio(runtime_ms=9900, ended=elsewhere.BEGAN + 1)},
        r"b\.json line 1: it began 9 s before a\.json line 1 had ended",
    ),
    "jobs at the same time": (
        {"a.json": json.dumps({**(one := json.loads(elsewhere.fio())), "jobs": one["jobs"] * 2})},
        r"a\.json line 1: 2 jobs ran at the same time; add group_reporting",
    ),
    "trims": ({"a.json": elsewhere.fio(rw="randtrim")}, r"a\.json line 1: rw=randtrim is neither reads nor writes"),
    "Iometer, cut off in a row": ({"a.csv": cut(IOMETER, 0.97)[:-40]}, r"a\.csv line 2[0-9]: .*(breaks off|ends here)"),
    "Iometer, cut off before its time": (
        {"a.csv": IOMETER[: IOMETER.rindex("'Time Stamp")]},
        r"a\.csv line 28: the file ends here; Iometer was ended before it had written all",
    ),
    "Iometer, cut off before its results": (
        {"a.csv": IOMETER[: IOMETER.rindex("'Results")]},
        r"a\.csv line 20: the results of this access specification are not there; Iometer was ended",
    ),
    "Iometer, of two drives": (
        {"a.csv": elsewhere.iometer(drives=2)},
        r"a\.csv line 13: 2 drives were measured together",
    ),
    "Iometer, another release": ({"a.csv": IOMETER.replace("Read I/Os", "Reads")}, r"a\.csv line 14: column Read I/Os"),
    "neither": ({"a.csv": "a,b\n1,2\n"}, r"a\.csv: neither fio's JSON nor Iometer's CSV: remove it"),
    "nothing": ({"notes.txt": "x"}, r"files: no result in .*: give fio's JSON or Iometer's CSV"),
}


@pytest.mark.parametrize(("contents", "said"), BAD.values(), ids=list(BAD))
def test_what_can_not_be_taken_is_told_with_its_place_and_nothing_is_written(tmp_path, contents, said):
    with pytest.raises(IngestError, match=said):
        ingested(tmp_path, contents)
    assert not (tmp_path / "results").exists()


def test_an_error_of_the_drive_is_an_error_of_its_test(tmp_path):
    ingested(tmp_path, {"a.csv": elsewhere.iometer(errors=3)})
    found = record_of(tmp_path)
    assert (found["outcome"], found["metrics"]) == ("error", {}) and "Iometer counts 3 errors" in found["reasons"][0]


def test_the_same_files_change_nothing_and_a_check_writes_nothing(tmp_path):
    given = {"a.json": elsewhere.fio()}
    assert ingested(tmp_path, given, write=False).changed and not (tmp_path / "results").exists()
    assert ingested(tmp_path, given).changed and not ingested(tmp_path, given).changed
    before = (tmp_path / "results/r/results.jsonl").read_bytes()
    ingested(tmp_path, given)
    assert (tmp_path / "results/r/results.jsonl").read_bytes() == before


def test_drives_of_one_machine_share_a_run_and_are_marked_on_every_page(tmp_path):
    for serial, ios in (("S1", 4000), ("S2", 4400)):
        ingested(tmp_path, {"a.json": elsewhere.fio(ios=ios)}, serial=serial)
    results = str(tmp_path / "results")
    made = write_report.make(results, "r", against=fleet_verdicts.Baseline())
    assert {one["drive"]: one["verdict"] for one in made.judgement["drives"]} == {"S1": "pass", "S2": "pass"}
    assert [record_of(tmp_path, serial)["metrics"]["iops"] for serial in ("S1", "S2")] == [4000, 4400]
    pages = list((tmp_path / "results/r/report").rglob("*.html"))
    assert len(pages) >= 3 and all("Measured elsewhere" in page.read_text() for page in pages)
    assert "Measured elsewhere" in made.message
    summary = json.loads((tmp_path / "results/r/report/summary.json").read_text())
    assert summary["run"]["measured_elsewhere"] == ["Windows Server 2022, fio-3.36"]
    assert 'name="measured_elsewhere"' in (tmp_path / "results/r/report/junit.xml").read_text()
    # Peers are those of the same engine, which none of our own drives has.
    assert all(one["conditions"]["engine"] == "windowsaio (elsewhere)" for one in summary["drives"])
    (test,) = summary["drives"][0]["tests"]
    assert test["remarks"][0].startswith("unknown: measured elsewhere (Windows Server 2022, fio-3.36)")
    assert test["metrics"]["throttled_pct"] is None


def test_a_run_of_our_own_takes_nothing_from_elsewhere(tmp_path):
    run = tmp_path / "results/r"
    run.mkdir(parents=True)
    own = {"schema_version": 1, "run": {"id": "r", "name": "n"}, "asked": [{"host": "h", "drive": "D"}], "tests": {}}
    (run / "run.json").write_text(json.dumps(own))
    with pytest.raises(IngestError, match="was measured by this collection .h D.: .* give another ssd_run_id"):
        ingested(tmp_path, {"a.json": elsewhere.fio()})


def test_results_without_a_record_of_their_run_are_left_alone(tmp_path):
    """Whose they are is not known."""
    run = tmp_path / "results/r"
    run.mkdir(parents=True)
    (run / "results.jsonl").write_text("{}\n")
    with pytest.raises(IngestError, match="has results and no run.json, which says whose they are"):
        ingested(tmp_path, {"a.json": elsewhere.fio()})
    assert [one.name for one in run.iterdir()] == ["results.jsonl"]
