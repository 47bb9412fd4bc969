# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps on the host what was changed by its BMC: a controller may die, and another one restores it."""

from __future__ import annotations

import contextlib
import json
import os

from ..core.files import make_folders, read_json, write_atomic
from ..records import base
from ..records.bmc import BmcRecord

NOTHING = BmcRecord()


def path(state_dir: str) -> str:
    """Return where the record is."""
    return os.path.join(state_dir, "bmc.json")


def read(state_dir: str) -> BmcRecord:
    """Return the record; NOTHING where there is none. Raises ValueError."""
    found = read_json(path(state_dir))
    return NOTHING if found is None else base.parse(BmcRecord, found)


def leftover(state_dir: str) -> BmcRecord | None:
    """Return a record that has something to restore; None where there is none, or none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        found = read(state_dir)
        return None if found == NOTHING else found
    return None


def write(state_dir: str, record: BmcRecord) -> None:
    """Keep a record, or remove one that has nothing to restore any more."""
    if record != NOTHING:
        make_folders(state_dir)
        write_atomic(path(state_dir), json.dumps(base.to_json(record), indent=1) + "\n")
    elif os.path.exists(path(state_dir)):
        os.unlink(path(state_dir))
