# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seeds that fio gets: by them a record of a cell shows which measurement it is of. Pure."""

from __future__ import annotations

import hashlib
import typing as t


def seed(*parts: t.Any) -> int:
    """Return a seed of its own for each cell, the same when the same cell is asked for again: 31 bits of a hash
    of its names.
    """
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
