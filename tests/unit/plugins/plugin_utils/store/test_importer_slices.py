# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices and older folders of a run: whatever their order, the store has all of it, judged across hosts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, exports, import_records, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.store.imports import (
    everything,
    put,
    read,
    slice_of,
    verdicts,
)


def test_slices_of_a_run_merge_in_any_order(tmp_path, run_dir):
    """Each slice's folder has its own hosts alone: together they are the whole run, whichever came first, and again."""
    whole = database.resolve("", str(tmp_path))
    put(whole, run_dir)
    parts = ("server-1", "server-9"), ("server-2", "server-3", "server-4")
    slices = [slice_of(run_dir, tmp_path / hosts[0], hosts) for hosts in parts]
    found = []
    for order in (slices, slices[::-1]):
        url = database.resolve("", str(tmp_path / f"store-{len(found)}"))
        (tmp_path / f"store-{len(found)}").mkdir()
        for folder in order:
            assert put(url, folder).changed
        assert not any(put(url, folder).changed for folder in order)
        found.append((verdicts(url), [row.content for row in read(url, "run")], len(read(url, "measurement"))))
    assert found[0] == found[1] == (verdicts(whole), found[0][1], len(read(whole, "measurement")))


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


def url_files(url):
    path = Path(database.path(url))
    return [each for each in path.parent.glob(path.name + "*") if each.is_file()]


def test_relative_criteria_are_judged_as_in_the_report(url, held_to_peers):
    put(url, held_to_peers)
    judged = write_report.make(str(held_to_peers.parent), held_to_peers.name, write=False).judgement
    assert judged["verdicts"]["pass"] == 8 and judged["verdicts"]["fail"] == 1
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    assert sorted(row.verdict for row in read(url, "measurement")) == ["fail"] + ["pass"] * 8
    with database.opened(url) as store:
        found = exports.load(store, held_to_peers.name).judgement["drives"]
    assert found == judged["drives"]
    before = everything(url)
    assert put(url, held_to_peers)[1:3] == (False, 0) and everything(url) == before


def test_a_lost_store_is_made_again_from_the_folders(url, held_to_peers, run_dir_beside):
    """The folders of runs are the truth: what was in the store is there again, verdicts across hosts included."""
    folder = held_to_peers.parent
    with database.opened(url, make=True) as store:
        assert len(importer.import_all(store, str(folder))) == 2
    before = everything(url)
    for path in url_files(url):
        path.unlink()
    with database.opened(url, make=True) as store:
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
    source = import_records.source

    def overtaken(*arguments):
        monkeypatch.undo()
        put(url, second)
        return source(*arguments)

    # Asked of each host before anything of it is written.
    monkeypatch.setattr(import_records, "source", overtaken)
    put(url, first)
    assert sorted(verdicts(url).values()) == ["fail"] + ["pass"] * 8


def test_a_verdict_across_hosts_that_was_not_reached_is_made_up(url, held_to_peers, monkeypatch):
    def killed(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(importer.cross_host_verdicts, "across_hosts", killed)
    with pytest.raises(KeyboardInterrupt):
        put(url, held_to_peers)
    monkeypatch.undo()
    assert put(url, held_to_peers).changed
    assert sorted(verdicts(url).values()) == ["fail"] + ["pass"] * 8


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
        url = database.resolve("", str(tmp_path / f"store-{len(found)}"))
        for folder in order:
            put(url, folder)
        assert [put(url, folder).changed for folder in order] == [False, False]
        found.append([(row.started, row.content) for row in read(url, "run")])
    assert found[0] == found[1] and found[0][0][0] == "2026-11-21T13:00:00Z"
