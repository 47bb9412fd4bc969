# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site whose server has emulated Micron and Fusion-io drives."""

from __future__ import annotations

import json
from pathlib import Path

import emulator

REPO = Path(__file__).resolve().parents[2]


def furnished(site, tmp_path):
    """The site with two P420m, a P320h and two cards; vendor(*args) is vendor.yml, seen() the emulators' state."""
    machine = str(tmp_path / "machine.json")
    drives = {
        "rssdm": [
            emulator.p420m(0, "OTHER"),
            emulator.p420m(1, "S1"),
            emulator.p420m(2, "S2", model="Micron P320h-MTFDGAL175SAH"),
        ],
        "cards": [emulator.card(0, "C0"), emulator.card(1, "C1")],
    }
    environment = emulator.start(machine, bugreport_dir=str(tmp_path), **drives)
    # Where set-up unpacks community.general, whose modules speak to the BMC.
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(REPO / ".ansible" / "collections")
    site.hosts["server"] = {}

    def play(*args, prefix=(), **variables):
        site.vars.update(variables)
        return site.play("vendor", *args, env=environment, prefix=prefix)

    def seen():
        with open(machine, encoding="utf-8") as file:
            return json.load(file)

    site.vendor, site.seen, site.machine, site.environment = play, seen, machine, environment
    return site


def pending(lab):
    """{serial: the settings that wait for a power cycle}."""
    return {drive["serial"]: drive.get("pending", {}) for drive in lab.seen()["rssdm"]["drives"]}
