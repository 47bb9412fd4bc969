# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard looks at, as plain facts (facts.py): who uses a drive, what lies on it, can it be opened. Reads
only.

A probe that fails puts its reason into `failures`; it never leaves a fact looking harmless.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import struct
import typing as t

from ..core.host import Host
from ..drive import identity as drive
from ..drive.attributes import CommandSet, command_set
from ..records import base
from ..records.identity import Identity
from ..records.ledger import LedgerEntry
from ..tools.filesystems import SUPERBLOCK_BYTES
from . import (
    allocation_map,
    config_references,
    data_scan,
    device_users,
    etc_references,
    holdings,
    ledger_format,
    on_disk_signatures,
    superblock_layout,
    write_counters,
)
from .block_classifier import DataScan
from .block_reader import UNREADABLE, PlaceReader
from .data_scan import Terms
from .device import probe_device
from .facts import Extent, Facts, Machine, Names, add
from .nvme import probe_nvme
from .open_handles import Programs
from .rules import BY_CHANCE
from .scsi import probe_ata, probe_scsi

_BLKGETSIZE64 = 0x80081272
_BLKGETDISKSEQ = 0x80081280  # Linux 5.15
# What only a drive with these commands can tell, and needs a tool for. A loop device has nothing to tell.
_BY_COMMAND_SET: dict[CommandSet | None, t.Callable[[Host, Facts], None]] = {
    "nvme": probe_nvme,
    "ata": probe_ata,
    "scsi": probe_scsi,
}


def machine(host: Host, names: t.Mapping[str, Programs], quick: bool = False) -> Machine:
    """Return what every drive of the host shares, looked at once. names: the drives, each with the programs that only
    look at it (ssd_passing_programs); quick: they were looked at before, and are held.
    """
    facts = Machine()
    device_users.read_machine(host, facts, names, quick)
    config_references.read_machine(host, facts)
    if not quick:
        etc_references.read_texts(host, facts, config_references.parsed(host))
    return facts


def probe(
    host: Host,
    name: str,
    held: int | None = None,
    shared: Machine | None = None,
    ledger: LedgerEntry | None = None,
) -> Facts:
    """Return all facts of one block device. `held`: a descriptor of it that this process opened with O_EXCL; `ledger`:
    own_data's entry of it.
    """
    shared = shared or machine(host, {name: {}})
    who = drive.identity(host, name)
    facts = Facts(name=name, path=drive.node(name), kind=kind_of(host, name), identity=who)
    facts.failures.extend(shared.failures)
    facts.untrusted = list(shared.untrusted)
    if facts.kind != "drive":
        return facts
    device_users.probe_users(host, facts, shared)
    config_references.read_tags(host, facts)
    probe_device(host, facts)
    ask = _BY_COMMAND_SET.get(command_set(host, name, facts.identity.transport))
    if ask is not None:
        ask(host, facts)
    if ledger is not None:
        facts.own_data = ledger_format.known(ledger)
        if ledger_format.keeps_evidence(ledger):
            add(
                facts.evidence,
                f"run {ledger.run_id} left it: {ledger.reason or 'no reason was noted'}",
            )
    if not facts.sanitizing:  # until it ends nothing can be read
        for step in (on_disk_signatures.probe_wipefs, on_disk_signatures.probe_blkid):
            step(host, facts)
        if not facts.hangs:  # else it would let this process hang too, where no signal reaches it
            _probe_node(host, facts, held, ledger)
    config_references.probe_configured(host, facts, shared)
    etc_references.probe_mentions(host, facts, shared)
    return facts


def kind_of(host: Host, name: str) -> str:
    """Return whether a kernel name is a drive, a partition or stacked on others."""
    if host.exists(f"/sys/class/block/{name}/partition"):
        return "partition"
    block = "/sys/block/" + name
    return "drive" if drive.is_drive(name) and host.exists(block) and not host.listdir(block + "/slaves") else "stacked"


def superblocks(host: Host, identity: Identity, node: str, handle: int) -> list[str]:
    """Tables and superblocks that are found on a drive by now, or why they can't be looked for. node: that leads to it.
    Raises OSError.
    """
    facts = Facts(name=identity.kernel_name or "", path=node, kind="drive", identity=identity)
    for step in (on_disk_signatures.probe_wipefs, on_disk_signatures.probe_blkid):
        step(host, facts)
    on_disk_signatures.probe_places(
        host, facts, handle, identity.size_bytes or 0, identity.logical_block_size_bytes or 512
    )
    return [*facts.failures, *facts.tables, *facts.signatures, *facts.cluster]


