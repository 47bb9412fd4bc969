# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a collected folder held when it was unpacked, so that a later collect mends what was damaged or lost since."""

from __future__ import annotations

import os

from ...module_utils.core import files


def lines(folder: str) -> list[str]:
    """`<SHA-256>  <path below the folder>` of every file, sorted by path; not of those at its top that begin with a
    dot, which are ours.
    """
    found = []
    for base, _folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            below = os.path.relpath(path, folder)
            if not (base == folder and name.startswith(".")):
                found.append((below, files.sha256(path)))
    return [f"{digest}  {below}" for below, digest in sorted(found)]
