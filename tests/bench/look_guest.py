# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a look takes at the NVMe drives of an emulated guest, small and large, alone and all at once.

python tests/bench/look_guest.py [--seconds 10]
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import sys
import tarfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(REPO / "playbooks" / "collections"),
    str(REPO / "scripts"),
    str(REPO / "tests"),
    str(REPO / "tests" / "vm"),
    str(REPO / "tests" / "integration"),
]

from guest import Guest
from guest_drives import Namespace, Nvme

MIB, GIB = 1 << 20, 1 << 30
DRIVES = {"SSDQ64M": 64 * MIB, "SSDQ4G": 4 * GIB, "SSDQ512G": 512 * GIB}
WHERE = "/var/tmp/look/ansible_collections/ssdlab/fleet/plugins"
PROGRAM = """
import json, sys, time
sys.path.insert(0, "/var/tmp/look")
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
began = time.monotonic()
seen = inspect(Host(), [parse({"serial": serial}) for serial in sys.argv[2:]], terms=Terms(float(sys.argv[1])))
print(json.dumps([time.monotonic() - began, [[one["refusals"], one["look"]] for one in seen]]))
"""


def install(guest: Guest) -> None:
    """What runs on hosts, in the guest."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(
            REPO / "plugins" / "module_utils",
            "module_utils",
            filter=lambda entry: None if "__pycache__" in entry.name else entry,
        )
    guest.run(f"mkdir -p {WHERE} && base64 -d | tar -xz -C {WHERE}", stdin=base64.b64encode(packed.getvalue()).decode())


def looked_at(guest: Guest, seconds: float, *serials: str) -> None:
    """Print a line for each drive of one look."""
    took_s, seen = json.loads(
        guest.run(f"python3 - {seconds} {' '.join(serials)}", stdin=PROGRAM, timeout_s=300).stdout
    )
    for serial, (refusals, look) in zip(serials, seen):
        seconds, blocks, whole, allocated = (
            look and look[key] for key in ("seconds", "blocks", "whole", "allocated_bytes")
        )
        told = f"{seconds} s | {blocks} | {whole} | {allocated} | {took_s:.1f} s"
        print(f"| {serial} | {len(serials)} | {told} |", refusals or "", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    with Guest([Nvme(serial, [Namespace(size_bytes=size)]) for serial, size in DRIVES.items()]) as guest:
        install(guest)
        print(
            (
                "| drive | at once | look | blocks | whole | said to be used | whole check "
                "|\n|---|---|---|---|---|---|---|"
            ),
            flush=True,
        )
        for serial in DRIVES:
            looked_at(guest, given.seconds, serial)
        looked_at(guest, given.seconds, *DRIVES)


if __name__ == "__main__":
    main()
