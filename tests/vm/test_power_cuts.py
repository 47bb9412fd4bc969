# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts of a real kernel with NVMe drives: a BMC ends QEMU and starts it again, and the whole playbook goes on
over ssh. QEMU's NVMe ignores FUA, so a drive with a volatile cache behind it is a liar of its own; with the cache
switched off by the drive's entry, QEMU writes each block through, and it is honest.
"""

from __future__ import annotations

import pytest
from bmcs import SYSTEM, Bmc
from cut_guest import SIZE, CachedDrive, CutGuest
from guest_drives import Namespace, Nvme
from hardware import NEIGHBOUR, PLAIN
from volatile_cache import LIES

# A boot takes a minute under emulation.
CYCLE_S = 600
THROUGH, QEMU_FUA = "CACHEOFF", "QEMUFUA"
# What tears blocks of 4 KiB in its cache is allowed to: QEMU's drives state no atomicity beyond a sector.
ALLOWED = {"torn"}


def serial_of(lie):
    return lie.upper().replace("-", "")


@pytest.fixture
def cut(guest, tmp_path):
    """cut(drives, lies): the guest with these plain drives, and cached ones: {serial: lies}, which its BMC switches."""
    before, extra = list(guest.drives.values()), guest.extra
    made, cached = [], []
    (tmp_path / "bmc").mkdir()
    bmc = Bmc(tmp_path / "bmc")

    def start(plain, lies):
        cached.extend(CachedDrive(tmp_path, serial, lie) for serial, lie in lies.items())
        guest.stop()
        guest.extra = [*extra, "-uuid", SYSTEM]
        guest.start([*plain, *(drive.nvme for drive in cached)])
        made.append(CutGuest(guest, bmc, cached))
        made[0].start()
        return made[0]

    try:
        yield start
    finally:
        for one in (*made, bmc):
            one.end()
        guest.stop()
        for drive in cached:
            drive.end()
        guest.extra = extra
        guest.start(before)


def plain(serial, node=0):
    return Nvme(serial, [Namespace(SIZE)], numa_node=node)


def played(lab, cycles, mode, **variables):
    """{serial: its part of the summary} of a play that cuts the power; its exit code and output."""
    lab.timeout_s = CYCLE_S * (cycles + 1)
    asked = {"cycles": cycles, "mode": mode, "min_write_s": 2, "max_write_s": 5, "back_s": 900}
    test = {"base": "power-cut", "power_cut": asked}
    lab.vars.update(variables, ssd_plan=[test], ssd_power_cut_others="accept")
    code, output = lab.play("qualify")
    assert list(lab.results.glob("*/report/summary.json")), output
    return {drive["drive"]: drive for drive in lab.summary()["drives"]}, code, output


@pytest.mark.parametrize("cycles", [2, pytest.param(20, marks=pytest.mark.long)])
def test_the_drives_that_keep_their_promises_pass_and_each_liar_fails(lab, cut, cycles):
    lies = {serial_of(lie): lie for lie in (LIES if cycles > 2 else ["no-flush"])}
    more = {THROUGH: {"write_cache": "off"}, QEMU_FUA: {}} if cycles > 2 else {}
    machine = cut([plain(PLAIN), plain(NEIGHBOUR, node=1)], {**dict.fromkeys(more, ""), **lies})
    entries = {**dict.fromkeys([PLAIN, *lies], {}), **more}
    lab.host["ssd_drives"] = [{"serial": serial, **entry} for serial, entry in entries.items()]
    neighbour = machine.guest.drives[NEIGHBOUR].sha256()
    found, code, output = played(lab, cycles, "hard", **machine.variables())
    verdicts = {serial: drive["verdict"] for serial, drive in found.items()}
    honest = {PLAIN, THROUGH, *map(serial_of, ALLOWED & set(lies.values()))}
    assert verdicts == {serial: "pass" if serial in honest else "fail" for serial in verdicts}, output
    assert set(verdicts) == set(entries) and code != 0
    assert f"survived {cycles} power cuts" in found[PLAIN]["reasons"][0], found[PLAIN]
    assert machine.powers == ["Off", "On"] * cycles
    assert machine.guest.drives[NEIGHBOUR].sha256() == neighbour
    boots = {event["boot_id"] for event in lab.journal("job_started")}
    assert len(boots) == cycles + 1


@pytest.mark.long
def test_a_reset_by_the_kernel_leaves_the_power_on(lab, cut):
    """So a drive keeps its cache, and one that ignores flushes is not found."""
    liar = serial_of("no-flush")
    machine = cut([plain(PLAIN), plain(NEIGHBOUR, node=1)], {liar: "no-flush"})
    lab.host["ssd_drives"] = [{"serial": serial} for serial in (PLAIN, liar)]
    neighbour = machine.guest.drives[NEIGHBOUR].sha256()
    found, code, output = played(lab, 1, "warm")
    assert code == 0 and {drive["verdict"] for drive in found.values()} == {"pass"}, output
    assert "survived 1 power cut" in found[liar]["reasons"][0] and not machine.powers
    assert machine.guest.drives[NEIGHBOUR].sha256() == neighbour
    assert len({event["boot_id"] for event in lab.journal("job_started")}) == 2
