# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fleet costs in time over real ssh: containers that qualify a loop device each, all at the same time.

`qualify.yml` runs whole, from preflight to report, with a campaign of one to one and a half minutes on each host.
Prints what each host's own job took, by its status, and fails where the play takes longer than 1.2 times the slowest
one and a second for each host. docs/fleet-size.md has the figures. Run as root from the repository's root:

.venv/bin/python tests/bench/ssh_hosts.py [--hosts 8] [--seconds 10]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import sys
import tempfile
import time
import typing as t
from pathlib import Path

import busy_machine
import fleet

sys.path.insert(0, str(fleet.ROOT / "tests/containers"))

from bed import Bed, why_not
from play import Fleet, kill_group

SHARE_LIMIT, HOST_LIMIT_S = 1.2, 1.0
PLAY_TIMEOUT_S = 1800
RUN_ID = "bench-ssh-hosts"
# A machine that is all hosts at once is slow to answer, and its loop devices are quicker than fio asks.
PATIENT = {
    "ssd_give_up_s": 120,
    "ssd_validity_limits": {"in_flight_min": 0, "idle_gap_s": 60, **busy_machine.OTHERS_LOAD},
}


def campaign(seconds: int) -> dict[str, t.Any]:
    """A test of five rounds or a few more, at a rate that the hosts reach side by side. seconds: of a round."""
    cell = {"access": "random", "block_size": "4KiB", "read_pct": 0, "queue_depth": 4, "rate_iops": 200}
    tracked = {"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}
    return {
        "name": f"rounds-of-{seconds}-s",
        "purge": {"method": "deallocate"},
        "precondition": {"passes": 1},
        "cells": [{**cell, "runtime_s": seconds}],
        "steady_state": {
            "tracked": [tracked],
            "min_capacity_multiple": 0,
            "confirm_windows": 0,
            **busy_machine.ANY_RATES,
        },
        "rounds": {"max": 8},
    }


@contextlib.contextmanager
def servers(count: int) -> t.Iterator[Bed]:
    """A bed that is taken away however this ends."""
    fleet.clean_up_on_sigterm()
    made = Bed("bench")
    try:
        yield made.up(servers=count, drives=1)
    finally:
        made.down()


def qualify(run: Fleet) -> float:
    """One play: its wall time in seconds. Exits where a drive did not pass."""
    inventory = json.loads(run.inventory.read_text())
    shared = inventory["all"]["children"]["ssd_servers"]["vars"]
    shared.update(PATIENT)
    del shared["ssd_plan"]  # each host has its own
    run.inventory.write_text(json.dumps(inventory))
    began = time.monotonic()
    process = run.start()
    try:
        code = process.wait(PLAY_TIMEOUT_S)
        wall_s = time.monotonic() - began
    finally:
        kill_group(process)
    if code:
        sys.exit(f"exit code {code}:\n{process.log.read_text()}")
    return wall_s


def job_times(status: t.Mapping[str, t.Any]) -> tuple[float, float]:
    """When a host's own job began and ended, in seconds of the clock, by its finished status."""
    began, ended = (
        datetime.datetime.fromisoformat(status[key].replace("Z", "+00:00")).timestamp()
        for key in ("started", "updated")
    )
    return began, ended


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument(
        "--seconds", type=int, default=10, help="of a round on the first host; on each next one 1 s more"
    )
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    if why_not():
        sys.exit(why_not())
    with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as folder, servers(options.hosts) as bed:
        run = Fleet(bed, Path(folder), RUN_ID, [])
        for number, server in enumerate(bed.servers):
            run.set_host(server.name, ssd_plan=[campaign(options.seconds + number)])
        clock = time.time()
        wall_s = qualify(run)
        times = {server.name: job_times(run.status(server)) for server in bed.servers}
    for name, (began, ended) in times.items():
        print(f"{name}: {ended - began:.1f} s, from {began - clock:.1f} s to {ended - clock:.1f} s of the play")
    slowest = max(ended - began for began, ended in times.values())
    limit = SHARE_LIMIT * slowest + HOST_LIMIT_S * options.hosts
    print(f"{options.hosts} hosts: slowest {slowest:.1f} s, wall {wall_s:.1f} s, limit {limit:.1f} s")
    return busy_machine.exit_code(options, wall_s > limit)


if __name__ == "__main__":
    sys.exit(main())
