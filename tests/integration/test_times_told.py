# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan mode tells how long a plan takes from what two runs took, and the third takes so long."""

from __future__ import annotations

import datetime
import json
import re

import pytest

pytestmark = [pytest.mark.long, pytest.mark.exclusive(depth=4, iops=200)]

# Most of it is the cells' own time, of which a busy machine adds little.
CELL_S, ROUNDS = 30, 3
TEST = {
    "name": "fixed",
    "purge": {"method": "deallocate"},
    "precondition": {"passes": 1},
    "cells": [{"block_size": "4KiB", "read_pct": 0, "queue_depth": 4, "runtime_s": CELL_S, "rate_iops": 200}],
    "rounds": {"max": ROUNDS},
}
RANGE = re.compile(r"1\. fixed: .*; (.+?) to (.+?), from 2 earlier runs of this model")
WHOLE = re.compile(r"in all (.+?) to (.+?), from 2 earlier runs of this model")
UNIT_S = {"s": 1, "min": 60, "h": 3600}


def seconds(text):
    """Of 1 min 5 s."""
    return sum(float(amount) * UNIT_S[unit] for amount, unit in re.findall(r"([0-9.]+) (s|min|h)", text))


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def took(site, run_id):
    """How long the test took in a run, and how long the drive was looked at, measured and left."""
    lines = (site.results / run_id / "results.jsonl").read_text().splitlines()
    records = {record["kind"]: record for record in map(json.loads, lines)}
    test, drive = records["test"], records["drive"]
    whole = drive["look"]["seconds"] + (moment(drive["time"]) - moment(test["started"])).total_seconds()
    return (moment(test["finished"]) - moment(test["started"])).total_seconds(), whole


def test_the_range_of_plan_mode_has_the_next_run_in_it(site, loop_drive):
    site.hosts = {"server": {"ssd_drives": [loop_drive().selector]}}
    site.vars.update(ssd_plan=[TEST], ssd_criteria=[])
    for run_id in ("first", "second"):
        code, output = site.play("qualify", "-e", f"ssd_run_id={run_id}")
        assert code == 0, output[-3000:]
    code, told = site.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0, told[-3000:]
    code, output = site.play("qualify", "-e", "ssd_run_id=third")
    assert code == 0, output[-3000:]
    for pattern, length in zip((RANGE, WHOLE), took(site, "third")):
        low, high = (seconds(text) for text in pattern.search(told).groups())
        print(f"told {low} to {high} s, took {length:.1f} s")
        assert length >= CELL_S * ROUNDS
        assert low <= length <= high, told
        assert high - low <= 0.2 * (low + high) / 2, told
