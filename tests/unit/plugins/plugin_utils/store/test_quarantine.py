# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer, quarantine, schema
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

WHO = generator.DEMO[0]
# What a night gives the drive: a criterion that it misses or meets, or a campaign that says nothing of it.
MISSED, MET = [{"metric": "write_iops", "min": 1e9}], [{"metric": "write_iops", "min": 1}]


class Nights:
    """Runs of one name in one store, one a day."""

    def __init__(self, folder):
        self.folder, self.url, self.count = folder, database.resolve("", str(folder)), 0

    def night(self, verdict, name="nightly", after=3, drive=WHO, label="", asked=True, own=(), beside=(), ends="error"):
        """A night of one drive, which ends with that verdict; the marks that it leads to. label: what the inventory
        calls it, if not by its serial number; asked: whether it is there at all; own: serial numbers of drives that led
        to their errors themselves; beside: more drives of the night, which end like it; ends: how their campaigns do in
        a night of errors.
        """
        self.count += 1
        drives = (drive, *beside)
        there = generator.make(self.folder / f"night-{self.count}", drives, rounds=6)
        run_id, started = f"r{self.count}", f"2026-11-{self.count:02}T20:00:00Z"
        record = json.loads((there / "run.json").read_text())
        record.update(run={"id": run_id, "name": name}, started=started, criteria=MET if verdict == "pass" else MISSED)
        record["asked"] = [{**entry, "drive": label or entry["drive"]} for entry in record["asked"]] if asked else []
        (there / "run.json").write_text(json.dumps(record))
        lines = [json.loads(line) for line in (there / "results.jsonl").read_text().splitlines()]
        for line in lines:
            line["run_id"] = run_id
            if "drive" in line:
                line["drive"] = label or line["drive"]
            if line["kind"] == "test" and verdict in ("invalid", "error"):
                line["outcome"] = verdict
            if line["kind"] == "drive" and verdict == "error":
                line["outcome"] = "error" if line["drive"] == (label or drive.serial) else ends
                line.update({"drive_fault": True} if line["drive"] in own else {})
        kept = [] if verdict == "not_tested" else lines
        (there / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
        for name in ("plan.json", "journal.jsonl"):
            path = there / "raw" / drive.host / name
            path.write_text(
                path.read_text().replace(f'"drive": "{drive.serial}"', f'"drive": "{label or drive.serial}"')
            )
        there = there.rename(there.parent / run_id)
        with database.opened(self.url, make=True) as store:
            importer.import_run(store, str(there))
            with store.reading() as connection:
                campaign = schema.tables().campaign
                query = sa.select(campaign.c.verdict).where(campaign.c.label == (label or drive.serial))
                assert connection.execute(query.order_by(campaign.c.id.desc())).scalars().first() == verdict
            return quarantine.mark_drives(store, run_id, after)

    def standing(self):
        return quarantine.standing("", str(self.folder))

    def release(self, drive):
        with database.opened(self.url) as store:
            return quarantine.release(store, drive)


@pytest.fixture(name="nights")
def fixture_nights(tmp_path):
    return Nights(tmp_path)


def test_the_third_failed_night_in_a_row_marks_a_drive_once(nights):
    assert [nights.night("fail"), nights.night("fail")] == [[], []] and nights.standing() == []
    (mark,) = nights.night("fail")
    assert (mark.run_name, mark.serial, mark.host, mark.nights, mark.last_run) == (
        "nightly",
        WHO.serial,
        WHO.host,
        3,
        "r3",
    )
    assert "write_iops" in mark.reason and nights.standing() == [mark]
    assert nights.night("fail") == [] and nights.standing() == [mark]


@pytest.mark.parametrize("verdict", ["invalid", "error", "not_tested"])
def test_nights_that_say_nothing_of_the_drive_neither_count_nor_end_the_row(nights, verdict):
    assert nights.night("fail") + nights.night(verdict) + nights.night("fail") + nights.night(verdict) == []
    assert [mark.nights for mark in nights.night("fail")] == [3]


@pytest.mark.parametrize("verdict", ["invalid", "error", "not_tested"])
def test_a_drive_that_was_never_measured_to_fail_is_not_marked(nights, verdict):
    assert [nights.night(verdict) for _night in range(5)] == [[]] * 5


def test_nights_whose_error_is_the_drives_own_count_like_failed_ones(nights):
    mine = {"own": [WHO.serial]}
    assert nights.night("error", **mine) + nights.night("fail") + nights.night("error") == []
    (mark,) = nights.night("error", **mine)
    assert (mark.nights, mark.serial) == (3, WHO.serial) and "error" in mark.reason
    assert nights.standing() == [mark]


MATE = WHO._replace(serial=f"{WHO.serial}-2")


def test_errors_that_drives_of_a_host_have_together_are_the_hosts(nights):
    """Its controller, its power: a night like that neither counts nor ends the row."""
    both = {"own": [WHO.serial, MATE.serial], "beside": [MATE]}
    assert [nights.night("error", **both) for _night in range(4)] == [[]] * 4
    elsewhere = {"own": [WHO.serial, MATE.serial], "beside": [MATE._replace(host="server-77")]}
    assert nights.night("error", **elsewhere) + nights.night("error", **elsewhere) == []
    assert nights.night("error", **both) == []
    assert {(mark.serial, mark.nights) for mark in nights.night("error", **elsewhere)} == {
        (WHO.serial, 3),
        (MATE.serial, 3),
    }


@pytest.mark.parametrize("ends", ["error", "refused", "interrupted"])
def test_an_error_of_a_drive_beside_others_that_broke_off_is_the_hosts(nights, ends):
    """Its controller died: the first drive tells an error, the next ones are not found any more."""
    night = {"own": [WHO.serial], "beside": [MATE], "ends": ends}
    assert [nights.night("error", **night) for _night in range(4)] == [[]] * 4
    assert len(nights.night("error", after=1, **{**night, "ends": "complete"})) == 1


def test_a_pass_ends_a_row_of_errors(nights):
    mine = {"own": [WHO.serial]}
    for verdict in ("error", "error", "pass", "error", "error"):
        assert nights.night(verdict, **mine) == []
    assert len(nights.night("error", **mine)) == 1


def test_a_pass_ends_the_row(nights):
    for verdict in ("fail", "fail", "pass", "fail", "fail"):
        assert nights.night(verdict) == []
    assert len(nights.night("fail")) == 1


def test_runs_of_another_name_are_no_nights(nights):
    assert nights.night("fail") + nights.night("fail") + nights.night("fail", name="by-hand") == []
    assert len(nights.night("fail")) == 1


def test_0_never_marks_and_1_marks_at_once(nights):
    assert [nights.night("fail", after=0) for _night in range(4)] == [[]] * 4
    assert len(nights.night("fail", after=1)) == 1


def test_a_run_that_tells_no_time_is_no_night(nights):
    nights.night("fail")
    with database.opened(nights.url) as store:
        with store.writing() as connection:
            connection.execute(sa.update(schema.tables().run).values(started=None))
        assert quarantine.mark_drives(store, "r1", 1) == []
    assert [mark.nights for mark in nights.night("fail", after=1)] == [1]


def test_a_drive_that_moved_is_the_same_drive(nights):
    assert nights.night("fail") + nights.night("fail") == []
    assert [mark.host for mark in nights.night("fail", drive=WHO._replace(host="server-77"))] == ["server-77"]


HOSTILE = WHO._replace(host="hostile")


def test_no_host_puts_anothers_drive_into_quarantine_by_its_names(nights):
    for _night in range(3):
        marks = nights.night("fail", drive=HOSTILE, label="X1")
    assert [(mark.host, mark.drive) for mark in marks] == [("hostile", "X1")]  # its own
    assert nights.night("fail", after=2) == []
    assert [(mark.host, mark.nights) for mark in nights.night("fail", after=2)] == [(WHO.host, 2)]


def test_no_host_keeps_anothers_drive_out_of_quarantine_by_its_names(nights):
    assert nights.night("fail") + nights.night("fail") + nights.night("pass", drive=HOSTILE, label="X1") == []
    assert [(mark.host, mark.nights) for mark in nights.night("fail")] == [(WHO.host, 3)]


def test_a_drive_that_nobody_asked_for_is_in_no_row_whatever_its_host_calls_it(nights):
    assert [nights.night("fail", drive=HOSTILE, asked=False, after=1) for _night in range(3)] == [[]] * 3
    assert nights.night("fail") + nights.night("pass", drive=HOSTILE, asked=False) + nights.night("fail") == []
    assert [mark.nights for mark in nights.night("fail")] == [3]


def test_a_drive_that_is_called_otherwise_on_its_host_is_the_same_drive(nights):
    assert nights.night("fail") + nights.night("fail") == []
    assert [mark.drive for mark in nights.night("fail", label="eui.1")] == ["eui.1"]


def test_a_released_drive_begins_anew_and_only_a_known_one_is_released(nights, monkeypatch):
    for _night in range(3):
        nights.night("fail")
    assert nights.release("nobody") == []
    monkeypatch.setattr(quarantine, "now", lambda: "2026-11-03T23:00:00.000Z")
    assert [mark.serial for mark in nights.release(WHO.serial)] == [WHO.serial] and nights.standing() == []
    assert nights.night("fail") + nights.night("fail") == []
    assert len(nights.night("fail")) == 1 and len(nights.standing()) == 1


def test_without_a_store_no_drive_is_in_quarantine(tmp_path):
    assert quarantine.standing("none", str(tmp_path)) == [] == quarantine.standing("", str(tmp_path / "missing"))
