# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SATA and SAS drives say of themselves to hdparm and sg3_utils: security, sanitize, reservations, Opal."""

from __future__ import annotations

from ..core.host import COMMAND_NOT_FOUND, Host, Result
from ..core.progress import FAILED, RUNNING, Progress, Unreadable
from ..tools import hdparm, opal, sg3
from . import allocation_map
from .device import judge_rotation
from .facts import Facts, add

_NO_SUCH_COMMAND = (5, 9)  # sg3_utils(8): illegal request, invalid opcode
_TRUSTED = (
    60 + 2 * 48
)  # IDENTIFY DEVICE starts at byte 60 of VPD page 89h (SAT-3); word 48, bit 0: Trusted Computing (ACS-3)


def probe_ata(host: Host, facts: Facts) -> None:
    """A SATA drive, also one behind a SAS controller."""
    if _missing(host, facts, ["hdparm", "-V"]):
        return
    try:
        found = hdparm.read(host, facts.path, facts.identity.serial)
    except ValueError as error:
        facts.failures.append(str(error))
        return
    security = found.security
    for name, bad in (
        ("locked", security.locked),
        ("enabled", security.enabled),
        ("its attempts have expired", security.expired),
    ):
        add(facts.ata_security, *([name] if bad else []))
    facts.ata_frozen = security.frozen
    judge_rotation(facts, found.rotation_rate)
    if found.sanitize:
        try:
            _sanitize(facts, hdparm.sanitize_status(host.run(["hdparm", "--sanitize-status", facts.path])))
        except ValueError as error:
            facts.failures.append(str(error))
    trusted = _claims_trusted(host, facts)
    if trusted is not False:
        _opal(host, facts, expected=bool(trusted))


def probe_scsi(host: Host, facts: Facts) -> None:
    """A SAS drive."""
    if _missing(host, facts, ["sg_turs", "--version"]):
        return
    try:
        _sanitize(facts, sg3.progress(host, facts.path))
    except Unreadable as error:
        facts.failures.append(str(error))
    _reservations(host, facts)
    _opal(host, facts, expected=False)
    allocation_map.from_scsi(host, facts)


def _missing(host: Host, facts: Facts, argv: list[str]) -> bool:
    result = host.run(argv)
    if result.rc == COMMAND_NOT_FOUND:
        facts.failed(result)
    return result.rc == COMMAND_NOT_FOUND


def _sanitize(facts: Facts, progress: Progress) -> None:
    if progress.state == RUNNING:
        add(facts.sanitizing, progress.detail or "it runs")
    if progress.state == FAILED:
        add(facts.sanitize_failed, progress.detail)


def _reservations(host: Host, facts: Facts) -> None:
    """Registered keys: none can hold a reservation without one. A drive without the command has none."""
    result = sg3.run(host, ["sg_persist", "--in", "--read-keys", "--hex", "--readonly", facts.path])
    if result.rc in _NO_SUCH_COMMAND:
        return
    if result.rc != 0:
        facts.failed(result, sg3.explain(result))
        return
    try:
        keys = sg3.reservation_keys(result.stdout)
    except ValueError as error:
        facts.failures.append(f"sg_persist {facts.path}: {error}")
        return
    if keys:
        add(facts.reserved, "the keys {} are registered".format(", ".join("0x" + key for key in keys)))


def _claims_trusted(host: Host, facts: Facts) -> bool | None:
    """Return whether IDENTIFY DEVICE names the Trusted Computing feature set; None where the kernel keeps no
    page 89h.
    """
    try:
        page = host.read_bytes(f"/sys/block/{facts.name}/device/vpd_pg89")
    except OSError:
        return None
    word = int.from_bytes(page[_TRUSTED : _TRUSTED + 2], "little")
    return bool(word & 1) if len(page) >= _TRUSTED + 2 and word >> 14 == 1 else None


def _opal(host: Host, facts: Facts, expected: bool) -> None:
    """SECURITY PROTOCOL IN (SPC-4, 6.29). `expected`: the drive says that it has it, so no answer is no good one."""
    listed = _receive(host, facts, 0, 0, opal.LIST_BYTES)
    if listed.rc in _NO_SUCH_COMMAND and not expected:
        return
    try:
        if opal.TCG_PROTOCOL in opal.protocols(_data(listed)):
            add(facts.opal, *opal.locked(_data(_receive(host, facts, opal.TCG_PROTOCOL, 1, opal.DISCOVERY_BYTES))))
    except ValueError as error:
        facts.failed(listed, f"whether Opal locks it cannot be determined: {error}")


def _receive(host: Host, facts: Facts, protocol: int, specific: int, size: int) -> Result:
    command = bytes([0xA2, protocol, *specific.to_bytes(2, "big"), 0, 0, *size.to_bytes(4, "big"), 0, 0])
    return sg3.run(
        host, ["sg_raw", "--readonly", f"--request={size}", facts.path, *(f"{byte:02x}" for byte in command)]
    )


def _data(result: Result) -> bytes:
    """sg_raw writes its hex dump to stderr. Raises ValueError."""
    if result.rc != 0:
        raise ValueError(sg3.explain(result))
    dump = (result.stdout + result.stderr).partition(" bytes of data:\n")[2]
    return sg3.hex_bytes(dump)
