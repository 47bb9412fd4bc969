# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run folders into a store: all of it, once, in any order, with the judge's verdicts."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.gate import journal, shape
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import build
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import (
    engine,
    exports,
    importer,
    rawfiles,
    records,
    schema,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.packages import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

STOPPED = generator.Drive("server-4", "SIM0004", generator.MODEL, 90_000, 40_000, "interrupted")


@pytest.fixture(name="run_dir")
def fixture_run_dir(tmp_path):
    """Two that pass, one worn, one interrupted, one unreachable; both tests."""
    drives = (*generator.DEMO, STOPPED)
    return generator.make(
        tmp_path / "results", drives, ("wsat", "iops"), rounds=12, unreachable=[("server-9", "SIM0009")]
    )


@pytest.fixture(name="url")
def fixture_url(tmp_path):
    return engine.resolve("", str(tmp_path))


def put(url, run_dir, raw=False):
    with engine.opened(url, make=True) as store:
        return importer.import_run(store, str(run_dir), raw)


def rows(url, name):
    """A table of the store without its keys' order: texts of all rows."""
    with engine.opened(url) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.select(getattr(schema.tables(), name)))]


def everything(url):
    return {name: rows(url, name) for name in schema.Tables._fields if name != "metadata"}


def test_the_newest_attempt_is_the_last_one_also_where_the_clock_was_set_back():
    first = {"kind": "test", "drive": "d", "test": "t", "attempt": 1, "time": "2036-01-01T00:00:00Z", "outcome": "x"}
    second = {**first, "attempt": 2, "time": "2026-11-22T00:00:00Z", "outcome": "steady"}
    assert records.merged([first], [second]) == records.merged([second], [first]) == [second]


def verdicts(url):
    return {row.label: row.verdict for row in read(url, "campaign")}


def read(url, name):
    with engine.opened(url) as store, store.reading() as connection:
        return connection.execute(sa.select(getattr(schema.tables(), name))).all()


def test_the_store_says_what_the_report_says(url, run_dir):
    done = put(url, run_dir)
    assert done.changed and done.hosts == 5 and done.problems == []
    judged = build.make(str(run_dir.parent), run_dir.name, write=False).judgement
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    assert sorted(set(verdicts(url).values())) == ["fail", "invalid", "not_tested", "pass"]


@pytest.mark.parametrize("relative", [False, True])
def test_what_the_journal_contradicts_is_invalid_in_the_store_too(url, run_dir, relative):
    """Also where a relative criterion has it judged again, from what the store kept."""
    host, path = generator.DEMO[0].host, run_dir / "run.json"
    if relative:
        run = json.loads(path.read_text())
        run["criteria"] = [*(run.get("criteria") or []), {"metric": "write_iops", "min_of_median": 0.1}]
        path.write_text(json.dumps(run))
    journal = run_dir / "raw" / host / "journal.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    for event in events:
        if event["event"] == "test_finished":
            event["metrics"] = {**event["metrics"], "write_iops": event["metrics"].get("write_iops", 1.0) * 2}
    journal.write_text("".join(json.dumps(event) + "\n" for event in events))
    put(url, run_dir)
    judged = build.make(str(run_dir.parent), run_dir.name, write=False).judgement
    told = {drive["host"]: drive["verdict"] for drive in judged["drives"]}
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]} and told[host] == "invalid"


def test_a_second_import_changes_nothing(url, run_dir):
    put(url, run_dir)
    before = everything(url)
    assert put(url, run_dir)[1:3] == (False, 0)
    assert everything(url) == before


