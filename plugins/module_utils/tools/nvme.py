# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvme-cli says of a controller and a namespace, from its JSON. What is missing or odd is an NvmeError, never a
guess.

Read by 1.16, 2.3, 2.8, 2.11 and 2.16. Fields: NVM Express Base Specification 2.0, Identify (figures 275 and 97 of the
NVM Command Set Specification) and the Sanitize Status log page (figure 271).
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core import sysfs, tool_json
from ..core.host import COMMAND_NOT_FOUND, Host, Result
from ..core.progress import DONE, FAILED, IDLE, RUNNING, Progress
from ..core.tool_json import Json
from ..records.purge import DeallocatedRead, LbaFormat

ASK_S = 60.0
_BYTE, _WORD, _DWORD = 0xFF, 0xFFFF, 0xFFFFFFFF
_SHARE_OF = 65536.0
# Flags of a power state descriptor: Non-Operational State (NOPS).
_NOT_OPERATIONAL = 0x2
# DLFEAT, bits 2:0: what a deallocated block reads as; else nothing is promised.
_DEALLOCATED_READS: dict[int, DeallocatedRead] = {1: "zeros", 2: "ones"}
# Sanitize Status (SSTAT), bits 2:0
_STATES = {0: IDLE, 1: DONE, 2: RUNNING, 3: FAILED, 4: DONE}
_STATUS = re.compile(r"\(([0-9]+)\)")
_CONTROLLER = re.compile(r"nvme[0-9]+")
_SHOWN = 160
_WHOLE = re.compile(r"([+-]?[0-9]{1,100})(?:\.0*)?")


class NvmeError(Exception):
    """nvme-cli did not answer, or its answer is not understood; the message says which command."""


class Controller(t.NamedTuple):
    """Identify Controller: cmic, oacs, fna and sanicap are the bit fields of the specification."""

    serial: str
    cmic: int
    oacs: int
    fna: int
    sanicap: int
    # Of each power state whether I/O is done in it; None: it does not tell.
    works_in: list[bool | None]

    @property
    def can_format(self) -> bool:
        """Whether it has the Format NVM command."""
        return bool(self.oacs & 0x2)

    @property
    def manages_namespaces(self) -> bool:
        """Whether there may be namespaces that no controller has attached."""
        return bool(self.oacs & 0x8)

    @property
    def has_self_tests(self) -> bool:
        """Whether it has the Device Self-test command."""
        return bool(self.oacs & 0x10)

    @property
    def can_rest(self) -> bool | None:
        """Whether it has a power state in which it does no I/O; None: it does not tell of all."""
        if False in self.works_in:
            return True
        return None if None in self.works_in or not self.works_in else False


class Namespace(t.NamedTuple):
    """Identify Namespace. lba_format: the index in use; flbas and dps as they are; format_left_pct: None: no format
    goes on.
    """

    size_bytes: int
    flbas: int
    dps: int
    nmic: int
    lba_format: int
    lba_formats: list[LbaFormat]
    eui64: str
    nguid: str
    format_left_pct: int | None
    deallocated_read: DeallocatedRead | None


def query(host: Host, words: t.Sequence[str]) -> Json:
    """Return the JSON object that `nvme <words> --output-format=json` prints. Raises NvmeError."""
    result = host.run(["nvme", *words, "--output-format=json"], timeout_s=ASK_S)
    return parse(result)


def parse(result: Result) -> Json:
    """Return the JSON object in a command's output. Raises NvmeError."""
    name = " ".join(result.argv[:3])
    if result.rc == COMMAND_NOT_FOUND:
        raise NvmeError("nvme-cli is not installed")
    if result.rc != 0:
        raise NvmeError(f"{name} ended with {result.rc}: {said(result)}")
    try:
        return tool_json.read(result.stdout)
    except tool_json.NotOneObject as error:
        raise NvmeError(f"{name} printed {error}" + (f" ({said(result)})" if result.stderr.strip() else "")) from None


