# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May an NVMe controller be reset? All of its namespaces lose it for a moment, so nobody may use another one. And what
is kept from being used meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..core.host import Host
from ..drive import identity as drives
from ..tools import nvme, nvme_capabilities
from ..tools.nvme import NvmeError
from . import device_users, probe, rules
from .facts import Facts, Machine
from .open_handles import Programs

# What speaks against a reset. What lies on another namespace is as it was after one.
IN_USE = (
    "root_disk",
    "mounted",
    "swap",
    "held",
    "opened",
    "unseen_users",
    "exported",
    "probe_failed",
)


class InUse(Exception):
    """The controller can't be reset: somebody else would notice. The message says who."""


@contextlib.contextmanager
def alone_on_controller(host: Host, name: str, programs: Programs | None = None) -> t.Iterator[str]:
    """Yield the node of the controller of a drive that we hold; its other namespaces are nobody's, and held, meanwhile.

    name: the drive's kernel name, whose lock keeps runs of ours off all namespaces of its serial number. programs:
    those that only look at drives (ssd_passing_programs). Raises InUse.
    """
    node, beside = _controller(host, name)
    shared = probe.machine(host, {other: programs or {} for other in beside}) if beside else Machine()
    with contextlib.ExitStack() as held:
        for other in beside:
            held.callback(os.close, _hold(host, other, shared))
        yield node


def _controller(host: Host, name: str) -> tuple[str, list[str]]:
    """Return the node of the one controller that leads to a drive, and the kernel names of its other namespaces."""
    who = drives.identity(host, name)
    if who.transport != "nvme":
        raise InUse(f"{who.path} has no NVMe controller of its own")
    try:
        found = nvme_capabilities.gather(host, who, name)
        active = set(nvme.namespace_ids(host, found.controller, False))
    except NvmeError as error:
        raise InUse(f"what else hangs on its controller is unknown: {error}") from None
    if found.controllers > 1:
        # Those that depend on this one go down with it.
        raise InUse(f"its NVM subsystem has {found.controllers} controllers, and another host may use one")
    beside = [
        other
        for other in drives.whole_drives(host)
        if other != name and found.controller in nvme.controllers(host, other)
    ]
    seen = {nvme.nvme_number(host.get(f"/sys/block/{other}/nsid")) for other in beside}
    hidden = sorted(active - seen - {found.namespace_id})
    if hidden:
        raise InUse(f"who uses its namespace {hidden[0]} can't be seen: it is no block device of this host")
    return found.controller, beside


def _hold(host: Host, other: str, shared: Machine) -> int:
    """Return a descriptor of a namespace that nobody uses, which keeps everybody out of it. Raises InUse."""
    path = drives.node(other)
    who = f"{path}, another namespace of its controller, is in use"
    facts = Facts(other, path, "drive", drives.identity(host, other), failures=list(shared.failures))
    device_users.probe_users(host, facts, shared)
    for code, rule in rules.RULES:
        for detail in rule(facts) if code in IN_USE else ():
            raise InUse(f"{who} ({code}): {detail}")
    try:
        # As a mount, swap, md and device mapper open it.
        return host.open(path, os.O_RDONLY | os.O_EXCL)
    except OSError as error:
        raise InUse(f"{who}: {error.strerror}") from None
