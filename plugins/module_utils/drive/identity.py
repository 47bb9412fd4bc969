# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel name a drive has now, and who it is, from sysfs and udev's database. What is unknown is None, never a
guess.
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core import sysfs
from ..core.host import Host, container
from ..records.identity import Identity
from ..vendors import vendor_identity
from . import attributes, loop
from .entry import BY_ID, SELECTOR_KEYS, Entry, by_id_name, parse, wwn_key

# /sys/block/*/size and stat count these, whatever the drive's own block is (Documentation/block/stat.rst).
SYSFS_SECTOR_BYTES = 512

# By how a format of /sys/block/*/integrity/format begins: what its tuples take ("nop" does not tell).
PROTECTION_BYTES = {"none": 0, "T10": 8, "EXT": 16}

# What an identity is called by, as far as its place tells it; and by what names this one drive alone.
NAMES = ("serial", "wwn", "model", "backing_file")
OWN_NAMES = tuple(name for name in NAMES if name != "model")
_HEX_DIGITS = re.compile(r"[0-9a-f]+")
# Block devices that are no drive of their own: stacked, virtual in memory, removable media, hidden parts of an eMMC.
_NO_DRIVE = re.compile(r"(dm-|md|zram|ram|sr|fd|zd|drbd|bcache|mtdblock|rbd)[0-9]|md_|mmcblk[0-9]+(boot|rpmb|gp)")


def find(host: Host, entry: Entry) -> list[str]:
    """Return the kernel names that an entry's selector matches as a whole, sorted; a `by_id` may name a partition.
    Raises ValueError for a malformed entry.
    """
    if entry.problem:
        raise ValueError(entry.problem)
    key, value = entry.kind, entry.label
    if key == "by_id":
        return _find_by_id(host, value)
    if key == "backing_file":
        return [name for name in whole_drives(host) if name.startswith("loop") and _is_behind(host, name, value)]
    if key == "wwn":
        return [name for name in whole_drives(host) if wwn_key(value) in _wwn_keys(host, name)]
    return [name for name in whole_drives(host) if serial(host, name) == value]


def whole_drives(host: Host) -> list[str]:
    """Kernel names of every block device that could be a drive under test; loop and nbd devices only when attached."""
    names = []
    for name in host.listdir("/sys/block"):
        if not is_drive(name) or host.get(f"/sys/block/{name}/hidden") == "1":
            continue
        if name.startswith("loop") and backing_file(host, name) is None:
            continue
        if name.startswith("nbd") and not size_bytes(host, name):
            continue
        names.append(name)
    return names


def is_drive(name: str) -> bool:
    """Return whether a kernel name of /sys/block belongs to a kind of device that can be a drive."""
    return _NO_DRIVE.match(name) is None


def node(name: str) -> str:
    """Return the device node of a kernel name; sysfs writes / as !."""
    return "/dev/" + name.replace("!", "/")


def best_entry(host: Host, name: str) -> Entry | None:
    """Return an entry with the first selector of SELECTOR_KEYS that matches this drive and no other; None if there is
    none.
    """
    links = [os.path.basename(link) for link in host.glob(BY_ID + "*") if host.realpath(link) == node(name)]
    values: dict[str, t.Sequence[str | None]] = {
        "serial": [serial(host, name)],
        "wwn": [wwn(host, name)],
        "by_id": links,
        "backing_file": [backing_file(host, name)],
    }
    for key in SELECTOR_KEYS:
        for value in values[key]:
            entry = parse({key: value or ""})
            if entry.problem is None and find(host, entry) == [name]:
                return entry
    return None


def identity(host: Host, name: str) -> Identity:
    """Who a drive is: what stays with it, and where the kernel has it now. Sizes in bytes; None is unknown."""
    block = "/sys/block/" + name
    return Identity(
        serial=serial(host, name),
        wwn=wwn(host, name),
        model=attributes.model(host, name),
        firmware=attributes.firmware(host, name),
        size_bytes=size_bytes(host, name),
        logical_block_size_bytes=sysfs.number(host, block + "/queue/logical_block_size"),
        metadata_bytes=metadata_bytes(host, name),
        physical_block_size_bytes=sysfs.number(host, block + "/queue/physical_block_size"),
        # Of NVMe drives NPWG; physical_block_size is no more than what they write atomically.
        minimum_io_size_bytes=sysfs.number(host, block + "/queue/minimum_io_size"),
        transport=attributes.transport(host, name),
        numa_node=attributes.numa_node(host, name),
        diskseq=sysfs.number(host, block + "/diskseq"),
        kernel_name=name,
        path=node(name),
        major_minor=host.get(block + "/dev"),
        backing_file=backing_file(host, name),
        backing=_backing(host, name),
        max_discard_bytes=sysfs.number(host, block + "/queue/discard_max_bytes"),
        queue_depth=attributes.queue_depth(host, name),
        rotational={"0": False, "1": True}.get(host.get(block + "/queue/rotational") or ""),
        io_poll={"0": False, "1": True}.get(host.get(block + "/queue/io_poll") or ""),
        **_zones(host, block + "/queue/"),
    )


def _zones(host: Host, queue: str) -> dict[str, t.Any]:
    """Return the zones of a drive that has them; a host-aware one counts as any other."""
    model = host.get(queue + "zoned")
    if model in (None, "none"):
        return {}
    sectors = sysfs.number(host, queue + "chunk_sectors")
    return {
        "zone_model": model,
        "zone_bytes": None if sectors is None else sectors * SYSFS_SECTOR_BYTES,
        "max_open_zones": sysfs.number(host, queue + "max_open_zones"),
        "max_active_zones": sysfs.number(host, queue + "max_active_zones"),
    }


