# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An entry of `ssd_drives`, parsed once where it comes in, and its grammar: the selector that names a drive, and the
options beside it.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import typing as t

SELECTOR_KEYS = ("serial", "wwn", "by_id", "backing_file")
PROGRAM_KEYS = {"path", "opens_for_writing"}


class _Option(t.NamedTuple):
    """An option beside the selector: whether a value is right, what it has to be, and its value where it
    is not given.
    """

    right: t.Callable[[t.Any], bool]
    wanted: str
    default: t.Any


def _is_whole(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_codes(value: t.Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(code, str) for code in value)


def is_programs(value: t.Any) -> bool:
    """Return whether a value is a list of programs that only look at drives."""
    return isinstance(value, (list, tuple)) and all(map(_is_program, value))


def _is_program(value: t.Any) -> bool:
    is_named = isinstance(value, t.Mapping) and str(value.get("path")).startswith("/")
    return is_named and value.keys() <= PROGRAM_KEYS and isinstance(value.get("opens_for_writing", False), bool)


def _is_retired(value: t.Any) -> bool:
    return isinstance(value, (bool, str)) and _statement(value) != _NO_STATEMENT


def _statement(value: bool | str) -> str | None:
    """Return `true` or the date of a statement that a drive is retired; None for false."""
    if isinstance(value, bool):
        return "true" if value else None
    try:
        return datetime.datetime.strptime(value, "%Y-%m-%d").date().isoformat()
    except ValueError:
        return _NO_STATEMENT


_NO_STATEMENT = ""


def _is_cpus(value: t.Any) -> bool:
    return _is_whole(value) or (isinstance(value, str) and re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value) is not None)


OPTION_KEYS: dict[str, _Option] = {
    "allow": _Option(_is_codes, "a list of the guard's codes, such as [partition_table]", ()),
    "ssd_overwrite_data": _Option(lambda value: isinstance(value, bool), "true or false", False),
    "release_evidence": _Option(
        lambda value: isinstance(value, str) and bool(value), "the id of the run that left it so", None
    ),
    "retired": _Option(_is_retired, 'true, or the date of the day on which you say so ("2026-11-28")', False),
    "passing_programs": _Option(
        is_programs, "a list of programs by path, such as [{path: /usr/sbin/smartctl, opens_for_writing: true}]", ()
    ),
    "numa_node": _Option(_is_whole, "the number of a NUMA node", None),
    "cpus": _Option(_is_cpus, 'a list of CPUs as the kernel writes it, such as "0-3,8"', None),
    # YAML reads a bare on and off as true and false.
    "write_cache": _Option(lambda value: isinstance(value, bool) or value in ("on", "off"), "on or off", None),
    "plp": _Option(lambda value: isinstance(value, bool), "true or false", None),
}
# Options of the guard: they say what may be erased, not what is measured, so they may differ when a run goes on.
OVERRIDES = ("allow", "ssd_overwrite_data", "release_evidence", "retired")
GUARD_OPTIONS = (*OVERRIDES, "passing_programs")
BY_ID = "/dev/disk/by-id/"
# What bridges, controllers and drives without a number of their own give for one, without blanks: many drives have it.
_NO_SERIAL = re.compile(
    r"0+|(.)\1{3,}|N/A|UNKNOWN|NOTAPPLICABLE|NOTSPECIFIED|DEFAULTSTRING|SERIALNUMBER|TOBEFILLEDBYO\.?E\.?M\.?",
    re.IGNORECASE,
)
_COUNTED, _LEAST_COUNTED = ("0123456789ABCDEF", "1234567890" * 3), 8
_HEX_NAME = re.compile(r"(?:wwn-|nvme-)?(?:naa\.|eui\.|uuid\.|0x)?([0-9a-f][0-9a-f -]*)", re.IGNORECASE)


