# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet that preflight decides over."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import FACTS


@pytest.fixture
def fleet(tmp_path):
    """A factory of views with good answers, unless told otherwise."""

    def make(name="h1", drives=("S1",), refusals=(), runs=(), **variables):
        unreachable, model = variables.pop("unreachable", ""), variables.pop("model", None)
        given = [drive if isinstance(drive, dict) else {"serial": drive} for drive in drives]
        drives = [drive["serial"] for drive in given]
        asked = {
            "ssd_drives": given,
            "ssd_refused": "leave_out",
            "ssd_plan": "demo",
            "ssd_step": "qualify",
            "ssd_mode": "destructive",
            "ssd_run_name": "qualify",
            "ssd_run_id": "",
            "ssd_results_dir": str(tmp_path / "results"),
            "ssd_criteria": [{"metric": "write_iops", "min": 5}],
            "ssd_tests_dirs": [],
            "ssd_parallel_drives": 1,
            "ssd_assumed_write_mib_s": 500,
            "ssd_fio_min_version": "3.28",
            **variables,
        }
        if unreachable:
            return host_answers.of(name, asked, unreachable=unreachable)
        entries = [
            {
                "selector": selector,
                "drive": serial,
                "path": "/dev/x" + serial,
                "identity": {"serial": serial, "model": model, "size_bytes": 64 << 20, "logical_block_size_bytes": 512},
                "eligible": not refusals,
                "refusals": [{"code": code, "message": "no"} for code in refusals],
            }
            for serial, selector in zip(drives, given)
        ]
        return host_answers.of(name, asked, list(runs), FACTS, entries)

    return make
