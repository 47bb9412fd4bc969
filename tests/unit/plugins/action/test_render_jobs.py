# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.playbook.task import Task

from ansible_collections.ssdlab.fleet.plugins.action import render_jobs as action
from ansible_collections.ssdlab.fleet.plugins.modules import render_jobs as module


def run(dest, check=False, **changed):
    task = Task()
    given = {"plan": "smoke", "platform": "windows", "device": r"\\.\PhysicalDrive1", "size_bytes": 480_103_981_056}
    task.args, task.check_mode, task.async_val = {**given, "dest": str(dest), **changed}, check, 0
    shell = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=""))
    return action.ActionModule(task, shell, types.SimpleNamespace(), None, None, None).run(task_vars={})


def test_files_are_written_once(tmp_path):
    dest = tmp_path / "out"
    assert run(dest, check=True)["changed"] and not dest.exists()
    first = run(dest)
    assert first["changed"] and first["dest"] == str(dest)
    assert sorted(first["files"]) == sorted(str(path.relative_to(dest)) for path in dest.rglob("*") if path.is_file())
    assert not run(dest)["changed"] and not run(dest, check=True)["changed"]
    assert run(dest, device=r"\\.\PhysicalDrive2")["changed"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"plan": "smok"}, "did you mean"),
        ({"device": "C:"}, "is not a whole drive on windows"),
        ({"size_bytes": 0}, "size_bytes and queue_depth"),
        ({"size_bytes": 4096}, "ActiveRange"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, changed, says):
    with pytest.raises(AnsibleActionFail, match=says):
        run(tmp_path, **changed)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsibleActionFail, match="dest: .* cannot be written"):
        run(tmp_path / "file")


def test_the_documentation_has_the_same_arguments():
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    keys = ("type", "required", "choices", "default", "elements")
    assert {name: {key: about[key] for key in keys if key in about} for name, about in documented.items()} == (
        action.ARGUMENTS
    )
