# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on a file system: from the key `filesystem` to what the host makes, and what is wrong with it. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records.base import Json
from ...module_utils.records.storage_layers import PlannedFilesystem, Stripe
from ...module_utils.tools import filesystems
from .test_record import Test

# Its own structures, its log, and what it keeps free: ext4 with 4 KiB blocks takes some 7 % of a drive.
MOST_PCT = 90


def rendered(given: Json | None, size_bytes: t.Callable[[t.Any], int]) -> PlannedFilesystem | None:
    """Return the key `filesystem` of a test file as the plan has it, with its stripe in blocks; None for none. Raises
    ValueError.
    """
    if not given:
        return None
    block, raid = size_bytes(given["block_size"]), given.get("raid")
    stripe = None
    if raid:
        data = filesystems.data_drives(raid["level"], raid["drives"], raid.get("sets"))
        stripe = Stripe(*filesystems.geometry(size_bytes(raid["chunk"]), block, data))
    return PlannedFilesystem(given["type"], block, list(given["mount_options"]), stripe)


def problems(test: Test) -> list[str]:
    """Return what is wrong with a test on a file system."""
    if not test.filesystem:
        return []
    found = []
    if test.active_range_pct > MOST_PCT:
        found.append(
            f"filesystem: a file of {test.active_range_pct} % of the drive does not fit beside the file system's "
            f"own structures; set active_range_pct to {MOST_PCT} at most"
        )
    if not test.precondition:
        found.append(
            "filesystem: needs a precondition, which fills the file: reads of blocks that nobody wrote never reach the "
            "drive"
        )
    if test.integrity:
        found.append(
            "filesystem: can't be combined with integrity or precondition.verify, which read back a whole drive"
        )
    if test.power_cut:
        found.append("filesystem: can't be combined with power_cut, which writes to the drive itself")
    if test.self_test:
        found.append("filesystem: can't be combined with self_test, which needs none")
    if test.follows:
        found.append("filesystem: a phase cannot use it, as its test unmounts it first; write a separate test")
    trims = [cell.id for cell in test.cells if any(job.trim for job in cell.jobs or ())]
    if trims:
        found.append(f"filesystem: cell {trims[0]} trims, which a file cannot; remove the trim or the file system")
    return found


def left_behind(tests: t.Sequence[Test]) -> list[str]:
    """Tests that go on from what a file system before them leaves, as "<origin>: message": nobody knows where on the
    drive its file lay.
    """
    found, before = [], ""
    for test in tests:
        prepares = test.purge.method != "none" or test.precondition
        if before and not prepares:
            found.append(
                f"{test.origin}: test {test.name} would continue on the file system of {before}; give it a purge "
                "or a precondition"
            )
        before = test.name if test.filesystem else "" if prepares else before
    return found


def describe(spec: PlannedFilesystem) -> str:
    """Return what plan mode says of it."""
    options = f" ({', '.join(spec.mount_options)})" if spec.mount_options else ""
    stripe = spec.stripe
    width = f", stride {stripe.stride}, stripe width {stripe.stripe_width}" if stripe else ""
    return f"file system {spec.type}{options}{width}"