def look_at(
    host: Host,
    facts: Facts,
    held: int | None,
    terms: Terms,
    ledger: LedgerEntry | None = None,
    lifted: t.Collection[str] = (),
    accounts: bool = False,
) -> None:
    """Look at what lies on a drive that nothing speaks against yet: superblocks at their usual places, then blocks at
    random, or all.

    lifted: codes that the drive's entry lifts; a signature or a table then does not count itself, and what lies beside
      it does. accounts: whether all that is recognised is to be accounted for (facts.holdings). Sets facts.look,
    facts.unsigned and what proves that the data is ours; superblocks become signatures. One in fio's data is there by
    chance, about once in 4,000 fills (two bytes make a JMicron RAID): on a drive that we wrote to last it does not
    count where every block around it keeps the fill's laws. Nor does a table of the kernel's or blkid's, as one fill in
    50 to 1,000 has for CONFIG_ATARI_PARTITION; but there the kernel must also have counted no write since.
    """
    # Not exclusively: for so long nobody else could mount it, or assemble what it belongs to, and plan mode changes
    # nothing.
    with _opened(host, facts, held, False) as handle:
        if handle is None:
            return
        size, block_bytes = facts.identity.size_bytes or 0, facts.identity.logical_block_size_bytes or 512
        try:
            on_disk_signatures.read_ends(facts, PlaceReader(handle, size, block_bytes))
            on_disk_signatures.probe_places(host, facts, handle, size, block_bytes)
            proves = ledger is not None and not write_counters.touched(host, ledger, base.to_json(facts.identity))
            if accounts:
                holdings.account(facts, PlaceReader(handle, size, block_bytes))
            doubtful = _found(facts) - set(lifted)
            by_chance = (
                bool(doubtful)
                and proves
                and doubtful <= may_be_chance(facts)
                and ("partition_table" not in doubtful or _is_uncounted(host, facts, ledger))
                and data_scan.is_fill_where(handle, size, _superblocks(host, facts))
            )
            if not doubtful or by_chance:
                excused = _lifted(facts, lifted) + _sentinels(PlaceReader(handle, size, block_bytes), ledger)
                if facts.name.startswith("loop"):
                    allocation_map.from_loop(host, facts, handle)
                in_zones = allocation_map.from_zones(host, facts, handle)
                _keep(facts, data_scan.scan(handle, size, terms, excused, not proves, facts.allocated), proves)
                add(facts.unsigned, *in_zones)
                if by_chance and facts.own_data is not None and facts.own_data.proved:
                    _forget(facts, doubtful)
        except OSError as error:
            facts.failures.append(_unread(facts, error))
            return
    if (
        facts.own_data is not None
        and ledger is not None
        and write_counters.untouched(host, ledger, base.to_json(facts.identity))
    ):
        facts.own_data = dataclasses.replace(facts.own_data, proved="counters")


def _lifted(facts: Facts, codes: t.Collection[str]) -> list[Extent]:
    """Return where the tables and signatures lie that the drive's entry lifts."""
    known = [mark for mark in facts.marks if ("partition_table" if mark.is_table else "signature") in codes]
    return [Extent(mark.offset, mark.length) for mark in known]


def _keep(facts: Facts, seen: DataScan, proves: bool) -> None:
    """proves: whether fio's data, if there is nothing else, is proved to be ours."""
    facts.look = seen.record(facts.allocated_bytes)
    if seen.unreadable:
        add(facts.unsigned, on_disk_signatures.UNREADABLE.format(*seen.unreadable))
    elif seen.foreign is not None:
        add(facts.unsigned, f"the block at byte {seen.foreign} is not blank")
    elif len(seen.fills) > 1:
        add(facts.unsigned, "some of its blocks hold zeros and some ones, so it is not blank")
    elif seen.filled:
        add(facts.unsigned, f"the block at byte {seen.first_filled or 0} is random data of fio")
    if facts.own_data is not None and seen.only_fill and proves:
        facts.own_data = dataclasses.replace(facts.own_data, proved="content")


def may_be_chance(facts: Facts) -> set[str]:
    """Return which codes may be there by chance, in random data of ours."""
    return {"signature"} if on_disk_signatures.has_known_table(facts) else set(BY_CHANCE)


def _found(facts: Facts) -> set[str]:
    found = {"signature": facts.signatures, "partition_table": [*facts.tables, *facts.partitions]}
    return {code for code, findings in found.items() if findings}


def _forget(facts: Facts, codes: t.Collection[str]) -> None:
    if "signature" in codes:
        facts.signatures.clear()
    if "partition_table" in codes:
        facts.tables.clear()
        facts.partitions.clear()


