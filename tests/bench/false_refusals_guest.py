# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often blank NVMe drives of an emulated guest are refused while its own smartd, multipathd and udev go on opening
them.

    python tests/bench/false_refusals_guest.py [--looks 200]

The daemons are those of Debian's packages (tests/vm/packages.txt), as systemd starts them. They would open a drive once
in minutes or hours; here they are asked to all the time, so that looks meet them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import sys
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import look_guest  # puts the guest's modules into the path
from guest import Guest
from guest_drives import Nvme

SERIALS = [f"SSDQ{number:02}" for number in range(10)]
# smartd runs on no virtual machine by itself, and is asked to look at all its drives at once by a signal. multipathd
# and udev open a drive at an event of it.
START = """
install -d /etc/systemd/system/smartmontools.service.d
printf '[Unit]\\nConditionVirtualization=\\n' > /etc/systemd/system/smartmontools.service.d/guest.conf
systemctl unmask --quiet multipathd.service multipathd.socket smartmontools.service
systemctl daemon-reload
systemctl start multipathd.service smartmontools.service
systemd-run --quiet --unit=ask-smartd sh -c 'while :; do systemctl kill --signal=USR1 smartmontools; sleep 0.5; done'
systemd-run --quiet --unit=ask-udev sh -c '
    while :; do udevadm trigger --action=change --subsystem-match=block --property-match=DEVTYPE=disk; sleep 5; done'
"""
STOP = """
systemctl stop ask-smartd ask-udev smartmontools multipathd.service multipathd.socket
rm -r /etc/systemd/system/smartmontools.service.d
systemctl mask --quiet multipathd.service multipathd.socket smartmontools.service
systemctl daemon-reload
udevadm settle
"""
# Many looks at users in one process: the rest of a check (tools, the search of /etc) meets no daemon, and takes a
# minute on a busy machine's emulated guest. smartd opens controllers, udev and multipathd namespaces; a look at users
# opens neither.
PROGRAM = """
import contextlib, ctypes, json, os, struct, sys
sys.path.insert(0, "/var/tmp/look")
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import device_users, facts, rules
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity
host, rounds, serials = Host(), int(sys.argv[1]), sys.argv[2:]
names = [name for serial in serials for name in identity.find(host, parse({"serial": serial}))]
libc, opened = ctypes.CDLL(None), {"controller": 0, "namespace": 0}
handle, kinds = libc.inotify_init1(os.O_NONBLOCK), {}
for name in names:
    for kind, node in (("namespace", name), ("controller", name[: name.rindex("n")])):
        kinds[libc.inotify_add_watch(handle, b"/dev/" + node.encode(), 0x20)] = kind  # IN_OPEN
for _round in range(rounds):
    shared = facts.Machine()
    device_users.read_machine(host, shared, {name: {} for name in names}, quick=False)
    with contextlib.suppress(BlockingIOError):
        events = os.read(handle, 1 << 20)
        for place in range(0, len(events), 16):  # no event has a name: what is watched is no folder
            opened[kinds[struct.unpack_from("=i", events, place)[0]]] += 1
    for name in names:
        seen = facts.Facts(name, identity.node(name), "drive", identity.identity(host, name))
        device_users.probe_users(host, seen, shared)
        print(json.dumps([base.to_json(rules.refusals(seen)), seen.passing]), flush=True)
print(json.dumps(opened))
"""


@contextlib.contextmanager
def live_daemons(guest: Guest) -> t.Iterator[None]:
    """smartd, multipathd and udev, which open all drives over and over."""
    try:
        guest.run(START, timeout_s=400)
        yield
    finally:
        guest.run(STOP, check=False, timeout_s=400)


class Looked(t.NamedTuple):
    """refusals: of each look at the users of a drive; met: looks that found a daemon at its drive, by its name; opened:
    how often a controller or a namespace was opened meanwhile.
    """

    refusals: list[list[dict]]
    met: collections.Counter[str]
    opened: collections.Counter[str]


def looks(guest: Guest, serials: t.Sequence[str], rounds: int) -> Looked:
    """So many looks at the users of each of these drives."""
    done = guest.run(f"python3 - {rounds} {' '.join(serials)}", stdin=PROGRAM, timeout_s=900)
    *seen, opened = map(json.loads, done.stdout.splitlines())
    met = collections.Counter(name for _refusals, passing in seen for name in {who.split(" ")[0] for who in passing})
    return Looked([refusals for refusals, _passing in seen], met, collections.Counter(opened))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--looks", type=int, default=200)
    given = parser.parse_args()
    seen = Looked([], collections.Counter(), collections.Counter())
    with Guest([Nvme(serial) for serial in SERIALS]) as guest:
        look_guest.install(guest)
        with live_daemons(guest):
            while len(seen.refusals) < given.looks:
                more = looks(guest, SERIALS, 2)
                seen = Looked(seen.refusals + more.refusals, seen.met + more.met, seen.opened + more.opened)
                print(f"{len(seen.refusals)} looks", file=sys.stderr, flush=True)
    refused = [refusals for refusals in seen.refusals if refusals]
    print("| looks | refused | controllers opened | namespaces opened | met by a look |\n|---|---|---|---|---|")
    met = ", ".join(f"{name} {times}" for name, times in seen.met.items()) or "none"
    opened = f"{seen.opened['controller']} | {seen.opened['namespace']}"
    print(f"| {len(seen.refusals)} | {len(refused)} | {opened} | {met} |", *refused, sep="\n")


if __name__ == "__main__":
    main()
