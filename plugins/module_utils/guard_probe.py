# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard looks at, as plain facts: who uses a drive, what lies on it, can it be opened. Reads only.

A probe that fails puts its reason into `failures`; it never leaves a fact looking harmless.
"""
from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import os
import re
import stat
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from . import drive
from .host import TIMED_OUT, Host, Result

_BLKGETSIZE64 = 0x80081272
_BLKGETDISKSEQ = 0x80081280  # Linux 5.15
_SAMPLE_BYTES = 64 * 1024
_WIPEFS_SAYS_NONE = (2, 37)  # before it, wipefs --json prints nothing at all where it finds nothing
_BLKID_NOTHING_FOUND = 2
_BLKID_AMBIVALENT = 8
# What libblkid calls partition tables; every other signature is data.
TABLE_TYPES = frozenset("gpt PMBR dos mac sun sgi bsd minix aix ultrix unixware solaris_x86 atari dasd hybrid".split())


class Mount(NamedTuple):
    """One line of a mountinfo."""

    major_minor: str
    source: str
    where: str


@dataclasses.dataclass
class Machine:
    """Facts of the host that every drive shares."""

    mounts: List[Mount] = dataclasses.field(default_factory=list)
    swaps: List[str] = dataclasses.field(default_factory=list)
    # (kernel name of the user, path that it uses): loop devices, zram writeback
    stacked: List[Tuple[str, str]] = dataclasses.field(default_factory=list)
    failures: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Facts:
    """Facts of one drive. `kind`: drive, partition or stacked; lists hold texts for the operator."""

    name: str
    path: str
    kind: str
    identity: Dict[str, Any]
    read_only: bool = False
    partitions: List[str] = dataclasses.field(default_factory=list)
    holders: List[str] = dataclasses.field(default_factory=list)
    mounts: List[str] = dataclasses.field(default_factory=list)
    swaps: List[str] = dataclasses.field(default_factory=list)
    tables: List[str] = dataclasses.field(default_factory=list)
    signatures: List[str] = dataclasses.field(default_factory=list)
    busy: bool = False
    changed: List[str] = dataclasses.field(default_factory=list)
    block_backing: Optional[str] = None
    hangs: bool = False
    failures: List[str] = dataclasses.field(default_factory=list)


def machine(host: Host) -> Machine:
    """Every mount of every namespace that /proc shows, active swap, and what the kernel stacks on paths."""
    facts = Machine()
    _read_mounts(host, facts)
    try:
        facts.swaps = [_unescape(line.split()[0]) for line in host.read("/proc/swaps").splitlines()[1:] if line.strip()]
    except (OSError, IndexError) as error:
        facts.failures.append("/proc/swaps cannot be read: %s" % error)
    for name in host.listdir("/sys/block"):
        backing = drive.backing_file(host, name)
        if backing:
            facts.stacked.append((name, backing))
        writeback = host.get("/sys/block/%s/backing_dev" % name)
        if writeback and writeback != "none":
            facts.stacked.append((name, host.realpath(writeback)))
    return facts


def probe(host: Host, name: str, held: Optional[int] = None, shared: Optional[Machine] = None) -> Facts:
    """All facts of one block device. `held`: a descriptor of it that this process opened with O_EXCL."""
    shared = shared or machine(host)
    facts = Facts(name=name, path=drive.node(name), kind=_kind(host, name), identity=drive.identity(host, name))
    facts.failures.extend(shared.failures)
    if facts.kind != "drive":
        return facts
    _probe_users(host, facts, shared)
    for step in (_probe_state, _probe_wipefs, _probe_blkid):
        step(host, facts)
    if not facts.hangs:  # else it would let this process hang too, where no signal reaches it
        _probe_node(host, facts, held)
    return facts


def _kind(host: Host, name: str) -> str:
    if host.exists("/sys/class/block/%s/partition" % name):
        return "partition"
    return "drive" if drive.is_drive(name) and host.exists("/sys/block/" + name) else "stacked"


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
            if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EINVAL):  # it ended meanwhile, or is a zombie
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
    return Mount(fields[2], _unescape(fields[dash + 2]), _unescape(fields[4]))


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _probe_users(host: Host, facts: Facts, shared: Machine) -> None:
    """Everything that is built on the drive, at any depth, and what of it is mounted or swapped to."""
    block = "/sys/block/" + facts.name
    facts.partitions = [part for part in host.listdir(block) if host.exists("%s/%s/partition" % (block, part))]
    family = [facts.name, *facts.partitions]
    for member in family:  # grows while we walk
        above = host.listdir("/sys/class/block/%s/holders" % member)
        above += [user for user, path in shared.stacked if path == drive.node(member)]
        for name in above:
            facts.holders.append("%s uses %s" % (drive.node(name), drive.node(member)))
            if name not in family:
                family.append(name)
    nodes = {drive.node(member) for member in family}
    numbers = {host.get("/sys/class/block/%s/dev" % member) for member in family}
    for mount in shared.mounts:
        if mount.major_minor in numbers or _resolved(host, mount.source) in nodes:
            facts.mounts.append("%s on %s" % (mount.source, mount.where))
    facts.swaps = [swap for swap in shared.swaps if _resolved(host, swap) in nodes]
    backing = facts.identity["backing_file"]
    if backing and backing.startswith("/dev/") and host.exists("/sys/class/block/" + backing[5:].replace("/", "!")):
        facts.block_backing = backing


def _resolved(host: Host, path: str) -> str:
    return host.realpath(path) if path.startswith("/dev/") else path


def _probe_state(host: Host, facts: Facts) -> None:
    flag = host.get("/sys/block/%s/ro" % facts.name)
    if flag not in ("0", "1"):
        facts.failures.append("/sys/block/%s/ro says %r" % (facts.name, flag))
    facts.read_only = flag == "1"


def _probe_wipefs(host: Host, facts: Facts) -> None:
    result = host.run(["wipefs", "-n", "--json", facts.path])
    if result.rc != 0:
        _fail(facts, result)
        return
    if not result.stdout.strip() and not result.stderr.strip() and _wipefs_is_silent(host):
        return
    try:
        kinds = [str(entry["type"]) for entry in json.loads(result.stdout)["signatures"]]
    except (ValueError, KeyError, TypeError):
        facts.failures.append("wipefs gave no list of signatures: %.80r" % result.stdout)
        return
    for kind in kinds:
        _add_signature(facts, kind)


def _wipefs_is_silent(host: Host) -> bool:
    match = re.search(r"util-linux (\d+)\.(\d+)", host.run(["wipefs", "--version"]).stdout)
    return bool(match) and (int(match.group(1)), int(match.group(2))) < _WIPEFS_SAYS_NONE


def _probe_blkid(host: Host, facts: Facts) -> None:
    result = host.run(["blkid", "-p", "-o", "export", facts.path])
    if result.rc == _BLKID_AMBIVALENT:
        _add_signature(facts, "several that contradict each other")
        return
    if result.rc == _BLKID_NOTHING_FOUND and not result.stdout.strip() and not result.stderr.strip():
        return
    answers = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    found = [answers[key] for key in ("PTTYPE", "TYPE") if key in answers]
    if result.rc != 0 or not found:
        _fail(facts, result)
    for kind in found:
        _add_signature(facts, kind)


def _add_signature(facts: Facts, kind: str) -> None:
    place = facts.tables if kind in TABLE_TYPES else facts.signatures
    if kind not in place:
        place.append(kind)


def _fail(facts: Facts, result: Result) -> None:
    said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[0]
    facts.failures.append("%s ended with %d and said: %.160s" % (" ".join(result.argv), result.rc, said))
    facts.hangs = facts.hangs or result.rc == TIMED_OUT


def _probe_node(host: Host, facts: Facts, held: Optional[int]) -> None:
    """Open the device node: exclusively, unless we hold it so already; what opens must be what sysfs described, and readable."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_EXCL if held is None else 0)
    try:
        handle = os.open(host.path(facts.path), flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            facts.busy = True
        else:
            facts.failures.append("%s cannot be opened: %s" % (facts.path, error.strerror))
        return
    try:
        facts.failures.extend(differences(handle, facts.identity))
        facts.failures.extend(_unreadable(handle, facts))
    finally:
        os.close(handle)
    if held is not None:
        facts.changed.extend(differences(held, facts.identity))


def differences(handle: int, identity: Dict[str, Any]) -> List[str]:
    """How an open descriptor differs from what sysfs said of the drive by name."""
    try:
        status = os.fstat(handle)
        if not stat.S_ISBLK(status.st_mode):
            return ["%s is not a block device" % identity["path"]]
        opened = {"major_minor": "%d:%d" % (os.major(status.st_rdev), os.minor(status.st_rdev)), "size_bytes": _ioctl_u64(handle, _BLKGETSIZE64)}
    except OSError as error:
        return ["the open %s cannot be examined: %s" % (identity["path"], error.strerror)]
    try:
        opened["diskseq"] = _ioctl_u64(handle, _BLKGETDISKSEQ)
    except OSError:
        pass  # a kernel before 5.15, which has no diskseq in sysfs either
    return ["the open %s has %s %s, sysfs says %s" % (identity["path"], key, value, identity[key]) for key, value in opened.items() if value != identity[key]]


def _ioctl_u64(handle: int, request: int) -> int:
    return struct.unpack("=Q", fcntl.ioctl(handle, request, bytes(8)))[0]


def _unreadable(handle: int, facts: Facts) -> List[str]:
    """Read both ends: blkid reports a drive that cannot be read as one that has nothing on it."""
    size = facts.identity["size_bytes"] or 0
    for offset in sorted({0, max(0, size - _SAMPLE_BYTES)}):
        wanted = min(_SAMPLE_BYTES, size)
        try:
            got = len(os.pread(handle, wanted, offset))
        except OSError as error:
            return ["%s cannot be read at byte %d: %s" % (facts.path, offset, error.strerror)]
        if got != wanted:
            return ["%s gave %d of %d bytes at byte %d" % (facts.path, got, wanted, offset)]
    return []
