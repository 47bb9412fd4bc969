# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device's interrupts: which there are, and on which CPUs each may be delivered.

A managed interrupt (one for each queue of an NVMe drive) is placed by the kernel alone: it refuses a new affinity with
EIO, newer kernels with EPERM. That is no failure: it is delivered where the command was issued, and its effective
affinity is what counts.
"""

from __future__ import annotations

import errno
import re
import typing as t

from ..core.host import Host
from ..machine import cpus, pcie

MANAGED_ERRNOS = (errno.EIO, errno.EPERM)


def path(number: int) -> str:
    """Return the file that holds an interrupt's affinity."""
    return f"/proc/irq/{number}/smp_affinity_list"


def number_of(affinity_path: str) -> int:
    """Return the interrupt that an affinity file belongs to."""
    return int(affinity_path.split("/")[-2])


def of_function(host: Host, address: str | None) -> list[int]:
    """Return the interrupts of a PCI function: its MSI and MSI-X vectors, else its one line; empty where it
    has none.
    """
    if address is None:
        return []
    base = f"{pcie.DEVICES}/{address}/"
    vectors = sorted(int(name) for name in host.listdir(base + "msi_irqs") if name.isdigit())
    line = host.get(base + "irq") or "0"
    return vectors or [int(line)] * (line.isdigit() and line != "0")


def allowed(host: Host, number: int) -> str | None:
    """Return the CPUs that an interrupt may be delivered on, as a list; None where there is no such interrupt."""
    shown = host.get(path(number))
    return None if shown is None else cpus.canonical(shown)


def effective(host: Host, number: int) -> str | None:
    """Return the CPUs that it is delivered on now; None where the kernel does not tell, or the interrupt is
    not in use.
    """
    return host.get(f"/proc/irq/{number}/effective_affinity_list")


def change(host: Host, number: int, wanted: str) -> tuple[str, str]:
    """Allow an interrupt on these CPUs only: (outcome, message); the outcome is `managed`, `failed`, or empty when the
    kernel took it.
    """
    try:
        host.write(path(number), wanted)
    except OSError as error:
        if error.errno in MANAGED_ERRNOS:
            return "managed", "the kernel places this interrupt itself; it is delivered on CPU {0}".format(
                effective(host, number) or "?"
            )
        return "failed", f"{path(number)}: {error.strerror}{_hint(host, wanted, error.errno)}"
    return "", ""


def _hint(host: Host, wanted: str, code: int | None) -> str:
    if code == errno.ENOSPC:
        return f": no interrupt vector is free on the CPUs {wanted}"
    if code != errno.EINVAL:
        return ""
    listed = cpus.parse(wanted)
    # Some controllers of interrupts move none of them.
    none_is_on = len(cpus.parse(cpus.missing(listed, cpus.online(host)) or "")) == len(set(listed))
    return f": none of the CPUs {wanted} is on" if none_is_on else ": it can't be moved"


def carries_io(host: Host, number: int) -> bool:
    """Return whether commands of a measurement may end with an interrupt: any but that of an NVMe controller's admin
    queue, nvme<N>q0 in /proc/interrupts.
    """
    lines = (host.get("/proc/interrupts") or "").splitlines()
    words = [line.split() for line in lines if line.split(":")[0].strip() == str(number)]
    return not any(re.fullmatch(r"nvme\d+q0", word) for line in words for word in line)


def check(host: Host, wanted: str) -> str:
    """Return a CPU list in the kernel's spelling. Raises ValueError for a wrong list, an empty one, and a CPU
    that is not on.
    """
    listed = cpus.parse(wanted)
    if not listed:
        raise ValueError("the list of CPUs is empty")
    online = cpus.online(host)
    absent = cpus.missing(listed, online)
    if absent:
        raise ValueError(
            f"CPU {absent} does not exist or is offline; this host has the CPUs {cpus.format_cpu_list(online)}"
        )
    return cpus.format_cpu_list(listed)


def named(host: Host, device: str | None, address: str | None, numbers: t.Sequence[int] | None) -> list[int]:
    """Return the interrupts of a block device (kernel name or path), of a PCI function, or these. Raises ValueError
    where there are none.
    """
    if numbers is not None:
        return list(numbers)
    if device is not None:
        name = host.realpath(device if device.startswith("/") else "/dev/" + device)[len("/dev/") :].replace("/", "!")
        if not host.exists("/sys/block/" + name):
            raise ValueError(f"there is no block device {device} (a whole one, not a partition)")
        address = pcie.address_of(host, name)
        if address is None:
            raise ValueError(f"{device} is attached to no PCI function, or to several")
    if not host.exists(f"{pcie.DEVICES}/{address}"):
        raise ValueError(f"there is no PCI function {address}")
    found = of_function(host, address)
    if not found:
        raise ValueError(f"the PCI function {address} has no interrupts in use")
    return found


class Pinned(t.NamedTuple):
    """An interrupt, and the CPUs that it was allowed on, was to be allowed on, and is delivered on.

    outcome: changed, unchanged, managed, failed, not_applicable (no such interrupt).
    """

    irq: int
    before: str | None
    wanted: str
    effective: str | None
    outcome: str = "unchanged"
    message: str = ""


def pin(host: Host, numbers: t.Iterable[int], wanted: str, dry: bool = False) -> list[Pinned]:
    """Allow these interrupts on the CPUs `wanted` (as `check` returns it). `dry`: say what would be tried, change
    nothing.
    """
    return [_pin_one(host, number, wanted, dry) for number in numbers]


def _pin_one(host: Host, number: int, wanted: str, dry: bool) -> Pinned:
    before = allowed(host, number)
    item = Pinned(number, before, wanted, effective(host, number))
    if before is None:
        return item._replace(outcome="not_applicable", message=f"there is no interrupt {number}")
    if before == wanted:
        return item
    if dry:
        return item._replace(outcome="changed")
    outcome, message = change(host, number, wanted)
    now = allowed(host, number)
    if not outcome and now != wanted:
        outcome, message = "failed", f"interrupt {number} is allowed on {now} after writing {wanted}"
    return item._replace(effective=effective(host, number), outcome=outcome or "changed", message=message)
