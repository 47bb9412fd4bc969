# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a drive now: mounts of every namespace, the system itself, swap, stacked devices, processes, exports."""

from __future__ import annotations

import os
import re
import typing as t

from ..core.host import SYSTEM_PLACES, Host, container
from ..drive import identity, loop
from ..drive.device_nodes import key_at, other_nodes
from ..tools import nvme
from .descriptors import GONE
from .device_aliases import device_number, resolved, unescape
from .facts import Facts, Machine, Mount, add
from .open_handles import Programs, Watch

# What is open or mounted there may block for ever when it is looked at.
_REMOTE = re.compile(r"(nfs\d?|cifs|smb3?|ceph|9p|afs|lustre|gpfs|beegfs|fuse(\..+)?)$")
# Where kernel targets keep the path that they export (Documentation/nvme/nvmet, target/configfs; SCST, USB gadget).
_EXPORTS = (
    ("nvmet", "/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("nvmet passthru", "/sys/kernel/config/nvmet/subsystems/*/passthru/device_path"),
    ("LIO", "/sys/kernel/config/target/core/*/*/udev_path"),
    ("SCST", "/sys/kernel/scst_tgt/devices/*/filename"),
    ("USB gadget", "/sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file"),
)
# What LIO says of a backstore whose udev_path nobody set: target_core_file.c and target_core_iblock.c.
_BACKSTORES = "/sys/kernel/config/target/core/*/*/info"
_FILE_OF, _DEVICE_OF = re.compile(r"\bFile: (/\S+)"), re.compile(r"\bMajor: ([0-9]+) Minor: ([0-9]+)")
# module: where it keeps what it exports, once configfs is mounted
_EXPORTERS = {"nvmet": "/sys/kernel/config/nvmet", "target_core_mod": "/sys/kernel/config/target"}
_RNBD = "/sys/class/rnbd-server/ctl/devices/*/block_dev"  # a link to the device in sysfs


def read_system(host: Host, facts: Machine) -> None:
    """Walk from each of the system's places down to the disks: `slaves`, partitions, files behind loop devices."""
    for mount in facts.mounts:
        if mount.where in SYSTEM_PLACES:
            todo = _sources(host, facts, mount)
            while todo:
                name = todo.pop()
                if name not in facts.system:
                    facts.system[name] = mount.where
                    todo += _below(host, facts, name)


def _sources(host: Host, facts: Machine, mount: Mount) -> list[str]:
    """Return the block devices of a mount, by kernel name."""
    found = [facts.names[mount.major_minor]] if mount.major_minor in facts.names else []
    source = name_of(host, mount.source)
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


def _below(host: Host, facts: Machine, name: str) -> list[str]:
    block = "/sys/class/block/" + name
    found = host.listdir(block + "/slaves")
    if host.exists(block + "/partition"):
        found.append(os.path.basename(os.path.dirname(host.realpath(block))))
    for user, path in facts.stacked:
        if user == name:
            under = _mount_of(facts, path)
            found += [name_of(host, path) or (facts.names.get(under.major_minor) if under else None) or name]
    return [each for each in found if each != name]


def _mount_of(facts: Machine, path: str) -> Mount | None:
    """Return the mount that holds a path: the longest, the last of several on one place."""
    best = None
    for mount in facts.mounts:
        inside = path == mount.where or path.startswith(mount.where.rstrip("/") + "/")
        if inside and (best is None or len(mount.where) >= len(best.where)):
            best = mount
    return best


def _pool(host: Host, facts: Machine, pool: str) -> list[str]:
    """Return the devices of a ZFS pool: no file of the kernel tells them."""
    result = host.run(["zpool", "list", "-v", "-H", "-P", "-L", pool])
    names = [name_of(host, word) for word in result.stdout.split() if word.startswith("/dev/")]
    if result.rc != 0 or not any(names):
        facts.failures.append(
            f"the system is on the ZFS pool {pool}, and zpool list does not name its drives: "
            f"{result.stderr.strip():.100}"
        )
    return [name for name in names if name]


def name_of(host: Host, path: str) -> str | None:
    """Return the kernel name behind a device path; None where there is no such block device."""
    name = resolved(host, path)[len("/dev/") :].replace("/", "!") if path.startswith("/dev/") else ""
    return name if name and host.exists("/sys/class/block/" + name) else None


def read_machine(host: Host, facts: Machine, names: t.Mapping[str, Programs], quick: bool) -> None:
    """Everything on the host that uses block devices, once for all drives. names: those that are looked at, each with
    the programs that only look at it; quick: see open_handles.Watch.
    """
    facts.unseen += _outside(host)
    _read_mounts(host, facts)
    try:
        facts.swaps = [unescape(line.split()[0]) for line in host.read("/proc/swaps").splitlines()[1:] if line.strip()]
    except (OSError, IndexError) as error:
        facts.failures.append(f"/proc/swaps cannot be read: {error}")
    for name in host.listdir("/sys/class/block"):
        number = host.get(f"/sys/class/block/{name}/dev")
        if number:
            facts.names[number] = name
    for name in host.listdir("/sys/block"):
        backing = identity.backing_file(host, name)
        if backing:
            facts.stacked.append((name, backing))
            behind = loop.read(
                host, identity.node(name)
            )  # the path in sysfs may be that of a container, or of a node that is gone
            below = facts.names.get(behind.node if behind else "")
            if below and identity.node(below) != backing:
                facts.stacked.append((name, identity.node(below)))
        writeback = host.get(f"/sys/block/{name}/backing_dev")
        if writeback and writeback != "none":
            facts.stacked.append((name, host.realpath(writeback)))
    facts.groups = [set(host.listdir(path)) for path in host.glob("/sys/fs/btrfs/*/devices")]
    _read_exports(host, facts)
    read_system(host, facts)
    _read_openers(host, facts, names, quick)


def _outside(host: Host) -> list[str]:
    """Return why something that uses or names drives of this machine can't be seen from here."""
    found = []
    inside = container(host)
    if inside:
        found.append(f"the check runs in a container (PID namespace {inside}), where processes outside do not show")
    if _is_image(host):
        found.append(
            "the check runs in another root directory than process 1 (such as an image's), so fstab and other files "
            "are not the machine's"
        )
    hidden = [
        module
        for module, place in _EXPORTERS.items()
        if host.exists("/sys/module/" + module) and not host.exists(place)
    ]
    if hidden:
        found.append(
            "the exports of {} are not visible; mount -t configfs none /sys/kernel/config".format(" and ".join(hidden))
        )
    return found


def _is_image(host: Host) -> bool:
    """Return whether our root is laid over an image, and not that of process 1: a container that got the machine's own
    PID namespace.
    """
    roots = [line for line in (host.get("/proc/self/mountinfo") or "").splitlines() if line.split(" ")[4:5] == ["/"]]
    if not roots or " - overlay " not in roots[-1]:
        return False
    try:
        return not os.path.samestat(os.stat(host.path("/proc/1/root")), os.stat(host.path("/")))
    except OSError:  # a security module may keep everybody out of init
        return False


def _read_exports(host: Host, facts: Machine) -> None:
    """What other hosts, or virtual machines, may reach through this one."""
    for who, pattern in _EXPORTS:
        facts.exports += [(f"{who} ({path})", host.get(path) or "") for path in host.glob(pattern)]
    for path in host.glob(_BACKSTORES):
        told = host.get(path) or ""
        numbers = [facts.names.get("{}:{}".format(*pair)) for pair in _DEVICE_OF.findall(told)]
        facts.exports += [
            (f"LIO ({path})", device)
            for device in [*_FILE_OF.findall(told), *map(identity.node, filter(None, numbers))]
        ]
    facts.exports += [
        (f"rnbd ({path})", identity.node(os.path.basename(host.realpath(path)))) for path in host.glob(_RNBD)
    ]


def _read_mounts(host: Host, facts: Machine) -> None:
    seen: set[str] = set()
    own_namespace_read = False
    for process in ["/proc/self", *host.glob("/proc/[0-9]*")]:
        namespace = host.readlink(process + "/ns/mnt")
        if namespace in seen:
            continue
        try:
            text = host.read(process + "/mountinfo")
            mounts = [_mount(line) for line in text.splitlines()]
            facts.mounts += mounts
            facts.bound += [(key, where, process == "/proc/self") for key, where in _bound_files(host, process, mounts)]
        except OSError as error:
            if error.errno not in GONE:
                facts.unseen.append(f"{process}/mountinfo cannot be read: {error.strerror}")
            continue
        except (ValueError, IndexError):
            facts.failures.append(f"{process}/mountinfo has a malformed line")
        own_namespace_read = own_namespace_read or process == "/proc/self"
        if namespace:
            seen.add(namespace)
    if not own_namespace_read:
        facts.failures.append("/proc/self/mountinfo cannot be read")


def _mount(line: str) -> Mount:
    """One line after proc(5): id, parent, major:minor, root, mount point, options, optional fields, -, type, source,
    options.
    """
    fields = line.split(" ")
    dash = fields.index("-", 6)
    options = unescape(" ".join(fields[dash + 3 :]))
    return Mount(
        fields[2],
        unescape(fields[dash + 2]),
        unescape(fields[4]),
        fields[dash + 1],
        options,
        fields[0],
        unescape(fields[3]),
    )


def _bound_files(host: Host, process: str, mounts: t.Sequence[Mount]) -> list[tuple[str, str]]:
    """(key, where) of block devices' nodes and of files that are mounted on another place, as a container gets them."""
    single = [mount for mount in mounts if mount.root != "/" and not _REMOTE.match(mount.kind)]
    found = [(key_at(host, process + "/root" + mount.where), mount.where) for mount in single]
    return [(key, where) for key, where in found if key and not key.startswith("char")]


# --- processes ----------------------------------------------------------------


def _read_openers(host: Host, facts: Machine, names: t.Mapping[str, Programs], quick: bool) -> None:
    """Who has which block device open, and for these drives also their other nodes and the files behind them."""
    # By the mount's id: a path says nothing, as all may lie below a root from the network, or below that of one
    # container.
    remote = {mount.number: mount.kind for mount in facts.mounts if _REMOTE.match(mount.kind)}
    facts.keys = {name: other_nodes(host, name) for name in names}
    nodes = {}
    allowed: dict[str, Programs] = {}
    for name, programs in names.items():
        # Who writes to the file behind a loop device shows in no count of the device.
        reading = dict.fromkeys(programs, False)
        allowed.update((key, programs if key.startswith("char ") else reading) for key in facts.keys[name])
    for name, programs in names.items():
        for member in [name, *_partitions(host, name)]:
            number = host.get(f"/sys/class/block/{member}/dev")
            if number:
                nodes[identity.node(member)], allowed[number] = number, programs
    far = {mount.major_minor for mount in facts.mounts if mount.number in remote}
    watch = Watch(host, set().union(*facts.keys.values()), nodes, remote, facts.names, far, allowed)
    facts.openers, facts.passing = watch.observe(quick)
    facts.unseen += watch.failures


def _partitions(host: Host, name: str) -> list[str]:
    return [part for part in host.listdir("/sys/block/" + name) if host.exists(f"/sys/block/{name}/{part}/partition")]


# --- one drive ----------------------------------------------------------------


def probe_users(host: Host, facts: Facts, shared: Machine) -> None:
    """Everything that is built on the drive, at any depth, and what of it is mounted, swapped to, open or exported."""
    facts.partitions = _partitions(host, facts.name)
    _walk_up(host, facts, shared)
    facts.keys = set(shared.keys.get(facts.name, ()))
    nodes = {identity.node(member) for member in facts.family}
    together = [group for group in shared.groups if group & set(facts.family)]
    several = {identity.node(name) for group in together for name in group}
    for mount in shared.mounts:
        source = resolved(host, mount.source)
        used = mount.major_minor in facts.numbers or source in nodes or (mount.kind == "btrfs" and source in several)
        if used or _is_file_behind(host, facts, mount):
            add(facts.mounts, f"{mount.source} on {mount.where}")
    # A swap file may be the one behind a loop device.
    facts.swaps = [swap for swap in shared.swaps if resolved(host, swap) in nodes or key_at(host, swap) in facts.keys]
    for member in facts.family:
        if member in shared.system:
            add(facts.system, shared.system[member])
    # A container may have got its own node for a drive so, or the file behind it; that is the one that we use.
    own, keys = nodes | {str(facts.identity.backing_file)}, facts.numbers | facts.keys
    bound = [(key, where) for key, where, ours in shared.bound if key in keys and not (ours and where in own)]
    add(
        facts.mounts,
        *(f"{'its node' if key in facts.numbers else 'the file behind it'} on {where}" for key, where in bound),
    )
    for key in sorted(facts.numbers | facts.keys):
        add(facts.opened, *shared.openers.get(key, ()))
        add(facts.passing, *shared.passing.get(key, ()))
    facts.unseen = list(shared.unseen)
    # nvmet's passthru names the controller, and any of them may name the file behind a loop device.
    exportable = nodes | set(nvme.controllers(host, facts.name))
    for who, path in shared.exports:
        number, other = device_number(host, path), key_at(host, path)
        if resolved(host, path) in exportable or number in facts.numbers or other in facts.keys:
            add(facts.exported, who)
    facts.block_backing = next(
        (path for user, path in shared.stacked if user == facts.name and name_of(host, path)), None
    )


def _is_file_behind(host: Host, facts: Facts, mount: Mount) -> bool:
    """Return whether the file behind a loop device is mounted without one, as EROFS does (Linux 6.12)."""
    files = facts.keys if mount.source.startswith("/") and not _REMOTE.match(mount.kind) else set()
    return any(key.startswith("file ") for key in files) and key_at(host, mount.source) in files


def _walk_up(host: Host, facts: Facts, shared: Machine) -> None:
    facts.family = [facts.name, *facts.partitions]
    for member in facts.family:  # grows while we walk
        above = host.listdir(f"/sys/class/block/{member}/holders")
        above += [user for user, path in shared.stacked if path == identity.node(member)]
        for name in above:
            add(facts.holders, f"{identity.node(name)} uses {identity.node(member)}")
            if (host.get(f"/sys/class/block/{name}/dm/uuid") or "").startswith("mpath-"):
                add(facts.fabric, f"it is a path of the multipath device {identity.node(name)}")
            if name not in facts.family:
                facts.family.append(name)
    numbers = {host.get(f"/sys/class/block/{member}/dev") for member in facts.family}
    facts.numbers = {number for number in numbers if number}
