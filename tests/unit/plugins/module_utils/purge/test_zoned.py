# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Zones as the kernel reports them, and a purge that resets them, on a drive that does so and on drives that do not."""

from __future__ import annotations

import os
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import zones
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import allocation_map
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import release_drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError, Work
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.tests.fixtures import planned
from ansible_collections.ssdlab.fleet.tests.fixtures.zones_of_file import CAPACITY_BYTES, ZONE_BYTES, Zones

BLOCK = 512
# It can have four zones open, and six written in part.
LIMITS = {"max_open_zones": 4, "max_active_zones": 6}


class Drive:
    """A zoned drive that is held, and what is done with it."""

    def __init__(self, host, path, **lies):
        self.zones = Zones(path, **lies)
        self.host, host.ioctl = host, self.zones.ioctl
        self.handle = os.open(path, os.O_RDWR)
        self.identity = Identity(
            path=str(path),
            kernel_name="nvme0n2",
            size_bytes=self.zones.size_bytes,
            logical_block_size_bytes=BLOCK,
            zone_model="host-managed",
            zone_bytes=ZONE_BYTES,
            **LIMITS,
        )
        held = types.SimpleNamespace(
            identity=self.identity,
            descriptor=lambda: self.handle,
            note_sentinels=lambda _blocks: None,
            check=lambda: None,
            unsettled=False,
        )
        self.work = Work(
            host=host,
            held=held,
            options=PlannedPurge("auto"),
            tick=lambda _share: None,
            note=lambda _event, **_fields: None,
            fill=lambda _tick: 0,
        )


@pytest.fixture
def drive(fake, tmp_path):
    made = []

    def make(**lies):
        made.append(Drive(fake, tmp_path / "drive", **lies))
        return made[-1]

    yield make
    for each in made:
        os.close(each.handle)


def test_zones_are_read_in_pieces_and_counted_by_their_capacity(drive):
    made = drive()
    made.zones.write(0, b"\0" * CAPACITY_BYTES)
    made.zones.write(39, b"x" * BLOCK)
    found = zones.report(made.host, made.handle, made.zones.size_bytes)
    assert [zone.start_bytes for zone in found] == [index * ZONE_BYTES for index in range(40)]
    assert [zone.written_bytes for zone in found if zone.holds_data] == [CAPACITY_BYTES, BLOCK]
    assert zones.writable_bytes(found, 1 << 15) == 40 * (1 << 15)
    assert len(zones.report(made.host, made.handle, 3 * ZONE_BYTES)) == 3
    assert zones.reset_active(made.host, made.handle, "/dev/x", made.zones.size_bytes) == 1
    assert made.zones.written == [CAPACITY_BYTES] + [0] * 39


def test_a_zone_that_is_not_empty_is_data_whatever_it_reads_as(drive):
    made = drive()
    facts = Facts(name="nvme0n2", path="/dev/nvme0n2", kind="drive", identity=made.identity)
    assert allocation_map.from_zones(made.host, facts, made.handle) == [] and facts.allocated_bytes == 0
    made.zones.write(7, bytes(BLOCK))
    told = allocation_map.from_zones(made.host, facts, made.handle)
    assert told == [f"1 of its 40 zones are not empty, the first at byte {7 * ZONE_BYTES}"]
    assert facts.allocated == [(7 * ZONE_BYTES, BLOCK)] and facts.allocated_bytes == BLOCK


def test_only_a_reset_of_its_zones_is_offered(drive):
    made = drive()
    (offer,) = methods.offers(made.host, made.identity, PlannedPurge("auto"))
    assert (offer.method, offer.supported, offer.purge_class) == ("zone_reset", True, "not_pts")
    for method in ("deallocate", "overwrite", "nvme_format_user_data"):
        with pytest.raises(PurgeError, match="is not for this kind of drive; the drive offers: zone_reset"):
            methods.choose(method, [offer])


@pytest.mark.parametrize("held", ["nothing", "some", "all", "zeros"])
def test_a_reset_is_verified_by_what_lay_there_and_by_sentinels_at_write_pointers(drive, held):
    made = drive()
    full = {"nothing": [], "some": range(0, 40, 3), "all": range(40), "zeros": range(40)}[held]
    for zone in full:
        made.zones.write(zone, bytes(CAPACITY_BYTES) if held == "zeros" else os.urandom(CAPACITY_BYTES))
    end = purge_step.perform(made.work)
    assert end.method == "zone_reset" and end.verified and end.verification.survived == 0
    # As many as it can have open, beside what lay there.
    assert end.verification.sentinels >= {"nothing": 4, "some": 10, "all": 32, "zeros": 1}[held]
    assert made.zones.written == [0] * 40


def test_a_drive_is_left_blank_with_all_zones_empty(drive):
    made = drive()
    for zone in (0, 20, 39):
        made.zones.write(zone, os.urandom(BLOCK))
    left = release_drive.blank(made.work)
    assert (left.state, left.reason) == ("blank", "") and made.zones.written == [0] * 40


def test_a_drive_that_still_gives_what_it_held_is_found_out(drive):
    end = purge_step.perform(drive(keeps_data=True).work)
    assert not end.verified and end.verification.survived == end.verification.sentinels


def test_a_zone_that_is_not_emptied_is_an_error(drive):
    made = drive(refuses=5)
    made.zones.write(5, b"x" * BLOCK)
    with pytest.raises(PurgeError, match=f"1 zones are not empty, the first at byte {5 * ZONE_BYTES}"):
        purge_step.perform(made.work)


@pytest.mark.parametrize("conventional", [2, 40])
def test_zones_that_no_reset_empties_keep_the_drive_from_it(drive, conventional):
    made = drive(conventional=conventional)
    made.zones.write(39, b"x" * BLOCK)
    with pytest.raises(PurgeError, match=f"{conventional} of its zones are conventional, .* nothing was erased"):
        purge_step.perform(made.work)
    assert made.zones.written[39] == BLOCK and not made.zones.was_reset


@pytest.mark.parametrize(
    ("zoned", "test", "told"),
    [
        (True, {"zoned": True, "cells": [{}]}, ""),
        (False, {"cells": [{}]}, ""),
        # A purge alone is for both, as is a drive's own test.
        (True, {"self_test": "short"}, ""),
        (True, {"cells": [{}]}, "it is zoned, and the plan has tests that don't go by zone (one); ssd_plan: zoned "),
        (True, {"precondition": {"passes": 1}}, "it is zoned, and the plan has tests that"),
        (
            False,
            {"zoned": True, "cells": [{}]},
            "it has no zones, and the plan has tests by zone (one); ssd_plan: nightly",
        ),
    ],
)
def test_tests_and_drives_belong_together(zoned, test, told):
    identity = Identity(zone_model="host-managed" if zoned else "host-aware")
    (made,) = planned.drive(tests=[{"name": "one", **test}]).tests
    found = zones.misplaced_tests([made], identity)
    assert found.startswith(told) and bool(found) == bool(told)
