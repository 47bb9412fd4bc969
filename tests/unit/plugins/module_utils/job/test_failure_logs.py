# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs, Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import error_logs
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import failure_logs
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results

UNREAD = {"cause": "health", "level": "disturbs", "message": "its health could not be read at the end"}
MEDIA = {"cause": "media_errors", "level": "told", "message": "it counted 3 more media errors"}
HOT = {"cause": "temperature", "level": "disturbs", "message": "it reached 80 °C"}
UNKNOWN = {"cause": "media_errors", "level": "unknown", "message": "its media errors are unknown"}


@pytest.mark.parametrize(
    "outcome, message, missed, conditions, says",
    [
        ("complete", "", "", [], ""),
        ("complete", "", "", [HOT, UNKNOWN], ""),
        # With ssd_health_criteria none: else it is missed.
        ("complete", "", "", [MEDIA], ""),
        ("complete", "", "", [UNREAD], "iops: its health could not be read at the end"),
        ("complete", "", "iops: write_iops is 5 (min 9)", [], "iops: write_iops is 5 (min 9)"),
        ("error", "iops: fio: Input/output error", "", [UNREAD], "iops: fio: Input/output error; iops: its health"),
        ("interrupted", "the run was stopped", "", [], ""),
        # The guard let nobody near it: it may be another drive.
        ("refused", "mounted", "x", [MEDIA], ""),
    ],
)
def test_the_logs_of_a_drive_that_failed_are_kept_and_of_no_other(outcome, message, missed, conditions, says):
    why = failure_logs.why(outcome, message, missed, [run_results.attempt(conditions=conditions)])
    assert why.startswith(says) and bool(why) == bool(says)


@pytest.mark.parametrize(
    "error, own",
    [(fio.DriveError("x"), True), (Hangs("x"), True), (fio.FioError("x"), False), (PurgeError("x"), False)],
)
def test_an_error_is_the_drives_own_only_where_that_is_known(error, own):
    assert failure_logs.is_of_drive(error) is own


def station(tmp_path, noted, identity):
    return types.SimpleNamespace(
        held=types.SimpleNamespace(identity=identity, path="/dev/nvme9n1"),
        job=types.SimpleNamespace(run_dir=types.SimpleNamespace(raw=lambda _drive: str(tmp_path)), host=None),
        drive="A1",
        watchdog=Watchdog(threading.Event()),
        note=lambda event, **fields: noted.append((event, fields)),
    )


@pytest.mark.parametrize("error", [Hangs("the drive hangs"), RecursionError("deep")])
def test_a_drive_that_gives_no_answer_is_a_line(tmp_path, monkeypatch, error):
    def keep(_host, identity, folder):
        assert (identity.path, folder) == ("/dev/nvme9n1", str(tmp_path))
        raise error

    monkeypatch.setattr(error_logs, "keep", keep)
    noted = []
    failure_logs.keep_logs(station(tmp_path, noted, Identity(serial="A1", path="/dev/nvme0n1")), "missed")
    ((event, fields),) = noted
    assert event == "logs_kept" and fields["reason"] == "missed" and str(error) in fields["logs"][0]["message"]


@pytest.mark.parametrize("reason, identity", [("", Identity(serial="A1", path="/dev/nvme0n1")), ("missed", Identity())])
def test_a_drive_that_did_well_or_was_never_held_is_not_asked(tmp_path, reason, identity):
    noted = []
    failure_logs.keep_logs(station(tmp_path, noted, identity), reason)
    assert noted == []
