# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine as one file that a host can run: a zipapp of plugins/module_utils, the same bytes for the same sources."""

from __future__ import annotations

import hashlib
import io
import typing as t
import zipfile
from pathlib import Path

MODULE_UTILS = Path(__file__).resolve().parents[2] / "module_utils"
PACKAGE = "ssdlab_fleet"
INTERPRETER = b"#!/usr/bin/env python3\n"
MAIN = f"""import sys

from {PACKAGE}.job.engine import main

sys.exit(main())
"""
# The oldest time that a zip file can hold: file times would make every checkout another engine.
EPOCH = (1980, 1, 1, 0, 0, 0)


# What only modules and the controller import, and the host job does not: each host would be sent it twice.
LEFT_OUT = (
    "checks/",
    "core/compression.py",
    "job/control.py",
    "job/launch.py",
    "job/stop_process.py",
    "purge/drive_facts.py",
    "purge/guarded_format.py",
    "records/answers.py",
    "records/results.py",
    "run/archive.py",
    "run/drive_records.py",
    "run/engines.py",
    "run/run_info.py",
    "tuning/boot.py",
    "vendors/esxi_devices.py",
)


class BuiltEngine(t.NamedTuple):
    """A built engine: its file name, which tells version and content, and its bytes."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        """The digest of its bytes, by which a host knows it."""
        return hashlib.sha256(self.data).hexdigest()


def build(version: str, folder: Path = MODULE_UTILS) -> BuiltEngine:
    """Build the engine from the Python files of a folder and its packages. Raises OSError."""
    files = {f"{PACKAGE}/__init__.py": "", "__main__.py": MAIN}
    sources = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    files.update(
        {
            f"{PACKAGE}/{name}": path.read_text(encoding="utf-8")
            for name, path in sources.items()
            if not name.startswith(LEFT_OUT)
        }
    )
    stream = io.BytesIO()
    stream.write(INTERPRETER)
    # Stored, not deflated: what deflate gives differs between builds of zlib.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            archive.writestr(entry, files[name])
    data = stream.getvalue()
    return BuiltEngine(f"engine-{version}-{hashlib.sha256(data).hexdigest()[:12]}.pyz", data)
