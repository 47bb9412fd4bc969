# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a vendor's tool was told and a drive does not tell back: one small JSON file a drive, `<state_dir>/<tool>/<slug
of serial>.json`.
"""

from __future__ import annotations

import glob
import json
import os
import typing as t

from ..core.files import make_folders, slug, write_atomic

SCHEMA_VERSION = 1


def records(state_dir: str, tool: str) -> list[dict[str, t.Any]]:
    """What was kept of every drive for one tool, in the order of the files' names."""
    paths = sorted(glob.glob(os.path.join(glob.escape(state_dir), tool, "*.json")))
    return [_load(path) for path in paths]


def _load(path: str) -> dict[str, t.Any]:
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


class Record:
    """The record of one drive for one tool; a file that cannot be read as a mapping counts as empty."""

    def __init__(self, state_dir: str, tool: str, serial: str) -> None:
        self.path = os.path.join(state_dir, tool, slug(serial) + ".json")

    def read(self) -> dict[str, t.Any]:
        """What was kept; {} where nothing was."""
        return _load(self.path)

    def write(self, **fields: t.Any) -> None:
        """Replace it. Raises OSError."""
        make_folders(os.path.dirname(self.path))
        write_atomic(
            self.path, json.dumps(dict(fields, schema_version=SCHEMA_VERSION), indent=1, sort_keys=True) + "\n"
        )

    def remove(self) -> None:
        """Forget it; harmless when there is none."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
