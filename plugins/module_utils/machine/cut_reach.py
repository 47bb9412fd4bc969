# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cut of the host's power reaches beside the drives under test: its file systems, virtual machines and
containers; and by what a BMC proves to be this host's.
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core.host import SYSTEM_PLACES, Host
from ..records.host_snapshot import CutFilesystem, CutReach

# Kinds of file systems that keep data though no block device has their number.
_KEEP_DATA = re.compile(r"(btrfs|zfs|overlay|nfs\d?|cifs|smb3?|ceph|9p|afs|lustre|gpfs|beegfs|fuse\..+)$")
# Of nothing but the memory, or of what never changes.
_VOLATILE = ("tmpfs", "ramfs", "rootfs", "squashfs", "iso9660", "erofs")
# Programs of which each process is a virtual machine; the kernel keeps 15 letters of a name.
_MACHINES = re.compile(r"(qemu-.+|kvm|cloud-hypervis.*|firecracker|VBoxHeadless|vmware-vmx)$")
# How engines name the control group of a container.
_CONTAINER = re.compile(r"/(docker|libpod|cri-containerd|crio|lxc|lxc\.payload|nspawn)[-./]([A-Za-z0-9._-]+)")
MOST_NAMED = 20


def read(host: Host, state_dir: str) -> CutReach:
    """Return it. state_dir: where acknowledgements are to be recorded."""
    mounts = _mounts(host)
    place = os.path.normpath(state_dir)
    around = [mount for mount in mounts if mount.path == "/" or f"{place}/".startswith(f"{mount.path.rstrip('/')}/")]
    # The last of several on one place is the one that is seen.
    record = max(reversed(around), key=lambda mount: len(mount.path), default=None)
    kept = _once(mount for mount in mounts if mount.kind not in _VOLATILE)
    further = [mount for mount in kept if mount.path not in SYSTEM_PLACES]
    guests = _guests(host)
    return CutReach(
        uuid=host.get("/sys/class/dmi/id/product_uuid"),
        serials=[text for name in ("product", "board", "chassis") for text in [_dmi(host, f"{name}_serial")] if text],
        state_dir=record,
        system=[mount for mount in kept if mount.path in SYSTEM_PLACES],
        further=further[:MOST_NAMED],
        further_count=len(further),
        guests=guests[:MOST_NAMED],
        guests_count=len(guests),
    )


def _dmi(host: Host, name: str) -> str:
    return (host.get(f"/sys/class/dmi/id/{name}") or "").strip()


def _mounts(host: Host) -> list[CutFilesystem]:
    """Return the file systems that may be written to, in the order in which they were mounted."""
    found = []
    for line in (host.get("/proc/self/mountinfo") or "").splitlines():
        left, _dash, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 6 or len(kind) < 3 or "ro" in kind[2].split(","):
            continue
        if fields[2].startswith("0:") and not _KEEP_DATA.match(kind[0]) and kind[0] not in _VOLATILE:
            continue
        found.append(CutFilesystem(_plain(fields[4]), _plain(kind[1]), kind[0], _disks(host, fields[2], kind[1])))
    return found


def _plain(text: str) -> str:
    """Return a path of mountinfo without its octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)[:500]


def _once(mounts: t.Iterable[CutFilesystem]) -> list[CutFilesystem]:
    """Return each file system once, by its first place: bind mounts show it again."""
    found: dict[str, CutFilesystem] = {}
    for mount in mounts:
        found.setdefault(mount.source if mount.source.startswith("/") else mount.path, mount)
    return list(found.values())


def _disks(host: Host, number: str, source: str) -> list[str]:
    """Return the drives below a mount, by kernel name; none where no block device is."""
    name = os.path.basename(host.realpath(f"/sys/dev/block/{number}")) if not number.startswith("0:") else ""
    if not name and source.startswith("/dev/"):
        name = os.path.basename(host.realpath(source))
    todo, found = [name] if name and host.exists(f"/sys/class/block/{name}") else [], []
    while todo:
        each = todo.pop()
        block = f"/sys/class/block/{each}"
        below = list(host.listdir(f"{block}/slaves"))
        if host.exists(f"{block}/partition"):
            below.append(os.path.basename(os.path.dirname(host.realpath(block))))
        todo += below
        if not below and each not in found:
            found.append(each)
    return sorted(found)


def _guests(host: Host) -> list[str]:
    """Return the virtual machines and containers that run, as words for people."""
    found: dict[str, None] = {}
    for pid in sorted((name for name in host.listdir("/proc") if name.isdigit()), key=int):
        name = (host.get(f"/proc/{pid}/comm") or "").strip()
        if _MACHINES.match(name):
            found[f"virtual machine {name} (process {pid})"] = None
        for match in _CONTAINER.finditer(host.get(f"/proc/{pid}/cgroup") or ""):
            found[f"container {match[1]} {match[2][:12]}"] = None
    return list(found)
