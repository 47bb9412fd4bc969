# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calibration of a host before its first purge: what it runs, what it refuses and what the record says."""

from __future__ import annotations

import types

import jsonschema
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import calibration
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, sharing
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema

PLAN = {"drives": [{"drive": "A"}, {"drive": "B"}]}


class Journal(list):
    def add(self, event, **fields):
        self.append({"event": event, **fields})


def job(history=()):
    return types.SimpleNamespace(journal=Journal(), history=list(history))


def measured(monkeypatch, answer):
    def bench(_job, _plan, _show_life):
        def measure(group):
            if isinstance(answer, Exception):
                raise answer
            return {drive: {"c": min(100.0, answer / len(group))} for drive in group}

        return measure

    monkeypatch.setattr(calibration, "_Bench", bench)


@pytest.mark.parametrize(("limit", "at_once"), [(200, 2), (150, 1)])
def test_the_number_and_the_shares_are_journalled_as_the_schema_has_it(monkeypatch, limit, at_once):
    measured(monkeypatch, limit)
    one = job()
    assert calibration.at_once(one, PLAN, lambda: None) == at_once
    (record,) = one.journal
    assert (record["event"], record["at_once"], record["kept"], record["message"]) == ("calibrated", at_once, 0.98, "")
    assert record["tried"][0]["shares"] == {"A": limit / 200, "B": limit / 200}
    about = {"schema_version": 1, "time": "2026-11-22T12:00:00.000Z", "run_id": "r", "host": "h"}
    jsonschema.validate({**about, **record}, schema.load("journal"))


def test_a_job_that_goes_on_with_a_run_keeps_its_number(monkeypatch):
    measured(monkeypatch, RuntimeError("measured again"))
    again = job([{"event": "calibrated", "at_once": 3}])
    assert calibration.at_once(again, PLAN, lambda: None) == 3 and again.journal == []


@pytest.mark.parametrize(
    "error",
    [fio.FioError("no fio"), OSError(16, "busy"), Refused([{"code": "not_found", "message": "drive A is not there"}])],
)
def test_a_host_that_cannot_be_calibrated_measures_one_drive_at_a_time_and_says_why(monkeypatch, error):
    measured(monkeypatch, error)
    one = job()
    assert calibration.at_once(one, PLAN, lambda: None) == 1
    assert "could not be calibrated" in one.journal[0]["message"] and str(error) in one.journal[0]["message"]


def test_a_run_that_is_stopped_meanwhile_has_no_record(monkeypatch):
    measured(monkeypatch, fio.Interrupted())
    one = job()
    assert calibration.at_once(one, PLAN, lambda: None) == 1 and one.journal == []


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("[global]\nbs=4k\n[a]\nrw=randread\n", True),
        ("[a]\nrw=read\n[b]\nrw=randread\n", True),
        ("[a]\nrw=randread\n[b]\nrw=randwrite\n", False),
        ("[a]\nrw=read\nrw=randrw\n", False),
        ("[a]\n rw = write\n", False),
        ("[a]\nreadwrite=trim\n", False),
        ("[a]\nrw=read\nverify=crc32c\n", False),
        ("[a]\nbs=4k\n", False),
    ],
)
def test_nothing_but_reads_is_run(text, reads):
    if reads:
        calibration._refuse_writes(text)
    else:
        with pytest.raises(fio.FioError, match="only read"):
            calibration._refuse_writes(text)


def test_the_search_is_given_the_drives_in_the_order_of_the_plan(monkeypatch):
    seen = []
    monkeypatch.setattr(calibration, "_Bench", lambda *_: None)
    monkeypatch.setattr(sharing, "search", lambda drives, _measure: seen.append(drives) or sharing.Found(1, {}, []))
    calibration.at_once(job(), PLAN, lambda: None)
    assert seen == [["A", "B"]]
