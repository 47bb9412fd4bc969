# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an NVMe namespace and its controller offer for a purge, and who else would be hit: asked of the controller that
means this very namespace.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..records.purge import NvmeDrive
from . import nvme
from .nvme import NvmeError

# Controller Multi-Path I/O and Namespace Sharing Capabilities (CMIC): the subsystem may have two or more controllers.
_MANY_CONTROLLERS = 0x2


def gather(host: Host, identity: Identity, name: str) -> NvmeDrive:
    """Return the capabilities of the namespace with this kernel name (docs/internals/purge.md). Reads only.

    identity: of the block device, which the controller has to agree with. Raises NvmeError.
    """
    block = "/sys/block/" + name
    namespace_id = nvme.number({"nsid": host.get(block + "/nsid")}, "nsid", 0xFFFFFFFE)
    names = {
        key: nvme.hexadecimal(host.get(f"{block}/{file}"))
        for key, file in (("eui64", "eui"), ("nguid", "nguid"), ("uuid", "uuid"))
    }
    node, drive, namespace = _controller(host, identity, nvme.controllers(host, name), namespace_id, names)
    everyone = nvme.siblings(host, node)
    ids = {number for each in everyone for number in nvme.namespace_ids(host, each, drive.manages_namespaces)}
    count = max(len(everyone), _controller_count(host, node, drive))
    return NvmeDrive(
        path=str(identity.path),
        size_bytes=namespace.size_bytes,
        controller=node,
        serial=drive.serial,
        namespace_id=namespace_id,
        **names,
        namespaces=sorted(ids | {namespace_id}),
        controllers=count,
        shows_all=drive.manages_namespaces,
        can_format=drive.can_format,
        fna=drive.fna,
        sanicap=drive.sanicap,
        lba_format=namespace.lba_format,
        lba_formats=namespace.lba_formats,
        flbas=namespace.flbas,
        dps=namespace.dps,
        format_left_pct=namespace.format_left_pct,
        deallocated_read=namespace.deallocated_read,
        has_self_tests=drive.has_self_tests,
        can_rest=drive.can_rest,
    )


def _controller(
    host: Host, identity: Identity, nodes: t.Sequence[str], namespace_id: int, names: t.Mapping[str, str]
) -> tuple[str, nvme.Controller, nvme.Namespace]:
    """Return the first controller that means this namespace by that id: of a subsystem's, not all need have it. Raises
    NvmeError.
    """
    problem = NvmeError(f"no controller in sysfs leads to {identity.path}")
    for node in nodes:
        try:
            drive, namespace = nvme.controller(host, node), nvme.namespace(host, node, namespace_id)
            _check_same(host, identity, (drive, namespace), (node, namespace_id), names)
            return node, drive, namespace
        except NvmeError as error:
            problem = error
    raise problem


def _check_same(
    host: Host,
    identity: Identity,
    answers: tuple[nvme.Controller, nvme.Namespace],
    asked: tuple[str, int],
    names: t.Mapping[str, str],
) -> None:
    """Whether the controller means the same namespace as the block device. Raises NvmeError."""
    drive, namespace = answers
    pairs = [
        ("serial", identity.serial, drive.serial),
        ("size_bytes", identity.size_bytes, namespace.size_bytes),
    ]
    pairs += [(key, names[key], getattr(namespace, key)) for key in ("eui64", "nguid") if names[key]]
    for key, wanted, got in pairs:
        if wanted != got:
            raise NvmeError(
                "{0}, namespace {1} is not {2}: its {3} is {4}, not {5}".format(*asked, identity.path, key, got, wanted)
            )
    if names["uuid"] and names["uuid"] not in nvme.descriptors(host, *asked):
        raise NvmeError(
            "{0}, namespace {1} is not {2}: it does not report the uuid {3}".format(
                *asked, identity.path, names["uuid"]
            )
        )


def _controller_count(host: Host, node: str, drive: nvme.Controller) -> int:
    """Return the controllers of the subsystem, other hosts' too. A drive that says it is alone there need not know the
    list. Raises NvmeError.
    """
    many = bool(drive.cmic & _MANY_CONTROLLERS)
    if not (many or drive.manages_namespaces):
        return 1
    try:
        return len(nvme.controller_ids(host, node))
    except NvmeError:
        if many:
            raise
        return 1
