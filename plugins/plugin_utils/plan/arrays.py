# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on an array of a host's drives: from the key `array` to what the host makes, and what is wrong with it. Pure.

All drives of the host are its members. The last of them carries the test, in its plan and its results.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...module_utils.records.base import Json
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import Plan, PlannedDrive
from ...module_utils.records.storage_layers import PlannedArray
from ...module_utils.tools import mdadm
from ..common import units
from ..common.argument_specs import Variables
from .test_record import ArrayRequest, Test

FEWEST = 2
ALL = "all"


def rendered(given: Json | None, size_bytes: t.Callable[[t.Any], int]) -> ArrayRequest | None:
    """Return the key `array` of a test file; None for none."""
    return ArrayRequest(given["level"], size_bytes(given["chunk"]), given["drives"]) if given else None


def problems(test: Test) -> list[str]:
    """Return what is wrong with a test on an array."""
    if not test.array_request:
        return []
    found = []
    if test.purge.method != "none":
        found.append("array: an array cannot be purged; purge its drives in earlier tests, and remove the purge here")
    if not test.precondition:
        found.append("array: add a precondition: the drives still hold data of their own tests")
    for key in ("filesystem", "write_cache", "follows", "integrity", "power_cut", "self_test"):
        if getattr(test, key):
            named = "integrity or precondition.verify" if key == "integrity" else key
            told = f"array: can't be combined with {named}, which applies to a single drive"
            found.append(f"{told}; write a separate test")
    return found


def tests_after_array(tests: t.Sequence[Test]) -> list[str]:
    """Tests that come after an array's, as "<origin>: message": of the other drives they would be before it."""
    found, before = [], ""
    for test in tests:
        if before and not test.array_request:
            found.append(f"{test.origin}: test {test.name} comes after {before}, on an array; move it before that test")
        before = test.name if test.array_request else before
    return found


def carries_test(test: Test, place: int, number: int) -> bool:
    """Return whether the drive at this place (from 0) of a host's so many carries a test."""
    return not test.array_request or place == number - 1


def on_drive(test: Test, labels: t.Sequence[str]) -> PlannedArray | None:
    """Return what a plan has of it; None for another test."""
    asked = test.array_request
    return PlannedArray(asked.level, asked.chunk_bytes, list(labels)) if asked else None


def identity(test: Test, last: Identity, members: t.Sequence[Identity]) -> Identity:
    """Return what the cells of a test have to fit: the drive, or the array of all, with the largest of their blocks."""
    asked = test.array_request
    if not asked:
        return last
    sizes = [member.sizes() for member in members]
    size = mdadm.size_bytes((size for size, _block in sizes), asked.chunk_bytes)
    return dataclasses.replace(last, size_bytes=size, logical_block_size_bytes=max(block for _size, block in sizes))


def host_problems(
    tests: t.Sequence[Test], drives: t.Sequence[Identity], settings: Variables, polled: str, left_out: int = 0
) -> list[str]:
    """Return why a host's drives can't be the array that a test asks for. drives: their identities; None of unknown
    ones. left_out: how many take no part.
    """
    return [
        f"test {test.name}: array: {text}"
        for test in tests
        if test.array_request
        for text in _of_request(test.array_request, drives, settings, polled, left_out)
    ]


def _of_request(
    request: ArrayRequest, drives: t.Sequence[Identity], settings: Variables, polled: str, left_out: int
) -> list[str]:
    found, asked, chunk = [], request.drives, request.chunk_bytes
    number = len(drives) + left_out
    if number < FEWEST:
        found.append(f"needs at least {FEWEST} drives; this host has {number} in ssd_drives. Remove the test")
    elif asked != ALL and asked != number:
        found.append(f"needs {asked} drives; this host has {number}. Set drives: {ALL}, or change ssd_drives")
    sizes = {drive.sizes()[0] // chunk * chunk for drive in drives}
    if len(sizes) > 1:
        told = ", ".join(units.data_size(size) for size in sorted(sizes))
        found.append(
            f"its drives differ in size ({told}), and capacity beyond the smallest would not be striped; use drives of "
            "one size"
        )
    if settings.get("workload_ioengine") == polled:
        found.append(f"workload_ioengine: {polled}: an array has no poll queues; use io_uring")
    return found


def members_text(plan: Plan, drive: str) -> list[str]:
    """Return what plan mode says of a drive that is a member of another one's array: what it writes and how long it
    takes is counted there.
    """
    found = []
    for entry in plan.drives:
        for test in entry.tests:
            if entry.drive != drive and test.array and drive in test.array.members:
                found.append(f"then, as part of the array that {entry.drive} carries: {test.name}")
    return found


def describe(spec: PlannedArray) -> str:
    """Return what plan mode says of it."""
    chunk = units.block_size(spec.chunk_bytes)
    return f"on a RAID {spec.level} of {len(spec.members)} drives ({', '.join(spec.members)}), chunk {chunk}"


def written(plan: Plan) -> list[PlannedDrive]:
    """Return the drives of a plan, each with the tests that write to it: those on an array write their share to
    every member, which is what the same test would write to it alone.
    """
    shared = [(test, test.array) for entry in plan.drives for test in entry.tests if test.array]
    found = []
    for entry in plan.drives:
        own = [test for test in entry.tests if not test.array]
        own += [test for test, array in shared if entry.drive in array.members]
        found.append(dataclasses.replace(entry, tests=own))
    return found
