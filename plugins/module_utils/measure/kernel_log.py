# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log says of drives and of what is above them, record by record. Pure.

A record of /dev/kmsg is `<priority>,<sequence>,<µs since the boot>,<flags>[,…];<text>`, then a line ` KEY=value` for
each property of its device (Documentation/ABI/testing/dev-kmsg). Bytes that can't be printed are `\\xNN`.

An abort is no kind of its own: the kernel aborts what timed out, and tells both in one line.
"""

from __future__ import annotations

import re
import typing as t

from ..records.health import KernelEventKind

TIMEOUT: t.Final = "timeout"
LOST_INTERRUPT: t.Final = "lost_interrupt"
RESET: t.Final = "reset"
LINK_RESET: t.Final = "link_reset"
GONE: t.Final = "gone"
MEDIUM_ERROR: t.Final = "medium_error"
IO_ERROR: t.Final = "io_error"
HOST_RESET: t.Final = "host_reset"
HOST_FAULT: t.Final = "host_fault"
# Syslog's facility of the kernel itself; whoever else writes to /dev/kmsg gets another.
_KERNEL = 0
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_PCI = r"(?P<name>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_NVME = r"nvme (?P<name>nvme\d+): "
# A port of libata, or a device on it: ata3, ata3.00.
_ATA = r"(?P<name>ata\d+(?:\.\d+)?): "
# Host, channel, target and LUN; the middle layer, its upper drivers and HBAs write it alike.
_HCTL = r"(?P<name>\d+:\d+:\d+:\d+)"
_SCSI = rf"(?:sd|scsi|ses|sg) {_HCTL}: (?:\[\w+\] )?(?:tag#\d+ )?"


class LogRecord(t.NamedTuple):
    """A record of the kernel itself. time_s: since the boot, by the clock of its log, which stands while it sleeps."""

    sequence: int
    time_s: float
    text: str


class LogEvent(t.NamedTuple):
    """What a record means. name: what it is about, as the kernel writes it: nvme0, sda, ata3.00, 2:0:0:0,
    0000:01:00.0.
    """

    time_s: float
    kind: KernelEventKind
    name: str
    text: str


def _pattern(
    kinds: KernelEventKind | tuple[KernelEventKind, ...], *forms: str
) -> list[tuple[tuple[KernelEventKind, ...], re.Pattern[str]]]:
    told = (kinds,) if isinstance(kinds, str) else kinds
    return [(told, re.compile(form)) for form in forms]


# Of Linux 4.18 to 6.12; the first that matches counts. tests/unit has a line of each, with its version.
PATTERNS = [
    # drivers/nvme/host/pci.c, core.c and ioctl.c. An I/O that is polled was done: only its interrupt was lost.
    *_pattern((TIMEOUT, RESET), _NVME + r"I/O .*timeout, reset controller"),
    *_pattern(TIMEOUT, _NVME + r"I/O .*timeout, (?:aborting|disable controller)"),
    *_pattern(LOST_INTERRUPT, _NVME + r"I/O .*timeout, completion polled"),
    *_pattern(
        RESET,
        _NVME + r"(?:controller is down; will reset|resetting controller|frozen state error detected)",
    ),
    *_pattern(
        GONE,
        _NVME + r"(?:Device not ready; aborting (?:reset|initialisation)|Removing after probe failure"
        r"|Disabling device after reset failure|failure state error detected, request disconnect)",
        rf"nvme {_PCI}: (?:can't change power state from \S+ to D0 \(config space inaccessible\)"
        r"|Unable to change power state from \S+ to D0, device inaccessible)",
    ),
    # drivers/pci/hotplug and pcie: the slot; "pciehp 0000:00:01.0:pcie004" before 5.0.
    *_pattern(GONE, rf"(?:pcieport|pciehp) {_PCI}(?::pcie\w+)?: .*Slot\([^)]*\): (?:Link Down|Card not present)$"),
    *_pattern(HOST_RESET, rf"pcieport {_PCI}: .*(?:[Ll]ink has been reset|DPC: containment event)"),
    # drivers/ata/libata-eh.c, libata-core.c.
    *_pattern(TIMEOUT, _ATA + r"(?:cmd .*Emask 0x[0-9a-f]+ \(timeout\)|qc timeout )"),
    *_pattern(LINK_RESET, _ATA + r"(?:hard|soft) resetting link"),
    *_pattern(GONE, _ATA + r"(?:disabled|disable device|reset failed, giving up|detaching \(SCSI .*\))$"),
    # drivers/scsi: the middle layer, mpt3sas, mpi3mr, megaraid_sas, uas.
    *_pattern(
        TIMEOUT,
        _SCSI + r"(?:timing out command, waited|attempting (?:task abort|abort task)|uas_eh_abort_handler"
        r"|\S+ Result: hostbyte=(?:DID_TIME_OUT|0x03)\b)",
    ),
    *_pattern(
        LINK_RESET,
        _SCSI + r"(?:Power-on or device reset occurred|[Aa]ttempting (?:device|target)(?:\(lun\))? [Rr]eset)",
        _SCSI + r"Attempting (?:Device|Target)(?:\(lun\))? Reset",
        r"scsi (?P<name>target\d+:\d+:\d+): [Aa]ttempting [Tt]arget [Rr]eset",
    ),
    *_pattern(
        GONE,
        _SCSI + r"(?:Device offlined - not ready after error recovery|rejecting I/O to (?:offline|dead) device"
        r"|.*Result: hostbyte=(?:DID_NO_CONNECT|0x01)\b)",
    ),
    # Host adapters that name a device in lines of their own.
    *_pattern(TIMEOUT, rf"smartpqi \S+: attempting TASK ABORT on scsi {_HCTL}"),
    *_pattern(LINK_RESET, rf"smartpqi \S+: resetting scsi {_HCTL}", rf"hpsa \S+: scsi {_HCTL}: resetting "),
    # Host adapters themselves: that they failed, and that they are reset, whyever.
    *_pattern(
        HOST_FAULT,
        r"(?P<name>mpt[23]sas_cm\d+): fault_state\(",
        rf"megaraid_sas {_PCI}: .*FW in FAULT state",
        rf"(?:smartpqi|hpsa) {_PCI}: [Cc]ontroller (?:(?:is )?offline|lockup detected)",
    ),
    *_pattern(
        HOST_RESET,
        r"(?P<name>mpt[23]sas_cm\d+): (?:sending diag reset|sending message unit reset|attempting host reset)",
        r"(?P<name>mpi3mr\d+): (?:controller reset is triggered by|attempting host reset)",
        rf"megaraid_sas {_PCI}: .*[Rr]esetting",
        r"(?P<name>aacraid): Host (?:adapter|bus) reset request",
        r"scsi (?P<name>host\d+): .*\breset",
    ),
    # drivers/usb/core/hub.c: the bridge of a drive in an enclosure.
    *_pattern(LINK_RESET, r"usb (?P<name>\d+-[\d.]+): reset .* USB device"),
    *_pattern(GONE, r"usb (?P<name>\d+-[\d.]+): USB disconnect"),
    # block/blk-core.c, blk-mq.c: with the name of a function before 5.16.
    *_pattern(MEDIUM_ERROR, r"(?:\w+: )?critical medium error, dev (?P<name>[\w!-]+), sector "),
    *_pattern(
        IO_ERROR, r"(?:\w+: )?(?:I/O|critical target|timeout|\S+ transport) error, dev (?P<name>[\w!-]+), sector"
    ),
]


def records(data: bytes) -> list[LogRecord]:
    """Return the kernel's own records in what was read of /dev/kmsg; what is none is left out."""
    found = []
    for line in data.decode("utf-8", "replace").split("\n"):
        head, separator, text = line.partition(";")
        fields = head.split(",")
        if not separator or len(fields) < 4 or not all(field.isdecimal() for field in fields[:3]):
            continue
        priority, sequence, time_us = (int(field) for field in fields[:3])
        if priority >> 3 == _KERNEL:
            found.append(LogRecord(sequence, time_us / 1e6, _ESCAPED.sub(_character, text)))
    return found


def _character(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 16))


def events(record: LogRecord) -> list[LogEvent]:
    """Return what a record means, as a rule nothing."""
    text = " ".join(record.text.split())
    for kinds, pattern in PATTERNS:
        match = pattern.match(text)
        if match:
            return [LogEvent(record.time_s, kind, _plain(match.group("name")), text) for kind in kinds]
    return []


def _plain(name: str) -> str:
    """Return a name as a path of sysfs has it; of a path of native multipath (nvme0c1n1) that of its head."""
    return re.sub(r"^(nvme\d+)c\d+(n\d+)$", r"\1\2", name)
