# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server whose power a BMC cuts: an sshd and all that it starts in a PID namespace of its own, which the kernel kills
at once with its first process; with a boot id of each boot, DMI of its own, and simulated drives that lose what is in
their volatile caches.

Its kernel, files and loop devices are this machine's: what the kernel itself has not written yet is not lost, which a
drive that is opened with O_DIRECT has nothing of.
"""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
import uuid

import simulated_ssd as simulator
from bmcs import PASSWORD, SYSTEM, USER
from sshd import answers, configured
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.locks import LOCK_DIR

BOOT_S = 4
NAMESPACE = "unshare --mount --pid --fork --kill-child=SIGKILL --mount-proc".split()


class CutMachine(threading.Thread):
    """The server. It follows the BMC (bmcs.py), if it has one; drives: the simulator's folder and names."""

    def __init__(self, folder, system=SYSTEM):
        super().__init__(daemon=True)
        self.folder, self.drives, self.bmc = folder, [], None
        self.powers, self.ended, self.process = [], threading.Event(), None
        # What becomes of an order to come on; drives that do not survive the next cut, as of self.drives.
        self.may_boot, self.doomed = True, []
        (folder / "dmi/dmi/id").mkdir(parents=True)
        (folder / "dmi/dmi/id/product_uuid").write_text(f"{system}\n")
        self.boot_id = folder / "boot_id"
        # A reset by the kernel would be this machine's.
        self.sysrq = folder / "sysrq"
        (folder / "sshd").mkdir()
        self.command, self.variables = configured(folder / "sshd")

    def boot(self):
        """Come on, in a boot of its own."""
        self.boot_id.write_text(f"{uuid.uuid4()}\n")
        self.sysrq.write_text("")
        work = "mktemp -d /dev/shm/ssdlab-test-overlay-XXXXXX"
        steps = [
            f"test ! -e /proc/sysrq-trigger || mount --bind {shlex.quote(str(self.sysrq))} /proc/sysrq-trigger",
            f"mount --bind {shlex.quote(str(self.boot_id))} {BOOT_ID}",
            f"at=$({work}); mount -t tmpfs tmpfs $at; mkdir $at/up $at/work",
            f"cp -r {shlex.quote(str(self.folder / 'dmi/dmi'))} $at/up/",
            "mount -t overlay overlay -o lowerdir=/sys/class,upperdir=$at/up,workdir=$at/work /sys/class",
            "umount -l $at; rmdir $at",
            # Of this boot, and of no other machine.
            f"mkdir -p {LOCK_DIR}; mount -t tmpfs tmpfs {LOCK_DIR}",
            f"exec {shlex.join(self.command)}",
        ]
        with open(self.folder / "sshd/log", "a") as log:
            self.process = subprocess.Popen(
                [*NAMESPACE, "sh", "-ec", "; ".join(steps)], stderr=log, start_new_session=True
            )
        wait_until(lambda: answers(self.variables), "sshd", process=self.process)

    def reset(self):
        """All of its processes at once; its drives have their power."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def lose_power(self):
        """All of its processes at once, and what its drives had not made durable."""
        self.reset()
        for directory, name in self.drives:
            simulator.cut_power(directory, name)
        while self.doomed:
            simulator.destroy(*self.doomed.pop())

    def run(self):
        """Follow the BMC."""
        while not self.ended.wait(0.2):
            power = self.bmc.power()
            if power is None or power == (self.powers or ["On"])[-1]:
                continue
            self.powers.append(power)
            if power == "Off":
                self.lose_power()
            elif self.may_boot:
                # Whoever asks meanwhile gets no answer.
                time.sleep(BOOT_S)
                self.boot()

    def end(self):
        """Switch it off for good."""
        self.ended.set()
        if self.is_alive():
            self.join()
        self.reset()

    def bmc_variables(self):
        """What the inventory has of the BMC."""
        return {
            "vendor_bmc_address": f"localhost:{self.bmc.port}",
            "vendor_bmc_user": USER,
            "vendor_bmc_password": PASSWORD,
            "vendor_bmc_ca_path": str(self.bmc.folder / "cert.pem"),
            "vendor_power_cycle_off_s": 1,
        }
