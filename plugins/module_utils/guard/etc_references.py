# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any line below /etc that names a drive, whatever program the file is for: so `configured` need not know them all; and
what the machine boots from.

A text that names a drive need not mean that it is used, so such a match can be lifted (`allow: [mentioned]`).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import typing as t
import uuid

from ..core.host import TIMED_OUT, Host
from ..drive import identity
from ..drive.entry import wwn_key
from .device_aliases import device_number
from .facts import Facts, HostFile, Machine, add

TOP = "/etc"
MOST_BYTES, MOST_FILES, MOST_S = 1 << 20, 20000, 60.0
# What only watches or tunes drives, keeps a record of what was, or is an inventory: it names drives that nobody uses.
_NO_USE = re.compile(
    r"/etc/(lvm/(archive|backup|cache|devices/backup)/|smartd\.conf$|smartmontools/|hdparm\.conf$|tuned/"
    r"|multipath(\.conf$|/)|ansible/|target/backup/"
    r"|selinux/|ssl/|pki/|alternatives/|blkid\.tab|mtab$|adjtime$"
    r"|telegraf/|collectd|netdata/|zabbix/|prometheus|munin/|nagios|icinga|nrpe|snmp/|sysstat/|hddtemp|udisks2/|tlp"
    r"|default/(hddtemp|smartmontools|prometheus-[^/]*)$)|/\.git/"
)
# Of what a parser knows, these name drives that were there last, or that a privileged container has like all others.
_PARSED_WHOLLY = re.compile(r"/etc/lvm/devices/|/etc/zfs/zpool\.cache$|/var/lib/(containers|docker)/")
# What LVM is told to leave alone: "r|^/dev/sda$|".
_REJECTED = re.compile(rb"""(["'])r([^\w\s"']).*?\2\1""")
# Further places of the site's own words: what runs at its hour, and what was built or made on the machine.
_MORE = (
    "/var/spool/cron/*",
    "/var/spool/cron/crontabs/*",
    "/var/spool/cron/atjobs/*",
    "/var/spool/at/*",
    "/var/spool/atjobs/*",
    "/usr/local/etc/*",
    "/usr/local/etc/*/*",
    # Services that no package brought and that are not below /etc: of systemd-run, such as one that waits for its
    # hour, of generators, and of the site. `configured` knows other units.
    *(
        f"{folder}/{name}"
        for folder in ("/run/systemd/transient", "/run/systemd/system", "/usr/local/lib/systemd/system")
        for name in ("*.service", "*.service.d/*.conf")
    ),
)
# A unit's name holds the device that it is for: db@dev-sda.service, dev-sda.device.wants/ (systemd.unit(5)).
_UNIT_OF_DEVICE = re.compile(r"(?:^|@)(dev-[^/]+?)\.(?:service|device|socket|target|timer|path|mount|swap)(?:\.|$)")
# What a package brought, and what is made anew at each boot: a link of /etc that leads there, as most units' do, says
# nothing of this site.
_NOT_THE_SITES = re.compile(r"/(usr/(?!local/)|lib|proc/|sys/|dev/|run/)")
# How the machine was started, and may be the next time. GRUB's device.map lists every drive.
_BOOT = (
    "/proc/cmdline",
    "/boot/grub*/grub.cfg",
    "/boot/loader/entries/*.conf",
    "/boot/efi/loader/entries/*.conf",
    "/boot/efi/EFI/*/grub.cfg",
    "/efi/loader/entries/*.conf",
    "/boot/extlinux/extlinux.conf",
    "/boot/grub*/grubenv",
    "/boot/efi/EFI/*/grubenv",
    "/boot/cmdline.txt",
    "/boot/firmware/cmdline.txt",
    "/boot/refind_linux.conf",
)
_RESUME = re.compile(rb"\b(?:no)?resume=[^\s\"']+", re.IGNORECASE)  # `configured` knows it, under another code
_BOOT_ENTRIES = "/sys/firmware/efi/efivars/Boot[0-9A-F][0-9A-F][0-9A-F][0-9A-F]-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# A hard drive's node of a device path with a GPT partition's GUID: UEFI 2.10, 10.3.5.1.
_HARD_DRIVE = re.compile(rb"\x04\x01\x2a\x00.{20}(.{16})\x02\x02", re.DOTALL)
# What names a volume group by its bare name, to give volumes of it to others.
_STORAGE = re.compile(
    r"/etc/(pve|libvirt|xen|lxc|incus|cinder|nova|drbd|linstor|target|nvmet|kubernetes|cluster)(/|\.d/)"
)
_NOT_IN_FORCE = (
    ".bak",
    ".old",
    ".orig",
    ".save",
    ".swp",
    "~",
    ".dpkg-old",
    ".dpkg-dist",
    ".dpkg-new",
    ".dpkg-bak",
    ".ucf-old",
    ".ucf-dist",
    ".rpmsave",
    ".rpmnew",
    ".rpmorig",
)
_INVENTORY = re.compile(rb"^[^#;\n]*\bssd_drives[\"']?[ \t]*[:=]", re.MULTILINE)
# Lines that only fio's job files have together; they start nothing by themselves.
_FIO_JOB = tuple(
    re.compile(rb"^[ \t]*" + line, re.MULTILINE)
    for line in (
        rb"\[[^]\n]+\][ \t]*$",
        rb"(rw|readwrite)[ \t]*=",
        rb"filename[ \t]*=",
        rb"(ioengine|iodepth|numjobs)[ \t]*=",
    )
)
# Which by itself uses no drive; anything more in its line may.
_FIO_FILENAME = re.compile(rb"^[ \t]*filename[ \t]*=[^\s;&|<>`$()]*[ \t\r]*$", re.MULTILINE)
# A command that only asks a drive, alone in a line of cron (when, perhaps a user): it holds, mounts and writes nothing.
_CRON = re.compile(r"/(etc/cron|etc/anacrontab$|var/spool/cron)")
_ONLY_ASKS = re.compile(
    rb"[ \t]*(?:@\w+|(?:[-\w*/,]+[ \t]+){4}[-\w*/,]+)[ \t]+(?:[-\w]+[ \t]+)?"
    rb"(?:/[-\w/]*/)?(?:smartctl|nvme[ \t]+(?:smart-log|error-log|id-ctrl|list))[ \t]"
    rb"[^;&|<>`$()\\%]*(?:>>?[ \t]*/dev/null(?:[ \t]+2>&1)?)?[ \t]*"
)
_COMMENT = re.compile(rb"\s*(#|;|//|--\s|!|<!--|\.\\\")")
_NO_DEVICES = ("shm", "pts", "mqueue", "hugepages", "fd", "char", "input", "bus", "cpu")
_LEAST_SERIAL = 6  # a shorter one may stand for anything
_PARTITION, _PARTITION_OF_LETTERS = r"(?:-part[0-9]+|p[0-9]+)?", r"(?:-part[0-9]+|[0-9]+)?"
_WHOLE = r"(?<![\w/.-])(?:0x|naa\.|eui\.|uuid\.|wwn-0x|luks-)?(?:%s)(?![\w-])"
_DPKG_STATUS = "/var/lib/dpkg/status"
_UCF_HASHES = "/var/lib/ucf/hashfile"  # of files that Debian's packages make when they are set up
_ASK_S = 20.0