def said(result: Result) -> str:
    """Return the first words of a command, for a message."""
    return " ".join((result.stderr.strip() or result.stdout.strip() or "nothing").split())[:_SHOWN]


def nvme_number(value: t.Any) -> int | None:
    """Return a whole number, also from the texts and the doubles (7.0) in which versions of nvme-cli write large ones;
    None for anything else.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    match = _WHOLE.fullmatch(str(value))
    return int(match.group(1)) if match else None


def number(data: Json, key: str, most: int) -> int:
    """Return a whole number from 0 to `most`, also from a text, as nvme-cli writes large ones. Raises NvmeError."""
    value = data.get(key)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,40}|0x[0-9a-fA-F]{1,32}", value):
        value = int(value, 0) if value.startswith("0x") else int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise NvmeError(f"nvme-cli reports {data.get(key)!r} for {key}")
    return value


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise NvmeError(f"nvme-cli reports {value!r} for {key}")
    return value.strip()


def _listed(data: Json, key: str) -> list[Json]:
    value = data.get(key)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise NvmeError(f"nvme-cli reports no list {key}")
    return value


def controller(host: Host, node: str) -> Controller:
    """Identify Controller. Raises NvmeError."""
    data = query(host, ["id-ctrl", node])
    return Controller(
        serial=_text(data, "sn"),
        cmic=number(data, "cmic", _BYTE),
        oacs=number(data, "oacs", _WORD),
        fna=number(data, "fna", _BYTE),
        sanicap=number(data, "sanicap", _DWORD),
        works_in=power_states(data),
    )


def power_states(data: Json) -> list[bool | None]:
    """Return of each power state whether I/O is done in it: versions of nvme-cli name the flag in two ways."""
    states = data.get("psds")
    return [_works(entry) for entry in states] if isinstance(states, list) else []


def _works(entry: t.Any) -> bool | None:
    if not isinstance(entry, dict):
        return None
    flags, named = nvme_number(entry.get("flags")), nvme_number(entry.get("non-operational_state"))
    if named is not None:
        return named == 0
    return None if flags is None else not flags & _NOT_OPERATIONAL


def namespace(host: Host, node: str, namespace_id: int) -> Namespace:
    """Identify Namespace, asked of a controller. Raises NvmeError."""
    return parse_namespace(query(host, ["id-ns", node, f"--namespace-id={namespace_id}"]))


def parse_namespace(data: Json) -> Namespace:
    """From the JSON of id-ns. Raises NvmeError."""
    formats = [_lba_format(index, item) for index, item in enumerate(_listed(data, "lbafs"))]
    flbas, fpi = number(data, "flbas", _BYTE), number(data, "fpi", _BYTE)
    # Bits 6:5 extend the index where there are more than 16 formats (NVM Command Set Specification, FLBAS).
    index = flbas & 0xF | ((flbas >> 5 & 0x3) << 4 if len(formats) > 16 else 0)
    if index >= len(formats):
        raise NvmeError(f"LBA format {index} is in use, but there are {len(formats)}")
    return Namespace(
        size_bytes=number(data, "nsze", (1 << 64) - 1) * formats[index].data_bytes,
        flbas=flbas,
        dps=number(data, "dps", _BYTE),
        nmic=number(data, "nmic", _BYTE),
        lba_format=index,
        lba_formats=[item for item in formats if item.data_bytes],
        eui64=hexadecimal(_text(data, "eui64")),
        nguid=hexadecimal(_text(data, "nguid")),
        format_left_pct=fpi & 0x7F if fpi & 0x80 and fpi & 0x7F else None,
        deallocated_read=_DEALLOCATED_READS.get((nvme_number(data.get("dlfeat")) or 0) & 7),
    )


def _lba_format(index: int, data: Json) -> LbaFormat:
    """A data size below 512 bytes is an entry that is not there."""
    shift = number(data, "ds", 63)
    return LbaFormat(index, 1 << shift if shift >= 9 else 0, number(data, "ms", _WORD), number(data, "rp", _BYTE) & 0x3)


def hexadecimal(text: str | None) -> str:
    """Return the hexadecimal digits of a name, however it is written; "" for none or only zeros. Raises NvmeError."""
    digits = re.sub(r"[ :-]", "", (text or "").lower())
    if not re.fullmatch(r"[0-9a-f]*", digits):
        raise NvmeError(f"{text!r} is not a hexadecimal name")
    return digits if digits.strip("0") else ""


def descriptors(host: Host, node: str, namespace_id: int) -> set[str]:
    """Return the hexadecimal names in a namespace's identification descriptors (EUI64, NGUID, UUID). Raises
    NvmeError.
    """
    return set(_names(query(host, ["ns-descs", node, f"--namespace-id={namespace_id}"])))


def _names(data: t.Any) -> t.Iterator[str]:
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _names(item)
    elif isinstance(data, str) and re.fullmatch(r"[0-9a-fA-F-]{16,36}", data):
        yield hexadecimal(data)


def namespace_ids(host: Host, node: str, allocated: bool) -> list[int]:
    """Return the active namespaces of a controller, or with `allocated` all of its subsystem, attached or not. Raises
    NvmeError.
    """
    data = query(host, ["list-ns", node, *(["--all"] if allocated else [])])
    return sorted(number(item, "nsid", _DWORD) for item in _listed(data, "nsid_list"))


def controller_ids(host: Host, node: str) -> list[int]:
    """Return the controllers of the subsystem, those of other hosts too. Raises NvmeError."""
    return sorted(number(item, "ctrl_id", _WORD) for item in _listed(query(host, ["list-ctrl", node]), "ctrl_list"))


def sanitize_log(host: Host, node: str) -> Progress:
    """Return how far a sanitize is: idle (never one), running, done, failed. Raises NvmeError."""
    return parse_sanitize_log(query(host, ["sanitize-log", node]))


def parse_sanitize_log(data: Json) -> Progress:
    """From the JSON of sanitize-log: {controller: {sprog, sstat: {…: "(2) Sanitize in Progress."}}}. Raises NvmeError.

    The text stands under `status`; nvme-cli 2.7 and 2.8 have the words of the status for a key instead.
    """
    logs = [log for log in data.values() if isinstance(log, dict) and "sprog" in log]
    if len(logs) != 1 or not isinstance(logs[0].get("sstat"), dict):
        raise NvmeError("sanitize-log has no sstat")
    texts = [text for text in logs[0]["sstat"].values() if isinstance(text, str)]
    matches = [match for match in map(_STATUS.match, texts) if match]
    if len(matches) != 1 or int(matches[0].group(1)) not in _STATES:
        raise NvmeError(f"sanitize-log says {texts!r}")
    share = number(logs[0], "sprog", _WORD)
    state = _STATES[int(matches[0].group(1))]
    # FFFFh: nothing is in progress (Base Specification, SPROG).
    return Progress(state, share / _SHARE_OF if state == RUNNING and share != _WORD else None, matches[0].string)


def controllers(host: Host, name: str) -> list[str]:
    """Return the nodes of the controllers that lead to a namespace, through sysfs: never by its number, which may be
    another drive's.
    """
    found = {os.path.basename(host.realpath(path)) for path in sysfs.nvme_controllers(host, name)}
    return ["/dev/" + item for item in sorted(found) if _CONTROLLER.fullmatch(item)]


def siblings(host: Host, node: str) -> list[str]:
    """Return the nodes of all controllers of this host that are in a controller's subsystem, itself among them."""
    for subsystem in host.glob("/sys/class/nvme-subsystem/nvme-subsys*"):
        names = [name for name in host.listdir(subsystem) if _CONTROLLER.fullmatch(name)]
        if os.path.basename(node) in names:
            return ["/dev/" + name for name in names]
    return [node]
