# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel name a drive has now, and who it is, from sysfs and udev's database. What is unknown is None, never a guess."""
from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..core.host import Host
from . import attributes, vendor

SELECTOR_KEYS = ("serial", "wwn", "by_id", "backing_file")


class _Option(NamedTuple):
    """An option beside the selector: whether a value is right, what it has to be, and its value where it is not given."""

    right: Callable[[Any], bool]
    wanted: str
    default: Any


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_codes(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(code, str) for code in value)


def _is_cpus(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, str) and re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value) is not None)


OPTION_KEYS: Dict[str, _Option] = {
    "allow": _Option(_is_codes, "a list of the guard's codes, such as [partition_table]", ()),
    "ssd_overwrite_data": _Option(lambda value: isinstance(value, bool), "true or false", False),
    "numa_node": _Option(_is_whole, "the number of a NUMA node", None),
    "cpus": _Option(_is_cpus, 'a list of CPUs as the kernel writes it, such as "0-3,8"', None),
    # YAML reads a bare on and off as true and false.
    "write_cache": _Option(lambda value: isinstance(value, bool) or value in ("on", "off"), "on or off", None),
}
# Options of the guard: they say what may be erased, not what is measured, so they may differ when a run goes on.
GUARD_OPTIONS = ("allow", "ssd_overwrite_data")
BY_ID = "/dev/disk/by-id/"
SYSFS_SECTOR_BYTES = 512  # /sys/block/*/size counts these, whatever the drive's own block is

# Block devices that are no drive of their own: stacked, virtual in memory, removable media, hidden parts of an eMMC.
_NO_DRIVE = re.compile(r"(dm-|md|zram|ram|sr|fd|zd|drbd|bcache|mtdblock|rbd)[0-9]|md_|mmcblk[0-9]+(boot|rpmb|gp)")
_HEX_NAME = re.compile(r"(?:wwn-|nvme-)?(?:naa\.|eui\.|uuid\.|0x)?([0-9a-f][0-9a-f -]*)", re.IGNORECASE)


def selector_problem(selector: Any) -> Optional[str]:
    """What is wrong with the form of one entry of `ssd_drives`, its options included; None if it is well formed."""
    if not isinstance(selector, Mapping):
        return "it is %r, not a mapping with one of the keys %s" % (selector, ", ".join(SELECTOR_KEYS))
    keys = [key for key in selector if key not in OPTION_KEYS]
    if len(keys) != 1 or keys[0] not in SELECTOR_KEYS:
        known = "give exactly one of %s, and beside it at most options: %s" % (", ".join(SELECTOR_KEYS), ", ".join(OPTION_KEYS))
        return "it has the keys %s; %s" % (", ".join(map(str, selector)) or "(none)", known)
    return _value_problem(keys[0], selector[keys[0]]) or _option_problem(selector)


def _value_problem(key: str, value: Any) -> Optional[str]:
    if not isinstance(value, str):
        return "%s is %r, not a text: put it in quotes, YAML reads 0123, 1e5 and NO as something else" % (key, value)
    if not value.strip():
        return "%s is empty; an undefined variable may stand behind it" % key
    if "\0" in value:
        return "%s is %r: it has a NUL byte, which no drive's name has; write it again" % (key, value)
    if key == "by_id" and re.fullmatch(r"\.{0,2}|.*/.*", _by_id_name(value)):
        return "by_id %r is not a name in %s" % (value, BY_ID)
    if key == "backing_file" and not value.strip().startswith("/"):
        return "backing_file %r is not an absolute path" % value
    if key == "wwn" and _wwn_key(value) is None:
        return "wwn %r names no drive" % value
    return None


def _option_problem(entry: Mapping[str, Any]) -> Optional[str]:
    wrong = [key for key in entry if key in OPTION_KEYS and not OPTION_KEYS[key].right(entry[key])]
    return "its option %s is %r; it must be %s" % (wrong[0], entry[wrong[0]], OPTION_KEYS[wrong[0]].wanted) if wrong else None


def selector_item(entry: Mapping[str, Any]) -> Tuple[str, str]:
    """The key and the value that name the drive, in a well-formed entry of `ssd_drives`, as given."""
    key = next(key for key in SELECTOR_KEYS if key in entry)
    return key, entry[key]


