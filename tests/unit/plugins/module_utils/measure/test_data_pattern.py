# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data that flatter a controller that compresses are told."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import data_pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedTest
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

JOB = "[global]\nioengine=libaio\nrefill_buffers=1\n\n[c]\nrw=randwrite\nbs=4096\n"


@pytest.mark.parametrize(
    "change, found",
    [
        ("", []),
        ("buffer_compress_percentage=50\n", ["buffer_compress_percentage=50"]),
        ("buffer_compress_percentage=0\n", []),
        ("dedupe_percentage=30%\n", ["dedupe_percentage=30%"]),
        ("buffer_pattern=0xdeadbeef\n", ["buffer_pattern=0xdeadbeef"]),
        ("zero_buffers=1\nrefill_buffers=0\n", ["zero_buffers=1"]),
        ("zero_buffers=0\n", []),
        ("refill_buffers=0\n", []),
        ("scramble_buffers=0\n", []),
        ("refill_buffers=0\nscramble_buffers=1\n", []),
        ("refill_buffers=0\nscramble_buffers=0\n", ["scramble_buffers=0"]),
        ("rw=randread\nrefill_buffers=0\nbuffer_pattern=1\n", []),
    ],
)
def test_options_of_a_job(change, found):
    assert data_pattern.compressible(JOB + change) == found


def prepared(precondition):
    cells = [{"block_size": "4KiB", "read_pct": 0}]
    test = {"name": "x", "cells": cells, "rounds": {"max": 1}, "precondition": precondition}
    return base.parse(PlannedTest, planned(load_plan([test]))["drives"][0]["tests"][0])


def test_a_fill_with_zeros_is_told_and_the_shipped_jobs_say_nothing():
    (said,) = data_pattern.remarks(prepared({"passes": 1, "data": "zeros"}))
    assert said.startswith("its preconditioning wrote data that compress or repeat (zero_buffers=1)")
    assert data_pattern.remarks(prepared(True)) == data_pattern.remarks(prepared(False)) == []
