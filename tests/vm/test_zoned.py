# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A zoned namespace, from the inventory to the verdict: what QEMU's drive refuses, a real one would."""

from __future__ import annotations

import cells
import pytest
import yaml
from hardware import NEIGHBOUR, ZONED, ZONES
from lab import REPO

TESTS = REPO / "roles/workload/files"


def scaled(name):
    """A shipped test with two rounds of two seconds a cell, less those that write to more zones than it can have open.

    The second round begins zones that the first one left half written; without a reset of those they would be too many.
    """
    source = yaml.safe_load((TESTS / f"tests/{name}.yml").read_text(encoding="utf-8"))
    fitting = [cell for cell in source["cells"] if cell["read_pct"] or cell["threads"] <= ZONES["max_open"]]
    return {
        "base": name,
        "name": name,
        "precondition": {"passes": 1},
        "cells": [{**cell, "runtime_s": 2} for cell in fitting],
        "steady_state": False,
        "rounds": {"max": 2},
    }


PLAN = [scaled(name) for name in yaml.safe_load((TESTS / "plans/zoned.yml").read_text(encoding="utf-8"))]


@pytest.mark.long
def test_a_zoned_drive_is_qualified_by_zone_and_its_neighbour_left_alone(lab, guest):
    zoned, neighbour = guest.device(ZONED), guest.device(NEIGHBOUR)
    count = guest.drives[ZONED].namespaces[0].size_bytes // ZONES["zone_size"]
    # Zeros, which read as nothing does.
    guest.run(f"blkzone reset {zoned} && dd if=/dev/zero of={zoned} bs=4k count=2 oflag=direct")
    before = lab.hashes()[NEIGHBOUR]
    lab.host["ssd_drives"] = [
        {"serial": ZONED, "allow": ["zoned"], "ssd_overwrite_data": True},
        {"serial": NEIGHBOUR},
    ]
    lab.vars.update(ssd_plan=PLAN, ssd_validity_limits={**cells.ANY_MACHINE, "queued_min": 0})
    lab.clear_commands()
    _code, output = lab.play("qualify")
    assert lab.journal(), output
    results = [(result["drive"], result["test"], result["outcome"]) for result in lab.ended()]
    assert results == [(ZONED, test["name"], "complete") for test in PLAN], output
    assert "it has no zones" in output and lab.hashes()[NEIGHBOUR] == before, output
    first = lab.journal("guard")[0]
    told = [refusal["message"] for refusal in first["overridden"] if refusal["code"] == "unsigned_data"]
    assert told and f"1 of its {count} zones are not empty, the first at byte 0" in told[0], first
    # One of the zones that it can have open was, before the first.
    for purge in lab.journal("purge"):
        assert (purge["method"], purge["purge_class"], purge["verified"]) == ("zone_reset", "not_pts", True), purge
        assert purge["verification"]["sentinels"] >= ZONES["max_open"] - 1, purge
    for fill in lab.journal("precondition"):
        assert fill["bytes_written"] == fill["kernel_bytes_written"] == count * ZONES["zone_capacity"], fill
    measured = [cell for cell in lab.journal("cell") if cell["write"] or cell["read"]]
    assert len(measured) >= 2 * sum(len(test["cells"]) for test in PLAN), measured
    assert lab.journal("left")[0]["state"] == "blank", lab.journal("left")
    assert guest.run(f"blkzone report {zoned} | grep -c 'zcond: 1(em)'").stdout.strip() == str(count)
    erased = [argv for argv in lab.commands() if argv[:2] == ["ioctl", "BLKRESETZONE"]]
    assert erased and {argv[2] for argv in erased} == {zoned} and neighbour != zoned, erased
