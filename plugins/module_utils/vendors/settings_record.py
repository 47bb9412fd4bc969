# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set with a vendor's tool and the drive does not show: a JSON file for each drive, `<state_dir>/<tool>/<slug
of serial>.json`.
"""

from __future__ import annotations

import glob
import json
import os
import typing as t

from ..core.files import make_folders, slug, write_atomic

SCHEMA_VERSION = 1


def read_all(state_dir: str, tool: str) -> list[dict[str, t.Any]]:
    """Return the records of a tool, in the order of the files' names."""
    paths = sorted(glob.glob(os.path.join(glob.escape(state_dir), tool, "*.json")))
    return [_load(path) for path in paths]


def _load(path: str) -> dict[str, t.Any]:
    try:
        with open(path, encoding="utf-8") as file:
            saved = json.load(file)
    except (OSError, ValueError):
        return {}
    return saved if isinstance(saved, dict) else {}


class SettingsRecord:
    """The record of a drive for a tool; a file that can't be read as a mapping counts as empty."""

    def __init__(self, state_dir: str, tool: str, serial: str) -> None:
        self.path = os.path.join(state_dir, tool, slug(serial) + ".json")

    def read(self) -> dict[str, t.Any]:
        """Return what was written; {} if nothing was."""
        return _load(self.path)

    def write(self, **fields: t.Any) -> None:
        """Replace it. Raises OSError."""
        make_folders(os.path.dirname(self.path))
        write_atomic(
            self.path, json.dumps(dict(fields, schema_version=SCHEMA_VERSION), indent=1, sort_keys=True) + "\n"
        )

    def remove(self) -> None:
        """Delete it, if there is one."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
