# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""run_info as Ansible calls it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import now
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.plugins.modules import run_info

RUN = "20261121T130000Z-qualify"


@pytest.fixture
def state_dir(tmp_path):
    """A host with one finished run of one drive."""
    run_dir = folder.RunDir(str(tmp_path / "state"), RUN)
    os.makedirs(run_dir.path)
    drive = dict(folder.queued("A1"), phase="done", outcome="complete")
    fields = {
        "schema_version": 1,
        "unit": None,
        "engine_version": "0.1.0",
        "started": now(),
        "restored": True,
        "message": "",
        "run_id": RUN,
        "run_name": "qualify",
        "host": "h1",
        "boot_id": "b",
        "pid": 1,
        "pid_start": "1",
        "state": "finished",
        "drives": [drive],
    }
    folder.Status(run_dir.status, fields).set()
    return run_dir.state_dir


@pytest.fixture
def call(capsys):
    """Run the module with arguments; returns its result."""

    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            run_info.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_without_an_id_it_lists_the_runs_only(call, state_dir):
    result = call(state_dir=state_dir, run_name="qualify")
    assert [(run["run_id"], run["state"]) for run in result["runs"]] == [(RUN, "finished")]
    assert not result["changed"] and "status" not in result
    assert call(state_dir=state_dir, run_name="other")["runs"] == []


def test_with_an_id_it_tells_the_run_and_packs_it(call, state_dir):
    result = call(state_dir=state_dir, run_id=RUN, archive=True)
    assert (result["state"], result["unfinished"], result["status"]["run_id"]) == ("finished", [], RUN)
    assert [entry["outcome"] for entry in result["status"]["drives"]] == ["complete"]
    packed = (Path(state_dir) / f"{RUN}.tar.gz").read_bytes()
    assert result["packed"] == {"size_bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}


def test_check_mode_packs_nothing(call, state_dir):
    assert "packed" not in call(state_dir=state_dir, run_id=RUN, archive=True, _ansible_check_mode=True)
    assert os.listdir(state_dir) == ["runs"]


def test_a_host_without_the_run_says_absent(call, tmp_path):
    result = call(state_dir=str(tmp_path), run_id=RUN, archive=True)
    assert (result["runs"], result["state"], result["status"]) == ([], "absent", {}) and "packed" not in result


@pytest.mark.parametrize("arguments, says", [({"run_id": "../etc"}, "run id '../etc'"), ({"archive": True}, "run_id")])
def test_wrong_arguments_fail_clearly(call, state_dir, arguments, says):
    result = call(state_dir=state_dir, **arguments)
    assert result["failed"] and says in result["msg"]