def read_texts(host: Host, facts: Machine, parsed: set[str]) -> None:
    """Keep the text of every file below /etc, within bounds, and of those that start the machine. parsed: files that
    `configured` reads by their own rules; what these rules do not understand counts here.
    """
    _read_boot(host, facts)
    for path in [path for pattern in _MORE for path in host.glob(pattern)]:
        facts.texts.append(HostFile(path, _read(host, path) or b""))
    outside = [path for path in sorted(parsed) if not (path.startswith(TOP + "/") or _PARSED_WHOLLY.match(path))]
    facts.texts += [HostFile(path, _read(host, path) or b"", True) for path in outside]
    began, count = time.monotonic(), 0
    top = host.path(TOP)
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted([*names, *(each for each in folders if _UNIT_OF_DEVICE.search(each))]):
            path = TOP + os.path.join(folder, name)[len(top) :]
            if _NO_USE.search(path) or name.endswith(_NOT_IN_FORCE):
                continue
            facts.texts += _named_by_its_place(host, path)
            data = None if _PARSED_WHOLLY.match(path) else _read(host, path)
            count += data is not None
            if count > MOST_FILES or time.monotonic() - began > MOST_S:
                facts.texts_cut = f"the search of {TOP} ended at {path}, after {count} files"
                return
            if data and not _INVENTORY.search(data):
                facts.texts.append(HostFile(path, _relevant(path, data), path in parsed))


