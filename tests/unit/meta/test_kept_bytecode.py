# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Python compiles of zip files is kept, and never taken for another text (tests/kept_bytecode)."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

KEPT_BYTECODE = Path(__file__).resolve().parents[2] / "kept_bytecode"


@pytest.fixture(name="run")
def fixture_run(tmp_path):
    """Import `package.module` of a zip file of these files: run({name: text}), what it prints."""

    def run(files):
        with zipfile.ZipFile(tmp_path / "sources.zip", "w") as out:
            for name, text in files.items():
                out.writestr(name, text)
        kept = {"PYTHONPATH": str(KEPT_BYTECODE), "SSDLAB_FLEET_BYTECODE": str(tmp_path / "kept")}
        environment = {**os.environ, **kept}
        # As Ansible's wrapper of a module does.
        code = "import sys; sys.path.insert(0, sys.argv[1]); import package.module"
        argv = [sys.executable, "-c", code, str(tmp_path / "sources.zip")]
        return subprocess.run(argv, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    return run


def files(says):
    return {"package/__init__.py": "", "package/own.py": f"TEXT = {says!r}", "package/module.py": SHOW}


SHOW = "from . import own\nprint(own.TEXT, own.__file__, (lambda: 0).__code__.co_filename)"


def test_the_kept_code_runs_as_if_it_had_been_compiled(run, tmp_path):
    first = run(files("one"))
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()}
    assert first == f"one {tmp_path}/sources.zip/package/own.py {tmp_path}/sources.zip/package/module.py"
    assert run(files("one")) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()} == kept and len(kept) == 3


def test_a_changed_source_is_compiled_anew(run):
    assert [run(files(says)).split()[0] for says in ("one", "two", "one")] == ["one", "two", "one"]


def test_a_damaged_file_is_compiled_anew(run, tmp_path):
    run(files("one"))
    for path in (tmp_path / "kept").iterdir():
        path.write_bytes(path.read_bytes()[:5])
    assert run(files("one")).startswith("one ")


def test_a_folder_that_cannot_be_written_ends_nothing(run, tmp_path):
    (tmp_path / "kept").write_text("a file")
    assert run(files("one")).startswith("one ")
