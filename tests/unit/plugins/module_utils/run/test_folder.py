# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
import unittest.mock

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.tests.fixtures import planned


@pytest.mark.parametrize("run_id", ["", "..", "../x", "a/b", ".hidden", "a b", "x" * 101, "a\n"])
def test_a_run_id_that_could_leave_the_folder_is_refused(run_id):
    with pytest.raises(ValueError, match="run id"):
        folder.RunDir("/var/lib/x", run_id)


def test_a_torn_line_costs_only_itself(tmp_path):
    path = str(tmp_path / "journal.jsonl")
    journal = folder.Journal(path, run_id="r", host="h")
    journal.add("one")
    journal.close()
    with open(path, "a") as out:
        out.write('{"event": "to')
    journal = folder.Journal(path, run_id="r", host="h")
    journal.add("two", drive="d")
    journal.close()
    assert [record["event"] for record in folder.read_journal(path)] == ["one", "two"]


def test_a_short_write_tears_no_record(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    path = str(tmp_path / "journal.jsonl")
    journal = folder.Journal(path, run_id="r", host="h")
    journal.add("one")
    journal.close()
    assert [record["event"] for record in folder.read_journal(path)] == ["one"]


@pytest.mark.parametrize("text", ['{"a', "[]", ""])
def test_a_damaged_file_is_named_and_a_damaged_status_is_none(tmp_path, text):
    run = folder.RunDir(str(tmp_path), "r")
    os.makedirs(run.path)
    for path in (run.status, run.tuning):
        with open(path, "w") as out:
            out.write(text)
    assert run.read_status() is None
    with pytest.raises(ValueError, match="tuning.json is damaged"):
        files.read_json(run.tuning)


def test_status_is_replaced_as_a_whole_and_readable_by_all(tmp_path):
    path = str(tmp_path / "status.json")
    status = folder.Status(path, {"state": "running", "drives": [folder.queued("a"), folder.queued("b")]})
    status.set_drive("b", phase="purge")
    written = json.loads(open(path).read())
    assert [drive["phase"] for drive in written["drives"]] == ["queued", "purge"]
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["status.json"]


def test_a_failed_write_leaves_the_old_text_and_no_litter(tmp_path):
    path = str(tmp_path / "x.json")
    files.write_atomic(path, "old")
    with pytest.raises(TypeError):
        files.write_atomic(path, None)
    assert (open(path).read(), os.listdir(tmp_path)) == ("old", ["x.json"])


def test_the_commands_of_a_job_are_kept_and_a_full_disk_does_not_stop_it(tmp_path, monkeypatch):
    run = folder.RunDir(str(tmp_path), "r")
    os.makedirs(run.path)
    run.note_command(["wipefs", "-n", "/dev/loop9"])
    monkeypatch.setattr(folder, "append_line", unittest.mock.Mock(side_effect=OSError(28, "No space left on device")))
    run.note_command(["blkid"])
    (line,) = open(run.commands).read().splitlines()
    assert json.loads(line)["argv"] == ["wipefs", "-n", "/dev/loop9"] and json.loads(line)["time"].endswith("Z")


def test_no_two_drives_of_a_plan_share_a_folder_for_their_results(tmp_path):
    """Two backing files, or serials, may be the same but for letters that no file name has: one drive's fio jobs would
    be run for the other.
    """
    run = folder.RunDir(str(tmp_path), "r")
    os.makedirs(run.path)
    names = ["/srv/a/b.img", "/srv/a_b.img", "A1", "/" + "x/" * 1500]
    with open(run.plan, "w") as out:
        json.dump(planned.plan_json(drives=[{"drive": name} for name in names]), out)
    found = [run.raw(name) for name in names]
    assert len(set(found)) == 4 and found == [run.raw(name) for name in names] and os.path.basename(found[2]) == "A1"
    assert all(os.path.isdir(path) for path in found)


@pytest.mark.parametrize("how", [os.unlink, lambda path: os.rename(path, path + ".moved")])
def test_a_journal_that_is_removed_under_the_job_loses_nothing(tmp_path, how):
    path = str(tmp_path / "journal.jsonl")
    journal = folder.Journal(path, run_id="r", host="h")
    journal.add("one", text="x" * 3_000_000)
    how(path)
    journal.add("two")
    journal.close()
    seen = folder.read_journal(path if os.path.exists(path) else path + ".moved")
    assert [record["event"] for record in seen] == ["one", "two"] and len(os.listdir(tmp_path)) == 1


def test_a_journal_whose_folder_is_gone_fails_with_its_name(tmp_path):
    path = str(tmp_path / "r" / "journal.jsonl")
    os.mkdir(tmp_path / "r")
    journal = folder.Journal(path, run_id="r", host="h")
    journal.add("one")
    shutil.rmtree(tmp_path / "r")
    with pytest.raises(OSError, match="No such file or directory"):
        journal.add("two")
    journal.close()
