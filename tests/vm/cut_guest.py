# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that a BMC switches: off is the end of QEMU, and of what the volatile caches of its drives hold. Such a drive
is a simulated SSD (scripts/simulator) behind QEMU's NVMe; a drive on a plain image forgets nothing, as this machine's
page cache keeps what QEMU wrote.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import simulated_ssd as simulator
from bmcs import PASSWORD, USER, Bmc
from guest import Guest
from guest_drives import Namespace, Nvme
from image import MIB
from waiting import wait_until

# All of it is read back after each cut, under emulation.
SIZE = 16 * MIB
FAST = {"fresh_iops": 1e5, "steady_iops": 1e5, "read_iops": 1e5, "write_bandwidth": 1e9, "read_bandwidth": 1e9}


class CachedDrive:
    """A drive with a volatile cache, of which it tells lies (volatile_cache.LIES), served to QEMU until `end`."""

    def __init__(self, folder: Path, serial: str, lies: str = "") -> None:
        self._folder, self._serial = folder, serial
        socket, power_file = folder / f"{serial}.socket", simulator.power_file(folder, serial)
        plugin = simulator.model_plugin(SIZE, **FAST, cache_bytes=SIZE, power_file=power_file, power_lies=lies)
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "nbdkit", "--foreground", "--unix", str(socket), *plugin],
            env={**os.environ, "PYTHONPATH": str(simulator.HERE), "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        wait_until(socket.exists, "nbdkit", process=self._process)
        backend = {"driver": "nbd", "server": {"type": "unix", "path": str(socket)}}
        self.nvme = Nvme(serial, [Namespace(SIZE, backend=backend)])

    def lose_power(self) -> None:
        """Forget what is not durable."""
        simulator.cut_power(self._folder, self._serial)

    def end(self) -> None:
        """Take it away."""
        self._process.kill()
        self._process.wait()


class CutGuest(threading.Thread):
    """The guest as its BMC switches it. powers: what was ordered."""

    def __init__(self, guest: Guest, bmc: Bmc, cached: list[CachedDrive]) -> None:
        super().__init__(daemon=True)
        self.guest, self.bmc, self.cached = guest, bmc, cached
        self.powers: list[str] = []
        self._ended = threading.Event()

    def run(self) -> None:
        """Follow the BMC."""
        while not self._ended.wait(0.5):
            power = self.bmc.power()
            if power is None or power == (self.powers or ["On"])[-1]:
                continue
            self.powers.append(power)
            if power == "Off":
                self.guest.cut_power()
                for drive in self.cached:
                    drive.lose_power()
            else:
                self.guest.start()

    def end(self) -> None:
        """Follow it no more."""
        self._ended.set()
        if self.is_alive():
            self.join()

    def variables(self) -> dict[str, object]:
        """What the inventory has of the BMC."""
        return {
            "vendor_bmc_address": f"localhost:{self.bmc.port}",
            "vendor_bmc_user": USER,
            "vendor_bmc_password": PASSWORD,
            "vendor_bmc_ca_path": str(self.bmc.folder / "cert.pem"),
            "vendor_power_cycle_off_s": 1,
        }
