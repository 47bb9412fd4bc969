# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack some collections out of PyPI's `ansible` wheel: unpack_collections.py WHEEL DESTINATION NAMESPACE.NAME ..."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def unpack(wheel, destination, names):
    """Each collection appears whole or not at all. Raises KeyError for one that the wheel lacks."""
    destination = Path(destination)
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            folder = f"ansible_collections/{name.replace('.', '/')}"
            archive.getinfo(f"{folder}/MANIFEST.json")
            members = [member for member in archive.namelist() if member.startswith(f"{folder}/")]
            with tempfile.TemporaryDirectory(dir=destination) as aside:
                archive.extractall(aside, members)
                target = destination / name.replace(".", "/")
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(exist_ok=True)
                (Path(aside) / folder).replace(target)


if __name__ == "__main__":
    unpack(sys.argv[1], sys.argv[2], sys.argv[3:])
