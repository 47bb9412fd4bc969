# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private parts of ansible-core are in one place. That it has them is tried by tests/compat, version by version."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import core_internals

ROOT = Path(__file__).resolve().parents[5]
PLACE = ROOT / "plugins/plugin_utils/common/core_internals.py"
PARTS = {name for _owner, name in core_internals.PARTS}
# What ActionBase and CallbackBase give to each action and callback.
GIVEN = {"_connection", "_display", "_execute_module", "_loader", "_play_context", "_task", "_templar"}
# Of a NamedTuple, and of our own classes.
OTHERS = {"_asdict", "_fields", "_replace"}
FILES = sorted(
    path
    for folder in ("action", "callback", "plugin_utils")
    for path in (ROOT / "plugins" / folder).rglob("*.py")
    if re.search(r"^(?:from|import) ansible\b", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def private_names(path):
    """The private attributes that a file reads, without those that it makes itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    own |= {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return {node.attr for node in attributes if re.match("_[a-z]", node.attr)} - own - OTHERS


def test_there_are_files():
    assert len(FILES) > 20 and PLACE in FILES


@pytest.mark.parametrize("path", [path for path in FILES if path != PLACE], ids=lambda path: path.stem)
def test_no_other_file_touches_a_private_part(path):
    used = private_names(path) - GIVEN
    # collect is a HostAction, whose own method this is.
    assert used <= ({"_answered"} if path.name == "collect.py" else set()), used
    for name in PARTS - GIVEN:
        assert name not in path.read_text(encoding="utf-8"), name


def test_each_private_part_is_in_the_table():
    text = PLACE.read_text(encoding="utf-8").partition("\n}\n")[2]
    assert private_names(PLACE) - GIVEN - PARTS == set()
    assert [name for name in PARTS if not re.search(rf"\b{name}\b", text)] == []


def test_the_ansible_core_at_hand_has_them(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tests/compat/private_parts.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "playbooks/collections")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_lines_of_an_action_go_by_the_workers_queue_whatever_wraps_display():
    """As ansible-runner wrapped Display.display before it looked whether it is in a worker."""
    sent, printed = [], []
    queue = types.SimpleNamespace(send_display=lambda *given: sent.append(given))
    core_internals.show("of a worker", types.SimpleNamespace(_final_q=queue, display=printed.append))
    core_internals.show("of none", types.SimpleNamespace(_final_q=None, display=printed.append))
    assert sent == [("display", "of a worker")] and printed == ["of none"]