def size_bytes(host: Host, name: str) -> int | None:
    """Capacity as the kernel has it now."""
    sectors = sysfs.number(host, f"/sys/block/{name}/size")
    return None if sectors is None else sectors * SYSFS_SECTOR_BYTES


def metadata_bytes(host: Host, name: str) -> int | None:
    """Return what a block has beside its data (512+8). The kernel tells it since Linux 6.8; an older one tells
    protection information, which it takes for nothing else than all of the metadata.
    """
    block = "/sys/block/" + name
    told = sysfs.number(host, block + "/metadata_bytes")
    format_ = host.get(block + "/integrity/format") or ""
    return told if told is not None else PROTECTION_BYTES.get(format_.split("-")[0])


def serial(host: Host, name: str) -> str | None:
    """Return the drive's serial number; a loop device has none."""
    if name.startswith("loop"):
        return None
    block = "/sys/block/" + name
    return (
        host.get(block + "/device/serial")
        or host.get(block + "/serial")
        or attributes.scsi_serial(host, name)
        or vendor_identity.read(host, name).get("serial")
        or attributes.udev(host, name).get("ID_SERIAL_SHORT")
    )


def wwn(host: Host, name: str) -> str | None:
    """Return the drive's world wide name as the kernel writes it: `naa.…`, `eui.…`, `uuid.…`; from udev only without
    one.
    """
    block = "/sys/block/" + name
    for text in (
        host.get(block + "/wwid"),
        host.get(block + "/device/wwid"),
        attributes.udev(host, name).get("ID_WWN"),
    ):
        if text and wwn_key(text):
            return text
    return None


def may_be_one(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    """Return whether two identities can be of one drive, of which one place tells more than the other."""
    names = {key: (str(one.get(key) or ""), str(other.get(key) or "")) for key in NAMES}
    if any(names["backing_file"]):
        return False
    alike = {key: pair[0] == pair[1] for key, pair in names.items()}
    if all(names["serial"]) and not alike["serial"]:
        return False
    if all(names["wwn"]) and not alike["wwn"]:
        # Two names of one kind are two drives; libata and a SAS controller tell one by different kinds (naa, t10).
        kinds = {wwn.partition(".")[0] for wwn in names["wwn"]}
        if len(kinds) == 1:
            return False
    known = all(names["serial"]) or (all(names["wwn"]) and alike["wwn"])
    first, second = names["model"]
    return known and (first.startswith(second) or second.startswith(first))


def _is_behind(host: Host, name: str, path: str) -> bool:
    """Return whether this very file is behind a loop device: its path in sysfs may be that of a container, or of a file
    that is gone.
    """
    behind = loop.read(host, node(name))
    if behind is None:  # the node can't be opened, and the guard will say so
        return backing_file(host, name) == host.realpath(path)
    try:
        status = os.stat(host.path(path))
    except (
        FileNotFoundError
    ):  # a container may have the device without its file; that its users don't show is refused on its own
        return bool(container(host)) and backing_file(host, name) == host.realpath(path)
    except (OSError, ValueError):
        return False
    return (behind.device, behind.inode) == (
        f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}",
        status.st_ino,
    )


def _backing(host: Host, name: str) -> str | None:
    """Return what is behind a loop device, as the kernel has it; None for anything else."""
    behind = loop.read(host, node(name)) if name.startswith("loop") else None
    if not behind:
        return None
    part = f"from byte {behind.offset_bytes}, limit {behind.limit_bytes}"
    return f"device {behind.device}, inode {behind.inode}, {part}"


def backing_file(host: Host, name: str) -> str | None:
    """Return the file behind an attached loop device, links resolved; None for anything else."""
    path = host.get(f"/sys/block/{name}/loop/backing_file")
    return host.realpath(path) if path else None


def _wwn_keys(host: Host, name: str) -> set[str]:
    block = "/sys/block/" + name
    texts: t.Iterable[str | None] = [
        host.get(block + "/" + file) for file in ("wwid", "device/wwid", "eui", "nguid", "uuid")
    ]
    keys = {key for key in map(wwn_key, filter(None, texts)) if key}
    if any(_HEX_DIGITS.fullmatch(key) for key in keys):
        return keys  # the kernel's own: udev may yet tell of the drive that was here before
    udev = attributes.udev(host, name)
    told = [wwn_key(udev.get(key, "")) for key in ("ID_WWN", "ID_WWN_WITH_EXTENSION")]
    return keys | {key for key in told if key}


def _find_by_id(host: Host, value: str) -> list[str]:
    """Return what the link leads to, and what else udev gives this link to: with two serials that are the same it may
    lead there after the next boot. Nothing where udev knows the device that it leads to, and not by this name: then
    another drive had that place before.
    """
    link = BY_ID + by_id_name(value)
    target = host.realpath(link)
    name = target[len("/dev/") :].replace("/", "!")
    known = target.startswith("/dev/") and host.exists("/sys/class/block/" + name)
    if not known:
        return []
    claims = {each for each in host.listdir("/sys/class/block") if link in attributes.udev_links(host, each)}
    return sorted({name} | claims) if claims or not attributes.has_udev(host, name) else []
