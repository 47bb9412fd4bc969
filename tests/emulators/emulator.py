# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the emulators of the vendors' tools share: their state, and a power cycle.

They stand in for tools that come with drives that are no longer sold. Each says in its head which document it follows.
The state is one JSON file, the one that the environment variable SSDLAB_EMULATED_DRIVES names, else drives.json beside
this file: {"rssdm": {...}, "iomemory": {...}}. A card has no block device but with "nullb" (nullb.py). Nothing of them
is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys

VARIABLE = "SSDLAB_EMULATED_DRIVES"
HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def state(path=None):
    """The emulated drives, kept again when the block ends without an error; one tool at a time."""
    path = path or os.environ.get(VARIABLE) or os.path.join(HERE, "drives.json")
    os.stat(path)  # no lock is left where there are no drives
    with open(path + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(path, encoding="utf-8") as file:
            drives = json.load(file)
        before = json.dumps(drives)
        yield drives
        if json.dumps(drives) == before:
            return  # nothing but a look: the file is as old as the state in it
        aside = path + ".new"
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(drives, file, indent=1)
        os.replace(aside, path)


def start(path, rssdm=(), cards=(), **more):
    """Write the state of a machine with these drives; returns the environment that the emulators need."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"rssdm": {"drives": list(rssdm)}, "iomemory": dict({"cards": list(cards)}, **more)}, file)
    # This Python is the "python" of the emulators' first line (ansible-test allows no other there).
    return {
        VARIABLE: str(path),
        "PATH": os.pathsep.join([HERE, os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
    }


def power_cycle(path):
    """What waits for a power cycle takes effect."""
    with state(path) as drives:
        for drive in drives["rssdm"]["drives"]:
            drive.update(drive.pop("pending", {}))


def p420m(number, serial, **more):
    """A P420m HHHL as shipped (TN-FD-15: balanced coalescing, power limiting off, write cache on)."""
    facts = {
        "id": number,
        "device": "rssd" + "abcdefgh"[number],
        "model": "Micron P420m-MTFDGAR700MAX",
        "serial": serial,
        "firmware": "B2120508",
        "size": "700.15GB",
        "pci": f"0{number + 4}:00.0",
        "power_limiting": 0,
        "interrupt_coalescing": 0xD200F,
        "write_cache": 1,
        "erases": 0,
    }
    return dict(facts, **more)


def card(number, serial, **more):
    """An ioDrive2 of 1.205 TB, attached, formatted to 512-byte sectors."""
    facts = {
        "number": number,
        "vsu": "fio" + "abcdefgh"[number],
        "serial": serial,
        "adapter": "Fusion-io ioDrive2 1.205TB",
        "product": "F00-001-1T20-CS-0001",
        "pci": f"0{number + 4}:00.0",
        "attached": True,
        "factory_bytes": 1205000000000,
        "size_bytes": 1205000000000,
        "sector_bytes": 512,
        "lanes": 4,
        "beacon": False,
        "busy": False,
        "formats": 0,
    }
    return dict(facts, **more)


def blank(media):
    """Erase the file or device that stands for the drive's media, if there is one."""
    if not media:
        return
    with open(media, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        while size > 0:
            size -= file.write(bytes(min(size, 1 << 20)))


def fail(text, code=1):
    """End as a tool that refuses does."""
    sys.stderr.write(text + "\n")
    raise SystemExit(code)
