# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells with `block_size: preferred`: of the size that a drive says it writes best, so that nothing has to be read and
written again around them. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import cell_names
from ..common.units import block_size

# A drive without a preference tells its logical block, 512 B: no host writes less than a page, and no flash either.
LEAST_BYTES = 4096
Mapping = t.Mapping[str, t.Any]


def size_bytes(identity: Mapping) -> int:
    """Return the preferred write size of a drive: what the kernel has in minimum_io_size (NVMe's NPWG), at
    least 4 KiB.
    """
    told: int = identity.get("minimum_io_size_bytes") or identity["logical_block_size_bytes"]
    return max(LEAST_BYTES, told)


def on_drive(test: Mapping, identity: Mapping) -> tuple[dict[str, t.Any], list[dict[str, str]]]:
    """Return a test with the size of this drive in its cells and in what it tracks, and the cells that became another
    of the test's: [{id, reason}].

    A cell that was resolved keeps in `preferred` the name that it has in the test of every drive.
    """
    size = size_bytes(identity)
    fixed = {cell["id"] for cell in test["cells"] if not cell.get("preferred")}
    found, left_out = [], []
    for cell in test["cells"]:
        name = cell_names.on_drive(cell["id"], size)
        if not cell.get("preferred"):
            found.append(cell)
        elif name in fixed:
            left_out.append(
                {
                    "id": cell["id"],
                    "reason": f"the drive prefers writes of {block_size(size)}, which is cell {name}",
                }
            )
        else:
            found.append({**cell, "id": name, "block_size_bytes": size, "preferred": cell["id"]})
    steady = test["steady_state"]
    if steady:
        tracked = [{**item, "cell": cell_names.on_drive(item["cell"], size)} for item in steady.get("tracked", [])]
        steady = {**steady, "tracked": tracked}
    return {**test, "cells": found, "steady_state": steady}, left_out
