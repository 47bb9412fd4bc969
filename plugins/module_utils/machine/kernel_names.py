# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names by which the kernel's log speaks of a drive and of what is above it, as sysfs has them."""

from __future__ import annotations

import os
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import nvme_controllers
from . import pcie

_HCTL = re.compile(r"(\d+:(\d+):\d+):\d+")
SCSI_HOST = re.compile(r"host\d+")
_ATA = re.compile(r"ata(\d+)")
_USB = re.compile(r"\d+-[\d.]+")


class Names(t.NamedTuple):
    """own: of the drive itself, its controllers, and the slot or port that nothing else hangs on; above: of all that it
    shares with others, such as a host adapter or a switch, the nearest first.
    """

    own: frozenset[str]
    above: tuple[str, ...]


def is_usb(names: Names) -> bool:
    """Return whether a drive is behind USB."""
    return any(_USB.fullmatch(name) for name in names.own)


def of_all(host: Host) -> dict[str, Names]:
    """Return the names of every drive of the host, by kernel name; of software's devices, which have none, nothing."""
    return {
        name: of_drive(host, name)
        for name in host.listdir("/sys/block")
        if "/devices/virtual/block/" not in host.realpath("/sys/block/" + name) and not _is_path(name)
    }


def _is_path(name: str) -> bool:
    """Return whether a block device is one path of native multipath: its head stands for it."""
    return re.fullmatch(r"nvme\d+c\d+n\d+", name) is not None


def of_drive(host: Host, name: str) -> Names:
    """Return the names of one drive."""
    controllers = [host.realpath(path) for path in nvme_controllers(host, name)]
    paths = controllers or [host.realpath("/sys/block/" + name)]
    own = {name}.union(map(os.path.basename, controllers), *(_own(host, path) for path in paths))
    told = pcie.address_of(host, name)
    if told and not any(_HCTL.fullmatch(part) for path in paths for part in path.split("/")):
        own.add(told)  # a drive that is a PCI function itself, also where sysfs does not lead to it
    above = [one for path in paths for one in _above(host, path)]
    return Names(frozenset(own), tuple(dict.fromkeys(part for part in above if part not in own)))


def _own(host: Host, path: str) -> set[str]:
    """Return the drive's own parts of its path."""
    parts = path.split("/")
    if any(_HCTL.fullmatch(part) for part in parts):
        return _own_of_scsi(host, path)
    functions = [part for part in parts if pcie.ADDRESS.fullmatch(part)]
    if not functions:
        return set()
    return {functions[-1]} | _own_slot(host, path, functions)


def _own_slot(host: Host, path: str, functions: list[str]) -> set[str]:
    """Return the port right above the drive's function, where no other device hangs on it: what it says of its slot
    tells that the drive is gone.
    """
    if len(functions) < 2:
        return set()
    port = path[: path.index("/" + functions[-1])]
    below = {part.rpartition(".")[0] for part in host.listdir(port) if pcie.ADDRESS.fullmatch(part)}
    return {functions[-2]} if os.path.basename(port) == functions[-2] and len(below) == 1 else set()


def _own_of_scsi(host: Host, path: str) -> set[str]:
    own: set[str] = set()
    for part in path.split("/"):
        match = _HCTL.fullmatch(part)
        if match:
            own |= {part, "target" + match.group(1), *_own_of_ata(host, path, match.group(2))}
    # The nearest one is the bridge of an enclosure; those above are hubs.
    return own | set([part for part in path.split("/") if _USB.fullmatch(part)][-1:])


def _own_of_ata(host: Host, path: str, channel: str) -> set[str]:
    """Return the names of a port of libata; behind a port multiplier, whose port is the channel, that of its link."""
    parts = path.split("/")
    port = next((part for part in parts if _ATA.fullmatch(part)), None)
    if port is None:
        return set()
    has_multiplier = host.glob("/".join(parts[: parts.index(port) + 1]) + "/link*.*")
    return {f"{port}.{int(channel):02d}"} if has_multiplier else {port, f"{port}.00"}


def _above(host: Host, path: str) -> t.Iterator[str]:
    """Yield what is on the way to a drive, from the drive up, a host adapter's own name too."""
    for part in reversed(path.split("/")):
        yield part
        if SCSI_HOST.fullmatch(part):
            about = f"/sys/class/scsi_host/{part}/"
            driver, number = host.get(about + "proc_name"), host.get(about + "unique_id")
            if driver:
                # mpt3sas_cm0, mpi3mr0, and a driver that tells no number: aacraid.
                yield from (f"{driver}_cm{number}", f"{driver}{number}", driver)