def _relevant(path: str, data: bytes) -> bytes:
    """Without what `configured` tells under a code of its own, and what names a drive to leave it alone."""
    if path.startswith("/etc/lvm/"):
        return _REJECTED.sub(b"", data)
    if not data.startswith(b"#!") and all(part.search(data) for part in _FIO_JOB):
        data = _FIO_FILENAME.sub(b"", data)
    return _RESUME.sub(b"", data)


def _named_by_its_place(host: Host, path: str) -> list[HostFile]:
    """Return what no line of a file tells: a link that leads to a device, a unit that is called after one."""
    found = []
    if os.path.islink(host.path(path)):
        target = host.readlink(path) or ""
        found = [name for name in (target, host.realpath(path)) if name.startswith("/dev/")]
    unit = _UNIT_OF_DEVICE.search(os.path.basename(path))
    if unit:
        name = unit.group(1).replace("-", "/")
        found.append("/" + re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match.group(1), 16)), name))
    return [HostFile(path, name.encode("utf-8", "surrogateescape")) for name in dict.fromkeys(found)]


def _read_boot(host: Host, facts: Machine) -> None:
    """The kernel's command line, boot loaders' menus, and partitions that the firmware starts."""
    for path in [path for pattern in _BOOT for path in host.glob(pattern)]:
        facts.texts.append(HostFile(path, _RESUME.sub(b"", _read(host, path) or b"")))
    for path in host.glob(_BOOT_ENTRIES):
        try:
            found = _HARD_DRIVE.findall(host.read_bytes(path))
        except OSError:
            continue
        facts.texts += [HostFile(path, str(uuid.UUID(bytes_le=guid)).encode()) for guid in found]


def _read(host: Host, path: str) -> bytes | None:
    """Return a plain file's text; None for what is none, is too large or can't be read.

    Links count where they lead out of /etc to what is this site's own; what they lead to below /etc has its own place.
    """
    try:
        if os.path.islink(host.path(path)):
            path = host.realpath(path)
            if path.startswith(TOP + "/") or _NOT_THE_SITES.match(path):
                return None
        status = os.lstat(host.path(path))
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            return None
        data = host.read_bytes(path)
    except OSError:
        return None
    return None if b"\0" in data[:4096] else data


def probe_mentions(host: Host, facts: Facts, shared: Machine) -> None:
    """The lines that name the drive, or anything on it: file and line."""
    _probe_groups(facts, shared)
    if shared.texts_cut:
        add(facts.mentioned, shared.texts_cut)
    names = _names(host, facts)
    pattern, plain = _pattern(names), [name.encode().lower() for name in names]
    for text in shared.texts:
        lowered = text.data.lower()
        # Thirty times as fast as the pattern, which few files need.
        if not any(name in lowered for name in plain):
            continue
        lines = list(_lines(text, pattern))
        told = text.parsed and any(found.startswith(text.path + " (") for found in (*facts.configured, *facts.lines))
        if lines and not told and not _as_shipped(host, text):
            add(facts.mentioned, *(f"{text.path}, line {number}" for number in lines[:2]))


def _probe_groups(facts: Facts, shared: Machine) -> None:
    """Whether a volume group or an array on the drive is what virtual machines or a cluster get their volumes from."""
    names = {one.member.name for one in facts.holdings.contents if one.member}
    for text in [text for text in shared.texts if _STORAGE.match(text.path)]:
        for name in sorted(names):
            if re.search((_WHOLE % re.escape(name)).encode(), text.data):
                add(facts.holdings.problems, f"{text.path} gives volumes of {name} to virtual machines or a cluster")