def options(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of a well-formed entry, each of OPTION_KEYS: lists and booleans as given, `cpus` and `write_cache` as texts, None: not given."""
    given = {key: entry.get(key, option.default) for key, option in OPTION_KEYS.items()}
    cache, cpus = given["write_cache"], given["cpus"]
    return dict(
        given,
        allow=list(given["allow"]),
        cpus=None if cpus is None else str(cpus),
        write_cache={True: "on", False: "off"}.get(cache, cache),
    )


def label(selector: Any) -> str:
    """The drive's stable identity in every record: the selector's value. For a malformed selector, how it reads."""
    if selector_problem(selector) is None:
        return selector_item(selector)[1].strip()
    return str(dict(selector)) if isinstance(selector, Mapping) else repr(selector)


def slug(text: str) -> str:
    """The text as one safe file name: everything but A-Za-z0-9._- becomes _."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    return safe if safe.strip(".") else "_" * max(1, len(safe))


def find(host: Host, selector: Mapping[str, Any]) -> List[str]:
    """The kernel names that a selector matches as a whole, sorted; a `by_id` may name a partition. Raises ValueError for a malformed selector."""
    problem = selector_problem(selector)
    if problem:
        raise ValueError(problem)
    key, value = selector_item(selector)
    value = value.strip()
    if key == "by_id":
        return _find_by_id(host, value)
    if key == "backing_file":
        wanted = host.realpath(value)
        return [name for name in whole_drives(host) if name.startswith("loop") and backing_file(host, name) == wanted]
    if key == "wwn":
        return [name for name in whole_drives(host) if _wwn_key(value) in _wwn_keys(host, name)]
    return [name for name in whole_drives(host) if serial(host, name) == value]


def whole_drives(host: Host) -> List[str]:
    """Kernel names of every block device that could be a drive under test; loop and nbd devices only when attached."""
    names = []
    for name in host.listdir("/sys/block"):
        if not is_drive(name) or host.get("/sys/block/%s/hidden" % name) == "1":
            continue
        if name.startswith("loop") and backing_file(host, name) is None:
            continue
        if name.startswith("nbd") and not size_bytes(host, name):
            continue
        names.append(name)
    return names


def is_drive(name: str) -> bool:
    """Whether a kernel name of /sys/block belongs to a kind of device that can be a drive."""
    return _NO_DRIVE.match(name) is None


def node(name: str) -> str:
    """The device node of a kernel name; sysfs writes / as !."""
    return "/dev/" + name.replace("!", "/")


def best_selector(host: Host, name: str) -> Optional[Dict[str, str]]:
    """The first selector of SELECTOR_KEYS that matches this drive and no other; None if there is none."""
    links = [os.path.basename(link) for link in host.glob(BY_ID + "*") if host.realpath(link) == node(name)]
    values = {
        "serial": [serial(host, name)],
        "wwn": [wwn(host, name)],
        "by_id": links,
        "backing_file": [backing_file(host, name)],
    }
    for key in SELECTOR_KEYS:
        for value in values[key]:
            selector = {key: value or ""}
            if selector_problem(selector) is None and find(host, selector) == [name]:
                return selector
    return None


def identity(host: Host, name: str) -> Dict[str, Any]:
    """Who a drive is: what stays with it, and where the kernel has it now. Sizes in bytes; None is unknown."""
    block = "/sys/block/" + name
    return {
        "serial": serial(host, name),
        "wwn": wwn(host, name),
        "model": attributes.model(host, name),
        "firmware": attributes.firmware(host, name),
        "size_bytes": size_bytes(host, name),
        "logical_block_size_bytes": attributes.number(host, block + "/queue/logical_block_size"),
        "physical_block_size_bytes": attributes.number(host, block + "/queue/physical_block_size"),
        "transport": attributes.transport(host, name),
        "numa_node": attributes.numa_node(host, name),
        "diskseq": attributes.number(host, block + "/diskseq"),
        "kernel_name": name,
        "path": node(name),
        "major_minor": host.get(block + "/dev"),
        "backing_file": backing_file(host, name),
        "max_discard_bytes": attributes.number(host, block + "/queue/discard_max_bytes"),
        "queue_depth": attributes.queue_depth(host, name),
        "rotational": {"0": False, "1": True}.get(host.get(block + "/queue/rotational") or ""),
    }


def size_bytes(host: Host, name: str) -> Optional[int]:
    """Capacity as the kernel has it now."""
    sectors = attributes.number(host, "/sys/block/%s/size" % name)
    return None if sectors is None else sectors * SYSFS_SECTOR_BYTES


def serial(host: Host, name: str) -> Optional[str]:
    """The drive's serial number; a loop device has none."""
    if name.startswith("loop"):
        return None
    block = "/sys/block/" + name
    return (
        host.get(block + "/device/serial")
        or host.get(block + "/serial")
        or attributes.scsi_serial(host, name)
        or vendor.read(host, name).get("serial")
        or attributes.udev(host, name).get("ID_SERIAL_SHORT")
    )


def wwn(host: Host, name: str) -> Optional[str]:
    """The drive's world wide name as the kernel writes it: `naa.…`, `eui.…`, `uuid.…`; from udev only without one."""
    block = "/sys/block/" + name
    for text in (host.get(block + "/wwid"), host.get(block + "/device/wwid"), attributes.udev(host, name).get("ID_WWN")):
        if text and _wwn_key(text):
            return text
    return None


def backing_file(host: Host, name: str) -> Optional[str]:
    """The file behind an attached loop device, links resolved; None for anything else."""
    path = host.get("/sys/block/%s/loop/backing_file" % name)
    return host.realpath(path) if path else None


def _wwn_key(text: str) -> Optional[str]:
    """A hexadecimal name without prefix, case and separators, other names as they are; None for empty and all-zero ones."""
    text = text.strip()
    match = _HEX_NAME.fullmatch(text)
    if match is None:
        return text or None
    digits = re.sub(r"[ -]", "", match.group(1)).lower()
    return digits if digits.strip("0") else None


def _wwn_keys(host: Host, name: str) -> Set[str]:
    block = "/sys/block/" + name
    texts: Iterable[Optional[str]] = [host.get(block + "/" + file) for file in ("wwid", "device/wwid", "eui", "nguid", "uuid")]
    udev = attributes.udev(host, name)
    keys = [_wwn_key(text) for text in [*texts, udev.get("ID_WWN"), udev.get("ID_WWN_WITH_EXTENSION")] if text]
    return {key for key in keys if key}


def _by_id_name(value: str) -> str:
    value = value.strip()
    return value[len(BY_ID):] if value.startswith(BY_ID) else value


def _find_by_id(host: Host, value: str) -> List[str]:
    """What the link leads to, and what else udev gives this link to: with two serials that are the same it may lead there after the next boot."""
    link = BY_ID + _by_id_name(value)
    target = host.realpath(link)
    name = target[len("/dev/"):].replace("/", "!")
    known = target.startswith("/dev/") and host.exists("/sys/class/block/" + name)
    return sorted({name} | {each for each in host.listdir("/sys/class/block") if link in attributes.udev_links(host, each)}) if known else []
