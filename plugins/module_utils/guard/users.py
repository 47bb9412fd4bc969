# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a drive now: mounts of every namespace, the system itself, swap, stacked devices, processes, exports."""
from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import time
from typing import Dict, List, Optional, Set

from ..core.host import Host
from ..drive import identity
from .facts import Facts, Machine, Mount, add
from .names import device_number, resolved, unescape

# What lies on these places is the system (issue: resolve them through any number of layers).
SYSTEM_PLACES = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")
_SETTLE_S = 1.0  # udev and blkid look at a drive that was just closed for less than that
_LOOK_AGAIN_S = 0.25
_LOOP_GET_STATUS64, _LOOP_STATUS_BYTES, _LOOP_RDEVICE = 0x4C05, 232, 16  # include/uapi/linux/loop.h: lo_rdevice is the third of 64 bits
_GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL)  # the process ended meanwhile, or is a zombie
_MOUNT_ID = re.compile(r"^mnt_id:\s*([0-9]+)$", re.MULTILINE)  # of /proc/*/fdinfo (proc(5))
# An fd on a mount of these may block for ever when it is looked at, and no block device lies there.
_REMOTE = re.compile(r"(nfs\d?|cifs|smb3?|ceph|9p|afs|lustre|gpfs|beegfs|fuse(\..+)?)$")
# Where kernel targets keep the path that they export (Documentation/nvme/nvmet, target/configfs; SCST, USB gadget).
_EXPORTS = (
    ("nvmet", "/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("LIO", "/sys/kernel/config/target/core/*/*/udev_path"),
    ("SCST", "/sys/kernel/scst_tgt/devices/*/filename"),
    ("USB gadget", "/sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file"),
)


def read_machine(host: Host, facts: Machine) -> None:
    """Everything on the host that uses block devices, once for all drives."""
    _read_mounts(host, facts)
    try:
        facts.swaps = [unescape(line.split()[0]) for line in host.read("/proc/swaps").splitlines()[1:] if line.strip()]
    except (OSError, IndexError) as error:
        facts.failures.append("/proc/swaps cannot be read: %s" % error)
    for name in host.listdir("/sys/class/block"):
        number = host.get("/sys/class/block/%s/dev" % name)
        if number:
            facts.names[number] = name
    for name in host.listdir("/sys/block"):
        backing = identity.backing_file(host, name)
        if backing:
            facts.stacked.append((name, backing))
            below = facts.names.get(_backing_number(host, name) or "")
            if below and identity.node(below) != backing:
                facts.stacked.append((name, identity.node(below)))
        writeback = host.get("/sys/block/%s/backing_dev" % name)
        if writeback and writeback != "none":
            facts.stacked.append((name, host.realpath(writeback)))
    facts.groups = [set(host.listdir(path)) for path in host.glob("/sys/fs/btrfs/*/devices")]
    for who, pattern in _EXPORTS:
        facts.exports += [("%s (%s)" % (who, path), host.get(path) or "") for path in host.glob(pattern)]
    _read_system(host, facts)
    facts.openers = _openers(host, facts)


def _backing_number(host: Host, name: str) -> Optional[str]:
    """major:minor of the block device behind a loop device; None for a file. The path in sysfs may be that of a container, or of a node that is gone."""
    try:
        handle = os.open(host.path(identity.node(name)), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        (number,) = struct.unpack_from("=Q", fcntl.ioctl(handle, _LOOP_GET_STATUS64, bytes(_LOOP_STATUS_BYTES)), _LOOP_RDEVICE)
    except OSError:
        return None
    finally:
        os.close(handle)
    return "%d:%d" % (os.major(number), os.minor(number)) if number else None


def _read_mounts(host: Host, facts: Machine) -> None:
    seen: Set[str] = set()
    own_namespace_read = False
    for process in ["/proc/self", *host.glob("/proc/[0-9]*")]:
        namespace = host.readlink(process + "/ns/mnt")
        if namespace in seen:
            continue
        try:
            text = host.read(process + "/mountinfo")
            facts.mounts.extend(_mount(line) for line in text.splitlines())
        except OSError as error:
            if error.errno not in _GONE:
                facts.failures.append("%s/mountinfo cannot be read: %s" % (process, error.strerror))
            continue
        except (ValueError, IndexError):
            facts.failures.append("%s/mountinfo has a line that is none" % process)
        own_namespace_read = own_namespace_read or process == "/proc/self"
        if namespace:
            seen.add(namespace)
    if not own_namespace_read:
        facts.failures.append("/proc/self/mountinfo cannot be read")


def _mount(line: str) -> Mount:
    """One line after proc(5): id, parent, major:minor, root, mount point, options, optional fields, -, type, source, options."""
    fields = line.split(" ")
    dash = fields.index("-", 6)
    return Mount(fields[2], unescape(fields[dash + 2]), unescape(fields[4]), fields[dash + 1], unescape(" ".join(fields[dash + 3:])), fields[0])


# --- the system's own drives ---------------------------------------------------------------------------------------------------------

def _read_system(host: Host, facts: Machine) -> None:
    """Walk from each of the system's places down to the disks: `slaves`, partitions, files behind loop devices."""
    for mount in facts.mounts:
        if mount.where in SYSTEM_PLACES:
            todo = _sources(host, facts, mount)
            while todo:
                name = todo.pop()
                if name not in facts.system:
                    facts.system[name] = mount.where
                    todo += _below(host, facts, name)


def _sources(host: Host, facts: Machine, mount: Mount) -> List[str]:
    """The block devices of a mount, by kernel name."""
    found = [facts.names[mount.major_minor]] if mount.major_minor in facts.names else []
    source = _name_of(host, mount.source)
    if source:
        found.append(source)
    found += [name for group in facts.groups if group & set(found) for name in group]
    if mount.kind == "zfs":
        found += _pool(host, facts, mount.source.split("/")[0])
    if mount.kind == "overlay":
        paths = re.findall(r"(?:lowerdir|upperdir)=([^,]+)", mount.options)
        under = {_mount_of(facts, path) for line in paths for path in line.split(":")} - {mount, None}
        found += [facts.names[below.major_minor] for below in under if below and below.major_minor in facts.names]
    return found


def _below(host: Host, facts: Machine, name: str) -> List[str]:
    block = "/sys/class/block/" + name
    found = host.listdir(block + "/slaves")
    if host.exists(block + "/partition"):
        found.append(os.path.basename(os.path.dirname(host.realpath(block))))
    for user, path in facts.stacked:
        if user == name:
            under = _mount_of(facts, path)
            found += [_name_of(host, path) or (facts.names.get(under.major_minor) if under else None) or name]
    return [each for each in found if each != name]


def _mount_of(facts: Machine, path: str) -> Optional[Mount]:
    """The mount that holds a path: the longest, the last of several on one place."""
    best = None
    for mount in facts.mounts:
        inside = path == mount.where or path.startswith(mount.where.rstrip("/") + "/")
        if inside and (best is None or len(mount.where) >= len(best.where)):
            best = mount
    return best


def _pool(host: Host, facts: Machine, pool: str) -> List[str]:
    """The devices of a ZFS pool: no file of the kernel tells them."""
    result = host.run(["zpool", "list", "-v", "-H", "-P", "-L", pool])
    names = [_name_of(host, word) for word in result.stdout.split() if word.startswith("/dev/")]
    if result.rc != 0 or not any(names):
        facts.failures.append("the system lies on the ZFS pool %s, and zpool list does not tell its drives: %.100s" % (pool, result.stderr.strip()))
    return [name for name in names if name]


def _name_of(host: Host, path: str) -> Optional[str]:
    """The kernel name behind a device path; None where there is no such block device."""
    name = resolved(host, path)[len("/dev/"):].replace("/", "!") if path.startswith("/dev/") else ""
    return name if name and host.exists("/sys/class/block/" + name) else None


# --- processes -----------------------------------------------------------------------------------------------------------------------

def _openers(host: Host, facts: Machine) -> Dict[str, Set[str]]:
    """Who has which block device open, by device number: the name may be another one in a container. Not this process."""
    found: Dict[str, Set[str]] = {}
    # By the mount's id: a path says nothing, as all may lie below a root from the network, or below that of one container.
    remote = {mount.number for mount in facts.mounts if _REMOTE.match(mount.kind)}
    for process in host.glob("/proc/[0-9]*"):
        pid = os.path.basename(process)
        if pid == str(os.getpid()):
            continue
        try:
            numbers = _open_numbers(host, process, remote)
        except OSError as error:
            if error.errno not in _GONE:
                facts.failures.append("%s/fd cannot be read: %s" % (process, error.strerror))
            continue
        for number in numbers:
            found.setdefault(number, set()).add("%s (process %s)" % (host.get(process + "/comm") or "?", pid))
    return found


def _open_numbers(host: Host, process: str, remote: Set[str]) -> Set[str]:
    numbers = set()
    for descriptor in os.listdir(host.path(process + "/fd")):
        path = "%s/fd/%s" % (process, descriptor)
        if not (host.readlink(path) or "").startswith("/"):
            continue  # sockets, pipes
        mount = _MOUNT_ID.search(host.get("%s/fdinfo/%s" % (process, descriptor)) or "") if remote else None
        if mount and mount.group(1) in remote:
            continue  # files of a server that may not answer
        number = device_number(host, path)
        if number:
            numbers.add(number)
    return numbers


def _settle(host: Host, facts: Machine, numbers: Set[str]) -> None:
    """Look again at who has these open for up to a second: who only looked has closed it then."""
    deadline = time.monotonic() + _SETTLE_S
    while not facts.openers_settled and facts.openers.keys() & numbers:
        time.sleep(_LOOK_AGAIN_S)
        now = _openers(host, facts)
        facts.openers = {number: now[number] & who for number, who in facts.openers.items() if now.get(number, set()) & who}
        facts.openers_settled = time.monotonic() >= deadline


# --- one drive -----------------------------------------------------------------------------------------------------------------------

def probe_users(host: Host, facts: Facts, shared: Machine) -> None:
    """Everything that is built on the drive, at any depth, and what of it is mounted, swapped to, open or exported."""
    block = "/sys/block/" + facts.name
    facts.partitions = [part for part in host.listdir(block) if host.exists("%s/%s/partition" % (block, part))]
    _walk_up(host, facts, shared)
    nodes = {identity.node(member) for member in facts.family}
    together = [group for group in shared.groups if group & set(facts.family)]
    several = {identity.node(name) for group in together for name in group}
    for mount in shared.mounts:
        source = resolved(host, mount.source)
        if mount.major_minor in facts.numbers or source in nodes or (mount.kind == "btrfs" and source in several):
            add(facts.mounts, "%s on %s" % (mount.source, mount.where))
    facts.swaps = [swap for swap in shared.swaps if resolved(host, swap) in nodes]
    for member in facts.family:
        if member in shared.system:
            add(facts.system, shared.system[member])
    _settle(host, shared, facts.numbers)
    for number in sorted(facts.numbers):
        add(facts.opened, *sorted(shared.openers.get(number, ())))
    add(facts.exported, *(who for who, path in shared.exports if resolved(host, path) in nodes or device_number(host, path) in facts.numbers))
    facts.block_backing = next((path for user, path in shared.stacked if user == facts.name and _name_of(host, path)), None)


def _walk_up(host: Host, facts: Facts, shared: Machine) -> None:
    facts.family = [facts.name, *facts.partitions]
    for member in facts.family:  # grows while we walk
        above = host.listdir("/sys/class/block/%s/holders" % member)
        above += [user for user, path in shared.stacked if path == identity.node(member)]
        for name in above:
            add(facts.holders, "%s uses %s" % (identity.node(name), identity.node(member)))
            if (host.get("/sys/class/block/%s/dm/uuid" % name) or "").startswith("mpath-"):
                add(facts.fabric, "it is a path of the multipath device %s" % identity.node(name))
            if name not in facts.family:
                facts.family.append(name)
    numbers = {host.get("/sys/class/block/%s/dev" % member) for member in facts.family}
    facts.numbers = {number for number in numbers if number}
