# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No test replaces a private name: it would hold on to how something works, and pass when that is no longer called."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
# job._run, engine._Job.run
PRIVATE = re.compile(r"(?:\w+\.)*_(?!_)\w+(?:\.\w+)*")
REPLACE = {"setattr", "delattr", "patch", "object"}


def is_private(node):
    """Whether a name, or the text of one, has a private part."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and PRIVATE.fullmatch(node.value) is not None
    return isinstance(node, (ast.Name, ast.Attribute)) and PRIVATE.fullmatch(ast.unparse(node)) is not None


def replaces(node, texts):
    """Whether a private name gets another value here. texts: those beside it, of which a loop may take its names."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        names = node.args[:2] + (texts if len(node.args) > 2 and isinstance(node.args[1], ast.Name) else [])
        return name in REPLACE and any(map(is_private, names))
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    # What an object keeps to itself it also sets.
    return any(
        isinstance(one, ast.Attribute) and is_private(one) and ast.unparse(one.value) != "self" for one in targets
    )


def found(source):
    """The statements and calls that replace a private name."""
    for part in ast.parse(source).body:
        nodes = list(ast.walk(part))
        texts = [node for node in nodes if isinstance(node, ast.Constant)]
        yield from (ast.unparse(node) for node in nodes if replaces(node, texts))


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('monkeypatch.setattr(engine, "_run", none)', True),
        ('monkeypatch.setattr("time._sleep", none)', True),
        ('monkeypatch.setattr(engine._Job, "run", none)', True),
        ('mock.patch.object(engine.Job, "_run")', True),
        ('mock.patch("engine._run")', True),
        ("engine._Job = Other", True),
        ('for name in ("run", "_end"):\n    setattr(engine, name, none)', True),
        ('monkeypatch.setattr(engine, "run", none)', False),
        ('monkeypatch.setattr(engine.Job, "__init__", none)', False),
        ("self._run = none", False),
        ("engine.Job()._run()", False),
    ],
)
def test_what_counts_as_replacing_one(source, wrong):
    assert any(found(source)) is wrong


def test_no_test_replaces_a_private_name():
    wrong = [
        f"{path.relative_to(TESTS)}: {line:.120}"
        for path in sorted(TESTS.rglob("*.py"))
        if TESTS / "output" not in path.parents
        for line in found(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "give the code a seam that makes sense for its reader: " + "; ".join(wrong)
