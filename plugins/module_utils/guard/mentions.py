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
import uuid
from typing import Iterable, Pattern

from ..core.host import TIMED_OUT, Host
from ..drive import identity
from ..drive.entry import BY_ID, wwn_key
from .facts import Facts, Machine, Text, add

TOP = "/etc"
MOST_BYTES, MOST_FILES, MOST_S = 1 << 20, 20000, 10.0
# What only watches or tunes drives, keeps a record of what was, or is an inventory: it names drives that nobody uses.
_NO_USE = re.compile(
    r"/etc/(lvm/(archive|backup|cache|devices/backup)/|smartd\.conf$|smartmontools/|hdparm\.conf$|tuned/|multipath(\.conf$|/)|ansible/|target/backup/"
    r"|selinux/|ssl/|pki/|alternatives/|blkid\.tab|mtab$|adjtime$)|/\.git/"
)
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
)
_RESUME = re.compile(rb"\b(?:no)?resume=\S+")  # `configured` knows it, under another code
_BOOT_ENTRIES = "/sys/firmware/efi/efivars/Boot[0-9A-F][0-9A-F][0-9A-F][0-9A-F]-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# A hard drive's node of a device path with a GPT partition's GUID: UEFI 2.10, 10.3.5.1.
_HARD_DRIVE = re.compile(rb"\x04\x01\x2a\x00.{20}(.{16})\x02\x02", re.DOTALL)
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
_INVENTORY = b"ssd_drives"
_COMMENT = re.compile(rb"\s*(#|;|//|--\s|!|<!--|\.\\\")")
_LEAST_SERIAL = 6  # a shorter one may stand for anything
_PARTITION, _PARTITION_OF_LETTERS = r"(?:-part[0-9]+|p[0-9]+)?", r"(?:-part[0-9]+|[0-9]+)?"
_WHOLE = r"(?<![\w/.-])(?:0x|naa\.|eui\.|uuid\.|wwn-0x)?(?:%s)(?![\w-])"
_DPKG_STATUS = "/var/lib/dpkg/status"
_UCF_HASHES = "/var/lib/ucf/hashfile"  # of files that Debian's packages make when they are set up
_ASK_S = 20.0


def read_texts(host: Host, facts: Machine, parsed: set[str]) -> None:
    """Keep the text of every file below /etc, within bounds, and of those that start the machine. parsed: files that
    `configured` reads by their own rules.
    """
    _read_boot(host, facts)
    began, count = time.monotonic(), 0
    top = host.path(TOP)
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = TOP + os.path.join(folder, name)[len(top) :]
            if path in parsed or _NO_USE.search(path) or name.endswith(_NOT_IN_FORCE):
                continue
            data = _read(host, path)
            count += data is not None
            if count > MOST_FILES or time.monotonic() - began > MOST_S:
                facts.texts_cut = f"the search of {TOP} ended at {path}, after {count} files"
                return
            if data and _INVENTORY not in data:
                facts.texts.append(Text(path, data))


def _read_boot(host: Host, facts: Machine) -> None:
    """The kernel's command line, boot loaders' menus, and partitions that the firmware starts."""
    for path in [path for pattern in _BOOT for path in host.glob(pattern)]:
        facts.texts.append(Text(path, _RESUME.sub(b"", _read(host, path) or b"")))
    for path in host.glob(_BOOT_ENTRIES):
        try:
            found = _HARD_DRIVE.findall(host.read_bytes(path))
        except OSError:
            continue
        facts.texts += [Text(path, str(uuid.UUID(bytes_le=guid)).encode()) for guid in found]


def _read(host: Host, path: str) -> bytes | None:
    """A plain file's text; None for what is none, is too large or can't be read.

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
    if shared.texts_cut:
        add(facts.mentioned, shared.texts_cut)
    pattern = _pattern(host, facts)
    for text in shared.texts:
        lines = list(_lines(text.data, pattern))
        if lines and not _as_shipped(host, text):
            add(facts.mentioned, *(f"{text.path}, line {number}" for number in lines[:2]))


def _lines(data: bytes, pattern: Pattern[bytes]) -> Iterable[int]:
    """Numbers of the lines that name the drive and not in a comment."""
    for match in pattern.finditer(data):
        start = data.rfind(b"\n", 0, match.start()) + 1
        before = data[start : match.start()]
        if not _COMMENT.match(data, start) and not re.search(rb"\s#", before):
            yield data.count(b"\n", 0, match.start()) + 1


def _pattern(host: Host, facts: Facts) -> Pattern[bytes]:
    """What names the drive, each as a whole: neither sda in sdaa nor SN1 in SN10. A partition that is not there now
    counts too.
    """
    paths = {identity.node(member) for member in facts.family} | {tag for tag in facts.tags if tag.startswith("/dev/")}
    paths |= {link for link in host.glob(BY_ID + "*") if host.realpath(link) in paths}
    words = {_written(tag.partition("=")[2]) for tag in facts.tags if tag.startswith(("UUID=", "PARTUUID="))}
    words |= {tag for tag in facts.tags if tag.startswith(("LABEL=", "PARTLABEL="))}
    serial = str(facts.identity.get("serial") or "")
    words |= {serial} if len(serial) >= _LEAST_SERIAL and re.search(r"[0-9]", serial) else set()
    world_wide = wwn_key(str(facts.identity.get("wwn") or "")) or ""
    words |= {world_wide} if len(world_wide) >= 12 else set()
    files = {str(facts.identity["backing_file"])} if facts.identity.get("backing_file") else set()
    alternatives = [re.escape(path) + (_PARTITION if path[-1:].isdigit() else _PARTITION_OF_LETTERS) for path in paths]
    alternatives += [re.escape(word) for word in words | files if word]
    return re.compile((_WHOLE % "|".join(sorted(alternatives))).encode(), re.IGNORECASE)


def _written(uuid: str) -> str:
    """A UUID as files have it: tags keep it without separators."""
    parts = (uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])
    return "-".join(parts) if re.fullmatch(r"[0-9a-f]{32}", uuid) else uuid if len(uuid) >= _LEAST_SERIAL else ""


def _as_shipped(host: Host, text: Text) -> bool:
    """Whether a file is as its package brought it: then it names devices as examples. A host may have both kinds of
    packages' tools.
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
