# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's version: galaxy.yml in a checkout, MANIFEST.json once it is installed."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import yaml

from .schema import COLLECTION


@functools.cache
def collection_version(root: Path = COLLECTION) -> str:
    """Return the version as x.y.z. Raises OSError when neither file is there."""
    manifest = root / "MANIFEST.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml.safe_load((root / "galaxy.yml").read_text(encoding="utf-8"))["version"])
