# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""md arrays: how mdadm is called, and what sysfs shows of one. An array of ours has no superblock (`--build`): nothing
on its members says that they are one, so nothing assembles it again, and nothing has to be taken off them.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host

PACKAGE = "mdadm"
# Numbers from here down are those that mdadm itself takes for arrays without a name of their own.
HIGHEST = 127
# So much more or less than the average is chance, or what lies beside a range that ends within a stripe.
UNEVEN, UNEVEN_BYTES = 0.1, 64 << 20


class Array(t.NamedTuple):
    """An array as the kernel has it. members: device numbers ("259:0"); metadata: "none" without a superblock."""

    level: str
    metadata: str
    chunk_bytes: int
    members: frozenset[str]
    number: str


def build_argv(device: str, level: int, chunk_bytes: int, paths: t.Sequence[str]) -> list[str]:
    """Make an array of these drives without writing to them. mdadm counts chunks in KiB."""
    shape = [f"--level={level}", f"--chunk={chunk_bytes // 1024}", f"--raid-devices={len(paths)}"]
    return ["mdadm", "--build", device, *shape, *paths]


def stop_argv(device: str) -> list[str]:
    """Take an array apart."""
    return ["mdadm", "--stop", device]


def size_bytes(sizes_bytes: t.Iterable[int], chunk_bytes: int) -> int:
    """Of a RAID 0: of each member, the whole chunks."""
    return sum(size // chunk_bytes * chunk_bytes for size in sizes_bytes)


def uneven(written: t.Sequence[int | None]) -> list[int]:
    """Return which members of a RAID 0 were not written to as much as the others: striping gives each its share, a
    member of another size or in another's place does not get it. written: bytes of each; None where the kernel does not
    count.
    """
    known = [amount for amount in written if amount is not None]
    share = sum(known) / float(len(known) or 1)
    slack = max(UNEVEN * share, UNEVEN_BYTES)
    return [place for place, amount in enumerate(written) if amount is not None and abs(amount - share) > slack]


def free_name(host: Host) -> str:
    """Return a kernel name that no array has; "" where all are taken."""
    taken = set(host.listdir("/sys/block"))
    return next((f"md{number}" for number in range(HIGHEST, -1, -1) if f"md{number}" not in taken), "")


def read_array(host: Host, name: str) -> Array | None:
    """Return an array by its kernel name; None where none is active."""
    block = f"/sys/block/{name}/"
    level, number = host.get(block + "md/level"), host.get(block + "dev")
    numbers = [host.get(f"{block}slaves/{each}/dev") for each in host.listdir(block + "slaves")]
    members = frozenset(filter(None, numbers))
    if not level or not number or not members:
        return None
    chunk = host.get(block + "md/chunk_size") or "0"
    return Array(level, host.get(block + "md/metadata_version") or "", int(chunk), members, number)


def missing_tools(host: Host, level: int) -> str:
    """Return what the host does not have that an array takes; "" for nothing."""
    if not host.which("mdadm"):
        return f"mdadm is missing; install {PACKAGE}"
    known = (host.get("/proc/mdstat") or "").partition("\n")[0].split()
    if f"[raid{level}]" in known or host.run(["modprobe", "--dry-run", "--quiet", f"raid{level}"]).rc == 0:
        return ""
    return (
        f"this kernel has no RAID {level} (modprobe raid{level} finds no module): boot one with CONFIG_MD_RAID{level}"
    )