def _is_uncounted(host: Host, facts: Facts, ledger: LedgerEntry | None) -> bool:
    return ledger is not None and write_counters.uncounted(host, ledger, base.to_json(facts.identity))


def _superblocks(host: Host, facts: Facts) -> list[Extent]:
    """Return where wipefs, blkid and the search for copies can have found a superblock, beside both ends of
    the drive.
    """
    places = [
        *superblock_layout.FIRST_PARTITIONS,
        *(part.start_bytes for _name, part in on_disk_signatures.of_kernel(host, facts, [])),
    ]
    starts = [Extent(start, superblock_layout.WITHIN_BYTES) for start in places]
    return [*starts, *(Extent(mark.offset, mark.length) for mark in facts.marks)]


def _sentinels(reader: PlaceReader, ledger: LedgerEntry | None) -> list[Extent]:
    """Return the blocks that a purge of ours was to be proved with, where they are still there."""
    return [
        Extent(item.offset, item.length)
        for item in (ledger and ledger.sentinels) or ()
        if ledger_format.fingerprint(reader.read(item.offset, item.length)) == item.sha256
    ]


@contextlib.contextmanager
def _opened(host: Host, facts: Facts, held: int | None, exclusively: bool = True) -> t.Iterator[int | None]:
    """The device node: exclusively if asked for, unless we hold it so already. None where it can't be opened, or is not
    what sysfs described.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECT
    handle: int | None = None
    try:
        handle = host.open(facts.path, flags | (os.O_EXCL if exclusively and held is None else 0))
    except OSError as error:
        if error.errno == errno.EBUSY:
            facts.busy = True
            handle = _open_shared(host, facts, flags)
        else:
            facts.failures.append(f"{facts.path} cannot be opened: {error.strerror}")
    if handle is None:
        yield None
        return
    try:
        wrong = differences(host, handle, base.to_json(facts.identity))
        facts.failures.extend(wrong)
        yield None if wrong else handle
    finally:
        os.close(handle)
    if held is not None:
        facts.changed.extend(differences(host, held, base.to_json(facts.identity)))


def _probe_node(host: Host, facts: Facts, held: int | None, ledger: LedgerEntry | None) -> None:
    """What opens must be what sysfs described, and readable; what its tables say; which test made its file system."""
    with _opened(host, facts, held) as handle:
        if handle is None:
            return
        reader = PlaceReader(handle, facts.identity.size_bytes or 0, facts.identity.logical_block_size_bytes or 512)
        try:
            on_disk_signatures.probe_blocks(host, facts, reader)
            holdings.examine(host, facts, reader)
            known = ledger.filesystem if ledger else None
            of_test = ledger_format.leftover_filesystem(known, reader.read(0, SUPERBLOCK_BYTES))
            if of_test:
                add(facts.signatures, of_test)
                facts.holdings.problems.append(of_test)
        except OSError as error:  # blkid reports a drive that cannot be read as one that has nothing on it
            facts.failures.append(_unread(facts, error))


def _unread(facts: Facts, error: OSError) -> str:
    """Return what to do about a drive of which nobody can tell what lies on it."""
    advice = "; if nothing on it is needed, empty it by hand (nvme format, blkdiscard)"
    return f"{facts.path} cannot be read: {error.strerror or error}" + advice * (error.errno in UNREADABLE)


def _open_shared(host: Host, facts: Facts, flags: int) -> int | None:
    """A busy drive is refused; what lies on it is still told."""
    try:
        return host.open(facts.path, flags)
    except OSError as error:
        facts.failures.append(f"{facts.path} cannot be opened: {error.strerror}")
        return None


def differences(host: Host, handle: int, identity: Names) -> list[str]:
    """Return how an open descriptor differs from what sysfs said of the drive by name."""
    try:
        number = host.device_number(handle)
        if number is None:
            return ["{} is not a block device".format(identity["path"])]
        opened = {
            "major_minor": number,
            "size_bytes": _ioctl_u64(host, handle, _BLKGETSIZE64),
        }
    except OSError as error:
        return ["the open {} cannot be examined: {}".format(identity["path"], error.strerror)]
    try:
        opened["diskseq"] = _ioctl_u64(host, handle, _BLKGETDISKSEQ)
    except OSError:
        pass  # a kernel before 5.15, which has no diskseq in sysfs either
    return [
        "the open {} has {} {}, sysfs says {}".format(identity["path"], key, value, identity[key])
        for key, value in opened.items()
        if value != identity[key]
    ]


def _ioctl_u64(host: Host, handle: int, request: int) -> int:
    (value,) = struct.unpack("=Q", host.ioctl(handle, request, bytes(8)))
    return int(value)