def _lines(text: HostFile, pattern: t.Pattern[bytes]) -> t.Iterable[int]:
    """Numbers of the lines that name the drive, not in a comment, and may do something to it."""
    data, is_cron = text.data, bool(_CRON.match(text.path))
    for match in pattern.finditer(data):
        start = data.rfind(b"\n", 0, match.start()) + 1
        before = data[start : match.start()]
        line = data[start:].partition(b"\n")[0]
        asks = is_cron and _ONLY_ASKS.fullmatch(line)
        if not asks and not _COMMENT.match(data, start) and not re.search(rb"\s#", before):
            yield data.count(b"\n", 0, match.start()) + 1


def _names(host: Host, facts: Facts) -> dict[str, str]:
    """{what names the drive: what may follow it, as a pattern}: a partition that is not there now counts too."""
    paths = {identity.node(member) for member in facts.family} | {tag for tag in facts.tags if tag.startswith("/dev/")}
    paths |= _other_names(host, paths, facts.numbers)
    uuids = [tag.partition("=")[2] for tag in facts.tags if tag.startswith(("UUID=", "PARTUUID="))]
    words = {word for uuid in uuids for word in _written(uuid)}
    words |= {tag for tag in facts.tags if tag.startswith(("LABEL=", "PARTLABEL="))}
    serial = str(facts.identity.serial or "")
    words |= {serial} if len(serial) >= _LEAST_SERIAL and re.search(r"[0-9]", serial) else set()
    world_wide = wwn_key(str(facts.identity.wwn or "")) or ""
    words |= {world_wide} if len(world_wide) >= 12 else set()
    files = {str(facts.identity.backing_file)} if facts.identity.backing_file else set()
    partitions = {path: _PARTITION if path[-1:].isdigit() else _PARTITION_OF_LETTERS for path in paths}
    return {**{word: "" for word in words | files if word}, **partitions}


def _pattern(names: t.Mapping[str, str]) -> t.Pattern[bytes]:
    """Return each of these names as a whole: neither sda in sdaa nor SN1 in SN10."""
    alternatives = sorted(re.escape(name) + more for name, more in names.items())
    return re.compile((_WHOLE % "|".join(alternatives)).encode(), re.IGNORECASE)


def _other_names(host: Host, nodes: set[str], numbers: set[str]) -> set[str]:
    """Links and nodes below /dev that lead to these, whoever made them."""
    found, top = set(), host.path("/dev")
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if each not in _NO_DEVICES]
        for path in ("/dev" + os.path.join(folder, name)[len(top) :] for name in names):
            is_link = os.path.islink(host.path(path))
            if host.realpath(path) in nodes if is_link else device_number(host, path) in numbers:
                found.add(path)
    return found


def _written(uuid: str) -> list[str]:
    """Return a UUID as files have it, and as mdadm groups it: tags keep it without separators."""
    if not re.fullmatch(r"[0-9a-f]{32}", uuid):
        return [uuid] if len(uuid) >= _LEAST_SERIAL else []
    parts = (uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])
    return ["-".join(parts), ":".join(uuid[place : place + 8] for place in range(0, 32, 8))]


def _as_shipped(host: Host, text: HostFile) -> bool:
    """Return whether a file is as its package brought it: then it names devices as examples. A host may have both kinds
    of packages' tools.
    """
    known = "{}  {}".format(host.get(_DPKG_STATUS) or "", host.get(_UCF_HASHES) or "")
    digest = _md5(text.data)
    name = re.escape(text.path)
    if digest and re.search(rf"^ {name} {digest}( |$)|^\s*{digest}  {name}$", known, re.MULTILINE):
        return True
    if not (host.exists("/var/lib/rpm") or host.exists("/usr/lib/sysimage/rpm")):
        return False
    if host.run(["rpm", "-qf", text.path], timeout_s=_ASK_S).rc != 0:
        return False
    # It tells all files of the packages; of one, what differs at which place: the digest is the third, and its mode,
    # owner or time says nothing here.
    changed = host.run(["rpm", "-Vf", "--nodeps", "--noscripts", text.path], timeout_s=_ASK_S)
    return 0 <= changed.rc < TIMED_OUT and not re.search(rf"^(..[^.]|missing ).* {name}$", changed.stdout, re.MULTILINE)


def _md5(data: bytes) -> str:
    try:
        return hashlib.md5(data).hexdigest()
    except ValueError:  # a machine where MD5 is forbidden
        return ""
