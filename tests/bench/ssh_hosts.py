# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers as servers over ssh, each with a campaign of its own length at the same time: what the play takes beside
the slowest host's own time.

The containers are those of tests/containers, with a loop device each. A host's own time is that of its host job, from
its start to its end; the play is qualify.yml from preflight to report. The limit: 1.2 times the slowest host's own
time, and a second for each host. Run as root from the repository's root; it needs podman:

.venv/bin/python tests/bench/ssh_hosts.py [--hosts 8] [--seconds 4]
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import time
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "playbooks/collections"), str(ROOT / "tests/containers")]

import bed as beds
from play import Fleet

RUN_ID = "overlapping"
RATIO_LIMIT, HOST_LIMIT_S = 1.2, 1.0
CELL = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 1, "rate_iops": 200}


def plan(runtime_s: int) -> list[dict[str, t.Any]]:
    """A test of at least five rounds of one cell."""
    return [
        {
            "name": f"cells-of-{runtime_s}-s",
            "title": "Short",
            "purge": {"method": "auto"},
            "cells": [{**CELL, "runtime_s": runtime_s}],
            "steady_state": {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}]},
            "rounds": {"max": 8},
        }
    ]


def own_s(status: t.Mapping[str, t.Any]) -> float:
    """How long a host job worked. status: its status.json."""
    started, ended = (
        datetime.datetime.strptime(status[key], "%Y-%m-%dT%H:%M:%S.%fZ") for key in ("started", "updated")
    )
    return (ended - started).total_seconds()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=4, help="a cell on host 1; on each next 1 s more")
    options = parser.parse_args()
    bed = beds.Bed("overlap")
    with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as folder:
        try:
            bed.up(servers=options.hosts, drives=1)
            fleet = Fleet(bed, Path(folder), RUN_ID, [])
            for number, server in enumerate(bed.servers):
                fleet.set_host(server.name, ssd_plan=plan(options.seconds + number))
            inventory = json.loads(fleet.inventory.read_text())
            shared = inventory["all"]["children"]["ssd_servers"]["vars"]
            shared["ssd_validity_limits"] = {"in_flight_min": 0, "idle_gap_s": 60}
            del shared["ssd_plan"]
            fleet.inventory.write_text(json.dumps(inventory))
            began = time.monotonic()
            code, output = fleet.play()
            wall_s = time.monotonic() - began
            if code:
                sys.exit(f"exit code {code}:\n{output}")
            verdicts = fleet.verdicts()
            own = sorted(own_s(fleet.status(server)) for server in bed.servers)
        finally:
            bed.down()
    if verdicts != {server: ["pass"] for server in verdicts} or len(verdicts) != options.hosts:
        sys.exit(f"not all drives passed: {verdicts}")
    limit_s = RATIO_LIMIT * own[-1] + HOST_LIMIT_S * options.hosts
    print(
        f"{options.hosts} hosts: {wall_s:.0f} s of wall; the hosts' own {own[0]:.0f} to {own[-1]:.0f} s;"
        f" limit {limit_s:.0f} s"
    )
    return 0 if wall_s <= limit_s else 1


if __name__ == "__main__":
    sys.exit(main())
