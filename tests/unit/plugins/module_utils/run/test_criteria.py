# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which criteria a drive missed, as the host sees it: the same functions judge it on the controller."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.criterion import Criterion
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results

DONE = {
    "test": "iops",
    "outcome": "steady",
    "metrics": {"write_iops": 500.0},
    "cells": [{"cell": "c", "metrics": {"read_iops": 7.0}}],
}


@pytest.mark.parametrize(
    "criterion, missed",
    [
        ({"metric": "write_iops", "min": 501}, ["iops: write_iops is 500 (min 501)"]),
        ({"metric": "write_iops", "min": 500}, []),
        ({"metric": "write_iops", "max": "499"}, ["iops: write_iops is 500 (max 499)"]),
        ({"metric": "write_iops", "min": 1, "max": 2}, ["iops: write_iops is 500 (min 1, max 2)"]),
        ({"metric": "read_iops", "cell": "c", "min": 8}, ["iops: read_iops is 7 (min 8)"]),
        ({"metric": "read_iops", "min": 8}, []),
        ({"metric": "write_iops", "min": 501, "test": "wsat"}, []),
        ({"metric": "write_iops", "min": 501, "model": "OTHER*"}, []),
        ({"metric": "write_iops", "min": 501, "model": "MT*", "test": "io*"}, ["iops: write_iops is 500 (min 501)"]),
    ],
)
def test_what_was_missed(criterion, missed):
    assert criteria.missed(criteria.usable([criterion]), "MTFD", [run_results.attempt(**DONE)]) == missed


@pytest.mark.parametrize(
    ("model", "wanted", "is_it"),
    [
        ("SIM SSD 5300   ", "SIM SSD 5300", True),
        ("  SIM  SSD 5300", "SIM SSD *", True),
        ("SIM SSD 5300", " SIM SSD 5300 ", True),
        ("SIMSSD 5300", "SIM SSD 5300", False),
        ("", "SIM*", False),
        ("", None, True),
        ("SIM", " ", True),
    ],
)
def test_blanks_that_pad_a_model_let_no_drive_out_of_its_criteria(model, wanted, is_it):
    assert criteria.is_of_model(Criterion("write_iops", min=501, model=wanted), model) == is_it


@pytest.mark.parametrize("outcome", ["not_steady", "invalid", "error", "interrupted"])
def test_a_figure_that_does_not_count_misses_nothing(outcome):
    done = run_results.attempt(**{**DONE, "outcome": outcome})
    assert criteria.missed([Criterion("write_iops", min=501)], "M", [done]) == []
