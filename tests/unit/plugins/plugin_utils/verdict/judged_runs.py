# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of a run for the judge."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge

WSAT_MIN = {"test": "wsat", "metric": "write_iops", "min": 500}
MODEL = "MTFDDAK960TDS"


def run_json(criteria=(WSAT_MIN,), tests=("wsat",), asked=(("h1", "S1"),)):
    about = {name: {"title": name.upper(), "tracked": [{"cell": "c", "metric": "write_iops"}]} for name in tests}
    return {
        "tests": about,
        "criteria": list(criteria),
        "asked": [{"host": host, "drive": drive} for host, drive in asked],
    }


def test_record(outcome="steady", iops=800.0, test="wsat", **fields):
    window = {
        "cell": "c",
        "metric": "write_iops",
        "steady": outcome == "steady",
        "reasons": [] if outcome == "steady" else ["range 31 % > 20 %"],
    }
    return {
        **{"kind": "test", "host": "h1", "drive": "S1", "test": test, "outcome": outcome, "rounds": 9, "reasons": []},
        **{
            "metrics": {"write_iops": iops, "write_bandwidth": iops * 4096, "write_p99_latency_us": 812.5},
            "steady_state": [window],
            **fields,
        },
    }


# Not a test, wherever it is imported.
test_record.__test__ = False


COMMON = {"schema_version": 1, "time": "2026-11-21T13:00:00Z", "run_id": "r1", "host": "h1"}


def drive_record(outcome="complete", **fields):
    return {
        **COMMON,
        "kind": "drive",
        "drive": "S1",
        "path": None,
        "message": "",
        "refusals": [],
        "identity": {"model": MODEL, "serial": "S1"},
        "outcome": outcome,
        **fields,
    }


def one(records, **run):
    return judge.judge(run_json(**run), records)["drives"][0]