class Options(t.NamedTuple):
    """The options beside a selector; the docs have them (OPTION_KEYS). None: not given. passing_programs: by the path
    of an executable, whether it opens a drive for writing though it only looks.
    """

    allow: list[str]
    ssd_overwrite_data: bool
    release_evidence: str | None
    # true, or the date on which the operator said so.
    retired: str | None
    passing_programs: dict[str, bool]
    numa_node: int | None
    cpus: str | None
    # on or off.
    write_cache: str | None
    # Whether the drive is claimed to keep what it acknowledged without its power.
    plp: bool | None


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of `ssd_drives`. given: as it came in, which is what goes into files and answers. problem: what is
    wrong with its form, that of its options included; None if it is well formed.

    label: the drive's stable identity in every record, which is the selector's value; of a malformed entry, how it
      reads. kind: which of SELECTOR_KEYS that value is of. A malformed entry has no kind, and no option is given in it.
    """

    given: t.Any
    problem: str | None
    kind: str
    label: str
    options: Options


def parse(given: t.Any) -> Entry:
    """Return what JSON or YAML has for an entry of `ssd_drives`, whatever that is."""
    problem = _problem(given)
    if problem is not None:
        reads = str(dict(given)) if isinstance(given, t.Mapping) else repr(given)
        return Entry(given, problem, "", reads, NO_OPTIONS)
    kind = next(key for key in SELECTOR_KEYS if key in given)
    return Entry(given, None, kind, given[kind].strip(), _options(given))


def _problem(selector: t.Any) -> str | None:
    if not isinstance(selector, t.Mapping):
        return "it is {!r}, not a mapping with one of the keys {}".format(selector, ", ".join(SELECTOR_KEYS))
    keys = [key for key in selector if key not in OPTION_KEYS]
    found: list[str | None] = []
    if len(keys) != 1 or keys[0] not in SELECTOR_KEYS:
        known = "give exactly one of {}; the options are {}".format(", ".join(SELECTOR_KEYS), ", ".join(OPTION_KEYS))
        found.append("its keys are {}; {}".format(", ".join(map(str, selector)) or "(none)", known))
    found += [_value_problem(key, selector[key]) for key in keys if key in SELECTOR_KEYS]
    # All at once: who mends one mistake is not to meet the next one then.
    return "; ".join([text for text in found if text] + _option_problems(selector)) or None


def _value_problem(key: str, value: t.Any) -> str | None:
    if not isinstance(value, str):
        return f"{key} is {value!r}, not a string: put it in quotes (YAML reads 0123, 1e5 and NO as something else)"
    if not value.strip():
        return f"{key} is empty; a variable may be undefined"
    if not value.isprintable():
        return f"{key} is {value!r}, with a character that cannot be printed; type it again"
    if key == "serial" and is_placeholder(re.sub(r"[ _-]", "", value).upper()):
        return f"serial {value!r} is a placeholder that many drives report; name the drive by wwn or by_id"
    if key == "by_id" and re.fullmatch(r"\.{0,2}|.*/.*", by_id_name(value)):
        return f"by_id {value!r} is not a valid name in {BY_ID}"
    if key == "backing_file" and value != value.strip():
        return f"backing_file {value!r} begins or ends with a space; remove it"
    if key == "backing_file" and not value.startswith("/"):
        return f"backing_file {value!r} is not an absolute path"
    if key == "wwn" and wwn_key(value) is None:
        return f"wwn {value!r} names no drive"
    return None


def is_placeholder(serial: str) -> bool:
    """Return whether a serial number, in capitals and without blanks, is one that many devices report."""
    counted = len(serial) >= _LEAST_COUNTED and any(serial in text for text in _COUNTED)
    return counted or _NO_SERIAL.fullmatch(serial) is not None


def _option_problems(entry: t.Mapping[str, t.Any]) -> list[str]:
    wrong = [key for key in entry if key in OPTION_KEYS and not OPTION_KEYS[key].right(entry[key])]
    return [f"its option {key} is {entry[key]!r}; it must be {OPTION_KEYS[key].wanted}" for key in wrong]


def _options(entry: t.Mapping[str, t.Any]) -> Options:
    given = {key: entry.get(key, option.default) for key, option in OPTION_KEYS.items()}
    cache, cpus = given["write_cache"], given["cpus"]
    given.update(
        allow=list(given["allow"]),
        retired=_statement(given["retired"]),
        passing_programs=programs(given["passing_programs"]),
        cpus=None if cpus is None else str(cpus),
        write_cache={True: "on", False: "off"}.get(cache, cache),
    )
    return Options(**given)


def programs(given: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, bool]:
    """Return the programs by path; of one that is named twice, what either permits. A path that names none is that of
    many: /proc tells no path of some processes.
    """
    found: dict[str, bool] = {}
    for each in filter(_is_program, given):
        found[each["path"]] = found.get(each["path"], False) or each.get("opens_for_writing", False)
    return found


NO_OPTIONS = _options({})


def wwn_key(text: str) -> str | None:
    """Return a hexadecimal name without prefix, case and separators, other names as they are; None for empty ones and
    for those of nothing but zeros, or ones.
    """
    text = text.strip()
    match = _HEX_NAME.fullmatch(text)
    if match is None:
        return text or None
    digits = re.sub(r"[ -]", "", match.group(1)).lower()
    return digits if digits.strip("0") and digits.strip("f") else None


def by_id_name(value: str) -> str:
    value = value.strip()
    return value[len(BY_ID) :] if value.startswith(BY_ID) else value
