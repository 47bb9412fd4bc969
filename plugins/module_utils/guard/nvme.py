# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an NVMe drive says of itself to nvme-cli: who else reaches it, reservations, sanitize, write protection, Opal.

NVM Express Base Specification 2.0: Identify Controller (CMIC, OACS, ONCS, SANICAP), SMART log; NVM Command Set 1.0:
Identify Namespace (NMIC, NSATTR).
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import COMMAND_NOT_FOUND, Host
from ..core.progress import FAILED, RUNNING
from ..core.tool_json import Json
from ..tools import nvme, opal
from ..tools.nvme import NvmeError
from . import allocation_map
from .facts import Facts, add

_SECURITY, _RESERVATIONS = 0x1, 0x20  # OACS bit 0, ONCS bit 5
_SEVERAL_CONTROLLERS = 0x2  # CMIC bit 1
_MAY_BE_SHARED = 0x1  # NMIC bit 0
_WRITE_PROTECTED = 0x1  # NSATTR bit 0
_MEDIA_READ_ONLY = 0x8  # critical warning, bit 3
_BYTE, _WORD, _DWORD = 0xFF, 0xFFFF, 0xFFFFFFFF
_HEX_LINE = re.compile(r"^([0-9a-f]{4,}): ((?:[0-9a-f]{2} ?)+)", re.MULTILINE)


class _Answers(t.NamedTuple):
    """What nvme-cli prints of a drive. node: of its controller, such as nvme0; controller, namespace: Identify."""

    node: str
    namespace_id: int
    controller: Json
    namespace: Json


def probe_nvme(host: Host, facts: Facts) -> None:
    """Ask the controller and the namespace. Whatever gives no answer that is understood goes into the failures."""
    nodes = nvme.controllers(host, facts.name)
    if len(nodes) > 1:
        add(facts.shared, "the controllers {} lead to it".format(", ".join(nodes)))
    if not nodes:
        facts.failures.append(f"no controller in sysfs leads to {facts.path}")
        return
    try:
        namespace_id = nvme.number({"nsid": host.get(f"/sys/block/{facts.name}/nsid")}, "nsid", _DWORD - 1)
        controller = nvme.query(host, ["id-ctrl", nodes[0]])
        namespace = nvme.query(host, ["id-ns", nodes[0], f"--namespace-id={namespace_id}"])
    except NvmeError as error:
        facts.failures.append(_missing(host) or str(error))
        return
    answers = _Answers(nodes[0], namespace_id, controller, namespace)
    for step in _STEPS:
        try:
            step(host, facts, answers)
        except (NvmeError, ValueError) as error:
            facts.failures.append(str(error))


def _missing(host: Host) -> str:
    gone = host.run(["nvme", "version"]).rc == COMMAND_NOT_FOUND
    return "nvme is missing, and this drive cannot be checked without it; install nvme-cli" if gone else ""


def _shared(host: Host, facts: Facts, answers: _Answers) -> None:
    """NMIC says whether the namespace may be attached to several controllers; the list of those that are attached
    decides.
    """
    if not nvme.number(answers.namespace, "nmic", _BYTE) & _MAY_BE_SHARED:
        return
    try:
        attached = nvme.query(host, ["list-ctrl", answers.node, f"--namespace-id={answers.namespace_id}"])
        count = nvme.number(attached, "num_ctrl", _WORD)
    except NvmeError as error:
        if nvme.number(answers.controller, "cmic", _BYTE) & _SEVERAL_CONTROLLERS:
            add(
                facts.shared,
                (
                    "NMIC and CMIC say that several controllers may reach it, and the drive does not report which do "
                    f"({error})"
                ),
            )
        return
    if count != 1:
        add(facts.shared, f"it is attached to {count} controllers")


def _state(host: Host, facts: Facts, answers: _Answers) -> None:
    if nvme.number(answers.namespace, "nsattr", _BYTE) & _WRITE_PROTECTED:
        add(facts.read_only, "the namespace is write-protected")
    log = nvme.query(host, ["smart-log", answers.node])
    warning = log.get("critical_warning")
    warning = warning.get("value") if isinstance(warning, dict) else warning
    if nvme.number({"critical_warning": warning}, "critical_warning", _BYTE) & _MEDIA_READ_ONLY:
        add(facts.read_only, "its critical warning says that the media are read-only")
    if not nvme.number(answers.namespace, "ncap", (1 << 64) - 1):
        add(facts.placeholder, "0 blocks (NCAP)")
    allocation_map.from_namespace(facts, answers.namespace)


def _sanitize(host: Host, facts: Facts, answers: _Answers) -> None:
    if not nvme.number(answers.controller, "sanicap", _DWORD) & 0x7:
        return
    progress = nvme.sanitize_log(host, answers.node)
    if progress.state == RUNNING:
        add(facts.sanitizing, progress.detail)
    if progress.state == FAILED:
        add(facts.sanitize_failed, progress.detail)


def _reservations(host: Host, facts: Facts, answers: _Answers) -> None:
    """Reservation Report is an I/O command, so the namespace is asked. nvme-cli 3 writes regstrnt for regctl."""
    if not nvme.number(answers.controller, "oncs", _WORD) & _RESERVATIONS:
        return
    try:
        report = nvme.query(host, ["resv-report", facts.path])
    except NvmeError:  # a host with an identifier of 128 bits gets the extended form only
        report = nvme.query(host, ["resv-report", facts.path, "--eds"])
    registered = nvme.number(report, "regstrnt" if "regstrnt" in report else "regctl", _WORD)
    kind = nvme.number(report, "rtype", _BYTE)
    if registered or kind:
        add(facts.reserved, f"{registered} registrations, reservation type {kind}")


def _opal(host: Host, facts: Facts, answers: _Answers) -> None:
    if not nvme.number(answers.controller, "oacs", _WORD) & _SECURITY:
        return
    if opal.TCG_PROTOCOL in opal.protocols(_receive(host, answers.node, 0, 0, opal.LIST_BYTES)):
        add(facts.opal, *opal.locked(_receive(host, answers.node, opal.TCG_PROTOCOL, 1, opal.DISCOVERY_BYTES)))


def _receive(host: Host, node: str, protocol: int, specific: int, size: int) -> bytes:
    """Security Receive, from nvme-cli's hex dump: our boundary to a host carries text."""
    argv = [
        "nvme",
        "security-recv",
        node,
        f"--secp={protocol}",
        f"--spsp={specific}",
        f"--size={size}",
        f"--al={size}",
    ]
    result = host.run(argv)
    if result.rc != 0:
        raise NvmeError(f"{' '.join(argv[:3])} ended with {result.rc}: {nvme.said(result)}")
    data = b""
    for place, digits in _HEX_LINE.findall(result.stdout):
        if int(place, 16) != len(data):
            raise NvmeError(f"{' '.join(argv[:3])} gave a hex dump with a gap at byte {len(data)}")
        data += bytes.fromhex(digits)
    return data


_STEPS: tuple[t.Callable[[Host, Facts, _Answers], None], ...] = (
    _shared,
    _state,
    _sanitize,
    _reservations,
    _opal,
)
