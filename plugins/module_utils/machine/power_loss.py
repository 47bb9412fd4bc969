# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive states, counts and shows that matters when its power goes. None is unknown.

Sources: NVM Express Base Specification 2.0, Identify Controller (VWC); NVM Command Set Specification 1.0, Identify
  Controller and Namespace (AWUPF, NSFEAT, NAWUPF, NABSPF), Dataset Management; kernel, Documentation/ABI/stable/
  sysfs-block (write_cache, fua); udev's database (USEC_INITIALIZED).
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import Host
from ..drive import health
from ..records.identity import Identity
from ..records.power_cut import CutCounters
from ..tools import nvme
from ..tools.nvme import nvme_number
from . import links, pcie

# NSFEAT bit 1: the namespace has atomicity of its own.
_OWN_ATOMICITY = 0x2
_SINCE_BOOT = re.compile(r"^I:([0-9]{1,18})$", re.MULTILINE)
# Deallocated blocks read the same until they are written: of NVMe by the specification, of a loop device by its file.
_STABLE = ("nvme", "loop")


class Statements(t.NamedTuple):
    """What a drive states. vwc: whether it has a volatile write cache; the others as records/power_cut.py has them."""

    vwc: bool | None = None
    atomic_write_bytes: int | None = None
    atomic_boundary_bytes: int | None = None


def statements(host: Host, identity: Identity) -> Statements:
    """Return what an NVMe drive states; nothing of any other."""
    path, block_bytes = str(identity.path), identity.logical_block_size_bytes
    if identity.transport != "nvme" or block_bytes is None:
        return Statements()
    try:
        controller, namespace = nvme.query(host, ["id-ctrl", path]), nvme.query(host, ["id-ns", path])
    except nvme.NvmeError:
        return Statements()
    return parse_statements(controller, namespace, block_bytes)


def parse_statements(
    controller: t.Mapping[str, t.Any], namespace: t.Mapping[str, t.Any], block_bytes: int
) -> Statements:
    """From the JSON of id-ctrl and id-ns. All of these counts of blocks are one less than they mean."""
    vwc, features = nvme_number(controller.get("vwc")), nvme_number(namespace.get("nsfeat")) or 0
    blocks, boundary = nvme_number(controller.get("awupf")), None
    if features & _OWN_ATOMICITY:
        blocks = nvme_number(namespace.get("nawupf"))
        boundary = nvme_number(namespace.get("nabspf"))
    return Statements(
        vwc=None if vwc is None else bool(vwc & 1),
        atomic_write_bytes=None if blocks is None or blocks < 0 else (blocks + 1) * block_bytes,
        # 0: it has none.
        atomic_boundary_bytes=(boundary + 1) * block_bytes if boundary and boundary > 0 else None,
    )


def fua(host: Host, name: str) -> t.Literal["drive", "kernel"] | None:
    """Return who sees to FUA: a drive that has it, or the kernel by a flush after the write."""
    told = host.get(f"/sys/block/{name}/queue/fua")
    return None if told is None else "drive" if told == "1" else "kernel"


def gets_flushes(host: Host, name: str) -> bool | None:
    """Return whether the kernel sends flushes to the drive: only to one that it takes for one with a volatile cache."""
    told = host.get(f"/sys/block/{name}/queue/write_cache")
    return None if told is None else told == "write back"


def reads_are_stable(identity: Identity) -> bool:
    """Return whether a trimmed block that was read as blank has to stay so until it is written."""
    return identity.transport in _STABLE


def counters(host: Host, identity: Identity, name: str) -> CutCounters:
    """Return what the drive counts by now, and its link."""
    told = health.read(host, identity, limits=False)
    return CutCounters(told.unsafe_shutdowns, health.power_cycles(host, identity), told.media_errors, link(host, name))


def link(host: Host, name: str) -> str | None:
    """Return a drive's link: "16 GT/s x4", "6 Gbit/s"."""
    rate = links.rate_gbit_s(host, name)
    if rate is not None:
        return f"{rate:g} Gbit/s"
    address = pcie.address_of(host, name)
    seen = pcie.live(host, address) if address else None
    return f"{seen.speed_gts:g} GT/s x{seen.width}" if seen and seen.speed_gts and seen.width else None


def ready_after_s(host: Host, name: str) -> float | None:
    """Return how long after the start of the kernel udev first saw the drive."""
    number = host.get(f"/sys/class/block/{name}/dev")
    match = _SINCE_BOOT.search(host.get(f"/run/udev/data/b{number}") or "") if number else None
    return int(match.group(1)) / 1e6 if match else None