def test_an_edited_folder_is_what_the_store_says_then(url, run_dir, tmp_path):
    """Figures, criteria and what a host said, changed by hand: as the report says it, without a second row of anything,
    and as a new store has it.
    """
    put(url, run_dir)
    before = {name: len(found) for name, found in everything(url).items()}
    worn = next(drive for drive in generator.DEMO if drive.serial == "SIM0003")
    for path in (run_dir / "results.jsonl", run_dir / "raw" / worn.host / "journal.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line.get("drive") == worn.serial and line.get("test") == "wsat":
                edited(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    change(run_dir, lambda record: {**record, "state": "ok", "message": "edited"}, "server-9", "host")
    done = put(url, run_dir)
    assert done.changed and done.hosts == 2 and not put(url, run_dir).changed
    assert {name: len(found) for name, found in everything(url).items()} == before
    judged = build.make(str(run_dir.parent), run_dir.name, write=False).judgement
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    # Not what its histograms say, but no longer below the limit.
    assert verdicts(url)["SIM0003"] == "invalid" and verdicts(url)["SIM0009"] == "not_tested"
    anew = engine.resolve("", str(tmp_path / "anew"))
    (tmp_path / "anew").mkdir()
    put(anew, run_dir)
    assert [figures(store) for store in (url, anew)] == [figures(anew)] * 2
    assert max(figures(url)["SIM0003"]) > 3 * 35_000


def edited(record):
    """A record or an event of a test with three times the rate, a third of the latency."""
    for name, value in list(record.get("metrics", {}).items()):
        if value is not None:
            record["metrics"][name] = value * 3 if "latency" not in name else value / 3
    for item in [*record.get("cells", []), *record.get("tracked", [])]:
        edited(item)
        if item.get("metric"):
            item["value"] *= 3
    for window in record.get("steady_state", []):
        in_iops = ("average", "slope", "fitted_start", "fitted_end")
        window.update({key: window[key] * 3 for key in in_iops if key in window})
        window["window_values"] = [value * 3 for value in window["window_values"]]


def figures(url):
    """The vectors of each drive's measurements."""
    with engine.opened(url) as store, store.reading() as connection:
        campaign, measurement = schema.tables().campaign, schema.tables().measurement
        query = sa.select(campaign.c.label, measurement.c.figures).where(measurement.c.campaign_id == campaign.c.id)
        found = {}
        for label, vector in connection.execute(query):
            found.setdefault(label, []).extend(struct.unpack(f"<{len(vector) // 8}d", vector))
        return {label: sorted(values) for label, values in found.items()}


def test_what_was_taken_out_of_a_folder_stays_until_the_store_is_rebuilt(url, run_dir):
    """Another slice's folder lacks it too, and takes nothing back."""
    put(url, run_dir)
    slice_of(run_dir, run_dir.parent / "less", ["server-1", "server-2"])
    for name in ("run.json", "results.jsonl"):
        shutil.copy(run_dir.parent / "less" / run_dir.name / name, run_dir / name)
    assert not put(url, run_dir).changed and len(verdicts(url)) == 5
    Path(engine.path(url)).unlink()
    put(url, run_dir)
    assert sorted(verdicts(url)) == ["SIM0001", "SIM0002"]


def test_slices_of_a_run_merge_in_any_order(tmp_path, run_dir):
    """Each slice's folder has its own hosts alone: together they are the whole run, whichever came first, and again."""
    whole = engine.resolve("", str(tmp_path))
    put(whole, run_dir)
    parts = ("server-1", "server-9"), ("server-2", "server-3", "server-4")
    slices = [slice_of(run_dir, tmp_path / hosts[0], hosts) for hosts in parts]
    found = []
    for order in (slices, slices[::-1]):
        url = engine.resolve("", str(tmp_path / f"store-{len(found)}"))
        (tmp_path / f"store-{len(found)}").mkdir()
        for folder in order:
            assert put(url, folder).changed
        assert not any(put(url, folder).changed for folder in order)
        found.append((verdicts(url), [row.content for row in read(url, "run")], len(read(url, "measurement"))))
    assert found[0] == found[1] == (verdicts(whole), found[0][1], len(read(whole, "measurement")))


def slice_of(run_dir, target, hosts):
    """A folder of the same run with some of its hosts."""
    folder = target / run_dir.name
    folder.mkdir(parents=True)
    run = json.loads((run_dir / "run.json").read_text())
    run["asked"] = [entry for entry in run["asked"] if entry["host"] in hosts]
    (folder / "run.json").write_text(json.dumps(run))
    lines = [line for line in (run_dir / "results.jsonl").read_text().splitlines() if json.loads(line)["host"] in hosts]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    for host in hosts:
        if (run_dir / "raw" / host).exists():
            shutil.copytree(run_dir / "raw" / host, folder / "raw" / host)
    return folder


def test_an_older_folder_takes_nothing_back(url, run_dir, tmp_path):
    """Another controller has only that the host was lost, from before: what was measured since stays, and the journal
    it never had too.
    """
    put(url, run_dir)
    before = verdicts(url), len(read(url, "measurement")), [row.figures for row in read(url, "measurement")]
    stale = slice_of(run_dir, tmp_path / "stale", ("server-1",))
    shutil.rmtree(stale / "raw")
    lost = {
        "schema_version": 1,
        "kind": "host",
        "time": generator.time_at(1),
        "run_id": run_dir.name,
        "host": "server-1",
        "message": "",
    }
    lost["state"] = "unreachable"
    (stale / "results.jsonl").write_text(json.dumps(lost) + "\n")
    assert not put(url, stale).changed
    records = (run_dir / "results.jsonl").read_text().splitlines()
    (stale / "results.jsonl").write_text(
        "\n".join(line for line in records if json.loads(line)["host"] == "server-1") + "\n"
    )
    assert not put(url, stale).changed
    assert (verdicts(url), len(read(url, "measurement")), [row.figures for row in read(url, "measurement")]) == before


def test_other_criteria_give_other_verdicts(url, run_dir):
    put(url, run_dir)
    run = json.loads((run_dir / "run.json").read_text())
    run["criteria"][0]["min"] = 1_000
    (run_dir / "run.json").write_text(json.dumps(run))
    assert put(url, run_dir).changed
    assert verdicts(url)["SIM0003"] == "pass"


@pytest.fixture(name="held_to_peers")
def fixture_held_to_peers(tmp_path):
    """A run of nine hosts whose only criterion is a share of the median; the last drive misses it."""
    pytest.importorskip("scipy")
    drives = [generator.DEMO[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in range(8)]
    drives.append(generator.DEMO[2]._replace(host="server-8", serial="SIM0008"))
    criteria = [{"test": "wsat", "metric": "write_iops", "min_of_median": 0.7}]
    return generator.make(tmp_path / "results", drives, rounds=12, criteria=criteria)


@pytest.fixture(name="run_dir_beside")
def fixture_run_dir_beside(held_to_peers):
    """Another run beside that one."""
    folder = held_to_peers.parent / "20261122T130000Z-qualify"
    shutil.copytree(held_to_peers, folder)
    for name in ("run.json", "results.jsonl"):
        (folder / name).write_text((folder / name).read_text().replace(held_to_peers.name, folder.name))
    return folder


def url_files(url):
    path = Path(engine.path(url))
    return [each for each in path.parent.glob(path.name + "*") if each.is_file()]


def test_relative_criteria_are_judged_as_in_the_report(url, held_to_peers):
    put(url, held_to_peers)
    judged = build.make(str(held_to_peers.parent), held_to_peers.name, write=False).judgement
    assert judged["verdicts"]["pass"] == 8 and judged["verdicts"]["fail"] == 1
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    assert sorted(row.verdict for row in read(url, "measurement")) == ["fail"] + ["pass"] * 8
    with engine.opened(url) as store:
        found = exports.load(store, held_to_peers.name).judgement["drives"]
    assert found == judged["drives"]
    before = everything(url)
    assert put(url, held_to_peers)[1:3] == (False, 0) and everything(url) == before


def test_a_lost_store_is_made_again_from_the_folders(url, held_to_peers, run_dir_beside):
    """The folders of runs are the truth: what was in the store is there again, verdicts across hosts included."""
    folder = held_to_peers.parent
    with engine.opened(url, make=True) as store:
        assert len(importer.import_all(store, str(folder))) == 2
    before = everything(url)
    for path in url_files(url):
        path.unlink()
    with engine.opened(url, make=True) as store:
        importer.import_all(store, str(folder))
    assert everything(url) == before and {run_dir_beside.name, held_to_peers.name} == {
        row.run_id for row in read(url, "run")
    }


def test_slices_are_peers_of_each_other_once_all_are_there(url, held_to_peers, tmp_path):
    """Four drives alone have too few peers, and lose them again only with what was measured."""
    names = [f"server-{number}" for number in range(9)]
    first, second = (slice_of(held_to_peers, tmp_path / hosts[0], hosts) for hosts in (names[:4], names[4:]))
    put(url, first)
    assert set(verdicts(url).values()) == {"invalid"}
    # The first slice's verdicts change with the second one's figures, and not again.
    assert put(url, second).hosts == 9
    assert sorted(verdicts(url).values()) == ["fail"] + ["pass"] * 8
    assert not put(url, first).changed and not put(url, second).changed


def test_a_slice_that_another_overtakes_judges_with_the_drives_of_both(url, held_to_peers, tmp_path, monkeypatch):
    """The first slice wrote its run.json, then the second came as a whole, then the first went on."""
    names = [f"server-{number}" for number in range(9)]
    first, second = (slice_of(held_to_peers, tmp_path / hosts[0], hosts) for hosts in (names[:4], names[4:]))
    import_host = importer._import_host

    def overtaken(*arguments):
        monkeypatch.undo()
        put(url, second)
        return import_host(*arguments)

    monkeypatch.setattr(importer, "_import_host", overtaken)
    put(url, first)
    assert sorted(verdicts(url).values()) == ["fail"] + ["pass"] * 8


def test_a_verdict_across_hosts_that_was_not_reached_is_made_up(url, held_to_peers, monkeypatch):
    def killed(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(importer.verdicts, "across_hosts", killed)
    with pytest.raises(KeyboardInterrupt):
        put(url, held_to_peers)
    monkeypatch.undo()
    assert put(url, held_to_peers).changed
    assert sorted(verdicts(url).values()) == ["fail"] + ["pass"] * 8


def test_a_drive_that_moves_is_one_drive(url, tmp_path):
    for host in ("server-1", "server-7"):
        drive = generator.DEMO[0]._replace(host=host)
        folder = generator.make(tmp_path / host, [drive], rounds=8)
        put(url, folder)
    assert len(read(url, "drive")) == 1 and len(read(url, "campaign")) == 2


def test_a_killed_transaction_leaves_nothing_of_its_host(url, run_dir, monkeypatch):
    """The third host breaks in mid-write: the others are whole, it is not there at all, and the next import adds it
    alone.
    """
    write = importer._Part.write
    calls = []

    def broken(self, *arguments):
        calls.append(1)
        write(self, *arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(importer._Part, "write", broken)
    with pytest.raises(KeyboardInterrupt):
        put(url, run_dir)
    assert len(read(url, "part")) == 2 and len(read(url, "campaign")) == 2
    monkeypatch.undo()
    assert put(url, run_dir).hosts == 3
    assert len(verdicts(url)) == 5


def test_raw_files_come_back_as_they_were(url, run_dir, tmp_path):
    packed = run_dir / "raw" / "server-1" / "raw" / "SIM0001" / "wsat-1-0001-x.json.gz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"\x1f\x8b not even gzip")
    put(url, run_dir)
    assert read(url, "raw_file") == []
    assert put(url, run_dir, raw=True).changed
    assert not put(url, run_dir, raw=True).changed
    with engine.opened(url) as store:
        done = rawfiles.extract(store, run_dir.name, str(tmp_path / "back"))
    assert len(done) == 9
    for path in (run_dir / "raw").rglob("*"):
        if path.is_file():
            assert (tmp_path / "back" / path.relative_to(run_dir / "raw")).read_bytes() == path.read_bytes()


def test_a_raw_file_that_leads_out_is_refused(url, run_dir, tmp_path):
    put(url, run_dir, raw=True)
    connection = sqlite3.connect(engine.path(url))
    connection.execute("UPDATE ssd_raw_file SET path = '../../evil' WHERE path = 'plan.json'")
    connection.commit()
    connection.close()
    with engine.opened(url) as store, pytest.raises(StoreError, match="lead out"):
        rawfiles.extract(store, run_dir.name, str(tmp_path / "back"))
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"schema_version": 2, "run": {"id": "r"}, "asked": [], "tests": {}}', None]
)
def test_a_damaged_run_is_told_and_the_others_go_on(url, run_dir, damage):
    other = run_dir.parent / "20261120T000000Z-other"
    other.mkdir()
    (other / "run.json").write_text(damage) if damage else shutil.rmtree(other)
    with engine.opened(url, make=True) as store:
        done = importer.import_all(store, str(run_dir.parent))
    assert any(one.run_id == run_dir.name and one.changed for one in done)
    assert [bool(one.problems) for one in done if one.run_id == other.name] == [True] * bool(damage)
    assert len(verdicts(url)) == 5


def test_figures_that_are_no_numbers_are_not_there(url, run_dir):
    lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "test":
            line["metrics"]["iops"] = None
    (run_dir / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    put(url, run_dir)
    from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import frames

    pytest.importorskip("pandas")
    table = frames.long(url, metrics=["iops"])
    assert table[table["cell"].isna()].empty and not table.empty
    assert all(math.isfinite(value) for value in table["value"])


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("test", "attempt", 2**63),
        ("test", "rounds", 2**64),
        ("drive", "identity", {"size_bytes": 2**64}),
        ("drive", "identity", {"transport": True}),
    ],
)
def test_a_figure_that_no_column_holds_is_that_hosts_error_and_the_others_are_taken(run_dir, url, kind, field, value):
    change(
        run_dir,
        lambda record: {**record, field: {**record[field], **value} if isinstance(value, dict) else value},
        "server-2",
        kind,
    )
    put(url, run_dir)
    told = verdicts(url)
    assert told["SIM0001"] == "pass" and told["SIM0003"] == "fail" and (told["SIM0002"] == "error" or kind == "drive")


def test_values_that_the_store_does_not_take_cost_that_host_its_place_alone(run_dir, url, monkeypatch):
    """Behind the gate a column may still be too small, PostgreSQL's index for a name of some thousand letters: the
    others' parts are written.
    """
    measurement = importer._Part._measurement

    def too_large(self, key, judged, record):
        found = measurement(self, key, judged, record)
        return found and {**found, "attempt": 2**63 if record["host"] == "server-2" else 1}

    monkeypatch.setattr(importer._Part, "_measurement", too_large)
    done = put(url, run_dir)
    assert [problem for problem in done.problems if "server-2" in problem and "too large" in problem] and len(
        done.problems
    ) == 1
    assert set(verdicts(url)) >= {"SIM0001", "SIM0003", "SIM0004"} and "SIM0002" not in verdicts(url)


@pytest.mark.parametrize("earlier", [False, True], ids=["sent now", "in the store since an earlier version"])
def test_a_round_that_no_table_holds_ends_nobodys_export(run_dir, url, tmp_path, monkeypatch, earlier):
    """It stands in the store's layouts, which every later read of any run goes through."""
    pytest.importorskip("pandas")
    place = run_dir / "raw" / "server-2" / "journal.jsonl"
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    for line in lines:
        if line["event"] in ("cell", "round"):
            line["round"] += 2**53
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if earlier:
        let_through = shape.Shape({})
        monkeypatch.setattr(journal, "_of_event", lambda _kind: let_through)
    put(url, run_dir)
    monkeypatch.undo()
    (path,) = exports.write(url, run_dir.name, str(tmp_path / "export"), ["csv"])
    text = Path(path).read_text()
    assert "SIM0001" in text and "SIM0003" in text and str(2**53)[:-2] not in text


def change(run_dir, how, host, kind):
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [how(record) if (record["host"], record["kind"]) == (host, kind) else record for record in records]
    path.write_text("".join(json.dumps(record) + "\n" for record in changed))


def test_slices_that_began_apart_are_the_same_run_in_any_order(tmp_path, run_dir):
    slices = []
    for number, hosts in enumerate((("server-1", "server-9"), ("server-2", "server-3", "server-4"))):
        folder = slice_of(run_dir, tmp_path / hosts[0], hosts)
        run = json.loads((folder / "run.json").read_text())
        run.update(started=f"2026-11-21T13:0{number}:00Z", warnings=[{"host": hosts[0], "message": "x"}])
        run["versions"]["python"] = f"3.11.{number}"
        (folder / "run.json").write_text(json.dumps(run))
        slices.append(folder)
    found = []
    for order in (slices, slices[::-1]):
        (tmp_path / f"store-{len(found)}").mkdir()
        url = engine.resolve("", str(tmp_path / f"store-{len(found)}"))
        for folder in order:
            put(url, folder)
        assert [put(url, folder).changed for folder in order] == [False, False]
        found.append([(row.started, row.content) for row in read(url, "run")])
    assert found[0] == found[1] and found[0][0][0] == "2026-11-21T13:00:00Z"
