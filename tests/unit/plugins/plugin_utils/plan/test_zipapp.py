# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import zipfile

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import zipapp


def test_the_same_sources_give_the_same_bytes(tmp_path):
    (tmp_path / "job").mkdir()
    for name in ("a.py", "job/__init__.py", "job/b.py"):
        (tmp_path / name).write_text("x = 1\n")
    first = zipapp.build("1.2.3", tmp_path)
    os.utime(tmp_path / "a.py", (1_000_000_000, 1_000_000_000))
    (tmp_path / "a.py").chmod(0o600)
    assert zipapp.build("1.2.3", tmp_path) == first
    entries = zipfile.ZipFile(io.BytesIO(first.data)).infolist()
    assert {(entry.date_time[0], entry.external_attr >> 16, entry.compress_type) for entry in entries} == {
        (1980, 0o100644, zipfile.ZIP_STORED)
    }
    assert first.name == f"engine-1.2.3-{hashlib.sha256(first.data).hexdigest()[:12]}.pyz"


@pytest.mark.parametrize("change", ["a.py", "c.py"])
def test_other_sources_give_another_name(tmp_path, change):
    (tmp_path / "a.py").write_text("x = 1\n")
    first = zipapp.build("1.2.3", tmp_path)
    (tmp_path / change).write_text("x = 2\n")
    assert zipapp.build("1.2.3", tmp_path).name != first.name


def test_main_ends_with_what_the_engine_returns(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__init__.py").write_text("")
    (tmp_path / "job" / "engine.py").write_text("from ..other import CODE\n\n\ndef main():\n    return CODE\n")
    (tmp_path / "other.py").write_text("CODE = 7\n")
    engine = zipapp.build("1.2.3", tmp_path)
    path = tmp_path / engine.name
    path.write_bytes(engine.data)
    assert subprocess.run([sys.executable, "-I", str(path)], check=False).returncode == 7


def test_the_real_engine_starts_without_ansible(tmp_path):
    engine = zipapp.build("0.1.0")
    path = tmp_path / engine.name
    path.write_bytes(engine.data)
    done = subprocess.run([sys.executable, "-I", str(path)], check=False, capture_output=True, text=True, cwd="/")
    assert done.returncode == 2 and done.stderr.startswith("usage:")


def test_the_engine_has_all_that_it_imports_and_nothing_that_only_modules_do(tmp_path):
    engine = zipapp.build("0.1.0")
    path = tmp_path / engine.name
    path.write_bytes(engine.data)
    names = [name for name in zipfile.ZipFile(path).namelist() if name.startswith(zipapp.PACKAGE)]
    assert {"job", "guard"} <= {name.split("/")[1] for name in names}
    inside = [name.partition("/")[2] for name in names]
    assert not [name for name in inside if name.startswith(zipapp.LEFT_OUT)]
    assert all((zipapp.MODULE_UTILS / name).exists() for name in zipapp.LEFT_OUT)
    modules = [name[: -len(".py")].replace("/", ".") for name in names if not name.endswith("__init__.py")]
    program = (
        f"import sys, importlib; sys.path.insert(0, {str(path)!r}); [importlib.import_module(n) for n in {modules}]"
    )
    subprocess.run([sys.executable, "-I", "-c", program], check=True, cwd="/")
