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
from ..records import base

SCHEMA_VERSION = 1


def read_all(kind: type[base.Kind], state_dir: str, tool: str) -> list[base.Kind]:
    """Return the records of a tool, in the order of the files' names."""
    paths = sorted(glob.glob(os.path.join(glob.escape(state_dir), tool, "*.json")))
    return [saved for saved in (_load(kind, path) for path in paths) if saved is not None]


def _load(kind: type[base.Kind], path: str) -> base.Kind | None:
    try:
        with open(path, encoding="utf-8") as file:
            return base.parse(kind, json.load(file))
    except (OSError, ValueError):
        return None


class SettingsRecord(t.Generic[base.Kind]):
    """The record of a drive for a tool, a dataclass; a file that can't be read as one counts as none."""

    def __init__(self, kind: type[base.Kind], state_dir: str, tool: str, serial: str) -> None:
        self._kind = kind
        self.path = os.path.join(state_dir, tool, slug(serial) + ".json")

    def read(self) -> base.Kind | None:
        """Return what was written; None if nothing was."""
        return _load(self._kind, self.path)

    def write(self, saved: base.Kind) -> None:
        """Replace it. Raises OSError."""
        make_folders(os.path.dirname(self.path))
        fields = dict(base.to_json(saved), schema_version=SCHEMA_VERSION)
        write_atomic(self.path, json.dumps(fields, indent=1, sort_keys=True) + "\n")

    def remove(self) -> None:
        """Delete it, if there is one."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
