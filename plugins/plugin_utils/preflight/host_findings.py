# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of the hosts (module host_checks) mean for a run: what stops it, what it is warned of; and the tools,
and what the tuning needs, that a host lacks. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.checks.base import BLOCKS, LEVELS, WARNING, is_older
from ...module_utils.checks.table import CODES, VIRTUAL_REMEDY
from ...module_utils.machine import snapshot
from ...module_utils.records.check_finding import CheckFinding
from ...module_utils.records.planned_cell import AnyLoad, PlannedCell
from ...module_utils.run.states import SETTLED_STATES
from ..common import argument_specs, values
from ..common.argument_specs import Rule, Variables
from ..common.schema import plain, suggestion
from ..plan import shared_limits, tuning_values
from ..plan.test_record import Test
from ..run_folder.run_record import RunWarning
from . import examine_arguments, findings
from .findings import Finding, HostAnswer, Run

# The mappings of versions: {variable: what its keys are}.
VERSIONS = {
    "preflight_firmware": "a shell pattern for models",
    "preflight_drivers": "the name of a kernel driver",
    "preflight_versions": "a tool, or kernel",
}
# Checks that only tell that a host is virtual.
_VIRTUAL_HOST = ("virtual_machine", "container")
# The first fio that keeps rate_iops where block sizes are mixed (bssplit, fio's commit 3a0e8ddf): 3.28 to 3.36 did 12
# to 19 of 100 IOPS, as they took every I/O for one of the smallest size.
RATE_OF_MIX_SINCE = "3.42"
# The first that knows --pdeathsig (util-linux's release notes).
SETPRIV_SINCE = "2.33"
ENGINE_REMEDY = {
    "libaio": (
        "install the package of this engine (EL: fio-engine-libaio), or raise fs.aio-max-nr if fs.aio-nr is near it, "
        "or set workload_ioengine: io_uring"
    ),
    "io_uring": (
        "install a fio that has it, or set kernel.io_uring_disabled to 0; in a container, allow io_uring in its "
        "seccomp profile, or set workload_ioengine: libaio"
    ),
    "io_uring_fixed": (
        "install a fio whose io_uring takes fixedbufs and registerfiles, set kernel.io_uring_disabled to 0, allow "
        "io_uring in a container's seccomp profile, or set workload_ioengine: io_uring or libaio"
    ),
}
# What the variables must be, where the type in the role's spec says too little.
RULES = {
    "preflight_levels": Rule(f"a mapping of checks to one of the words {', '.join(LEVELS)}"),
    "preflight_link": Rule("a mapping of models to speed_gts and width"),
    "preflight_tools": Rule("a list of the names of commands"),
    "preflight_traffic_s": Rule("a number of seconds"),
    "preflight_warm_up_s": Rule("a number of seconds"),
    **{
        name: Rule(f"a mapping; its keys are each {keys}, its values a version or a list of versions")
        for name, keys in VERSIONS.items()
    },
}
# A server with two dozen drives that all have several things to tell has fewer.
MOST_WARNINGS = 200
VERSIONED = ("kernel", *snapshot.TOOLS)
LINK_KEYS = ("speed_gts", "width")


def _found(view: HostAnswer, run: Run | None) -> list[CheckFinding]:
    """Return a host's findings; none where the run works on it, or is done with it: then it was judged when the run
    began.
    """
    if view.checks is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    return list(view.checks)


def blocking(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Return what stops the run on this host. What it says of a drive that nobody asked for is about itself."""
    labels = {entry.label for entry in view.entries or ()}
    return [
        Finding(
            f"{item.check}: {item.message}. To fix this: {item.remedy}",
            view.name,
            item.drive or "",
            concerns=item.drive if item.drive in labels else "",
        )
        for item in _found(view, run)
        if item.level == BLOCKS
    ]


def warnings(views: t.Sequence[HostAnswer], run: Run | None) -> list[RunWarning]:
    """Return what run.json keeps: every finding that does not stop the run, with its host; also those that the
    inventory lets pass (ok).
    """
    return [one for view in views for one in _few(_warnings(view, run))]


def _warnings(view: HostAnswer, run: Run | None) -> list[RunWarning]:
    return [
        RunWarning(view.name, item.check, item.drive, item.level, item.message, item.remedy)
        for item in _found(view, run)
        if item.level != "blocks"
    ]


def _few(told: list[RunWarning]) -> list[RunWarning]:
    """No host's warnings push those of others away, and fill run.json, which every later play reads."""
    if len(told) <= MOST_WARNINGS:
        return told
    more, last = f"and {len(told) - MOST_WARNINGS} more warnings of this host", told[MOST_WARNINGS]
    return [
        *told[:MOST_WARNINGS],
        RunWarning(last.host, last.check, None, "warning", more, "check the host itself"),
    ]


def lines(warned: t.Sequence[RunWarning]) -> list[str]:
    """Return the warnings as text: one that several drives or hosts share is told once, and so is one that several
    checks share. What every virtual host or drive is warned of is one line for all of them; the report has each.
    """
    shown = [item for item in warned if item.level == WARNING]
    virtual = _of_virtual(shown)
    if len({(item.check, item.message) for item in virtual}) > 1:
        return _grouped([item for item in shown if item not in virtual]) + [_virtual_line(virtual)]
    return _grouped(shown)


def _of_virtual(warned: t.Sequence[RunWarning]) -> list[RunWarning]:
    """Return the warnings that come with virtual hosts and drives, whatever their state."""
    hosts = {item.host for item in warned if item.check in _VIRTUAL_HOST}
    return [
        item
        for item in warned
        if item.check in _VIRTUAL_HOST
        or (item.check == "cpufreq" and item.host in hosts)
        or item.remedy == VIRTUAL_REMEDY
    ]


def _virtual_line(warned: t.Sequence[RunWarning]) -> str:
    hosts = list(dict.fromkeys(item.host for item in warned if not item.drive))
    drives = {(item.host, item.drive) for item in warned if item.drive}
    who = [f"host{'s' * (len(hosts) > 1)} {findings.host_list(hosts)}"] if hosts else []
    who += [f"{len(drives)} drive{'s' * (len(drives) > 1)}"] if drives else []
    checks = ", ".join(dict.fromkeys(item.check for item in warned))
    return (
        f"virtual: {' and '.join(who)} ({checks}): what else runs on their hardware affects the figures, and not all "
        "that hardware reports can be read. To fix this: measure drives of hardware on bare metal; the report has each "
        "warning"
    )


def _grouped(warned: t.Sequence[RunWarning]) -> list[str]:
    checks: dict[tuple[str, str, str], list[RunWarning]] = {}
    for item in warned:
        checks.setdefault((item.host, item.drive or "", item.message), []).append(item)
    places: dict[str, dict[str, list[str]]] = {}
    for (host, drive, message), items in checks.items():
        remedy = " or ".join(dict.fromkeys(item.remedy for item in items))
        text = f"{', '.join(item.check for item in items)}: {message}. To fix this: {remedy}"
        places.setdefault(text, {}).setdefault(host, []).extend([drive] if drive else [])
    return [
        f"{findings.host_list([_place(host, drives) for host, drives in where.items()])}: {text}"
        for text, where in places.items()
    ]


def _place(host: str, drives: t.Sequence[str]) -> str:
    """Return a host, or drives of it."""
    return f"{host}: drive{'s' * (len(drives) > 1)} {findings.host_list(drives)}" if drives else host


def problems(asked: Variables) -> list[str]:
    """Return what is wrong with the variables of the checks, as "variable: message"."""
    # Null is the default of the module, which is the role's.
    given = {name: plain(value) for name, value in asked.items() if value is not None}
    mappings = {name: value for name, value in given.items() if isinstance(value, dict)}
    if isinstance(given.get("preflight_tools"), str):
        given["preflight_tools"] = examine_arguments.listed(given["preflight_tools"])
    return (
        argument_specs.problems("preflight", given, RULES)
        + _level_problems(mappings.get("preflight_levels", {}))
        + [problem for name in VERSIONS for problem in _version_problems(name, mappings.get(name, {}))]
        + _tool_problems(mappings.get("preflight_versions", {}))
        + _link_problems(mappings.get("preflight_link", {}))
    )


def _level_problems(given: t.Mapping[t.Any, t.Any]) -> list[str]:
    found = [
        f"preflight_levels: there is no check {name!r}{suggestion(name, CODES)} (docs/checks.md lists them)"
        for name in given
        if name not in CODES
    ]
    wrong = [(name, level) for name, level in given.items() if level not in LEVELS]
    return found + [
        f"preflight_levels.{name}: {level!r} must be one of the words: {', '.join(LEVELS)}{suggestion(level, LEVELS)}"
        for name, level in wrong
    ]


def _version_problems(name: str, given: t.Mapping[t.Any, t.Any]) -> list[str]:
    wrong = [(key, value) for key, value in given.items() if not _is_version(value)]
    return [
        f"{name}.{key}: {value!r} must be a string, or a list of strings, in quotes: YAML reads 3.30 as 3.3"
        for key, value in wrong
    ]


def _tool_problems(given: t.Mapping[t.Any, t.Any]) -> list[str]:
    """Return a tool of another name would never be compared."""
    wrong = [name for name in given if name not in VERSIONED]
    return [
        (
            f"preflight_versions: no check reads the version of {name!r}{suggestion(name, VERSIONED)} (known: "
            f"{', '.join(VERSIONED)})"
        )
        for name in wrong
    ]


def _is_version(value: t.Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(isinstance(text, str) and text.strip() for text in texts)


def _link_problems(given: t.Mapping[t.Any, t.Any]) -> list[str]:
    found = []
    for model, link in given.items():
        if not isinstance(link, dict) or not link or set(link) - set(LINK_KEYS):
            found.append(
                f"preflight_link.{model}: {link!r} must be a mapping with {' and '.join(LINK_KEYS)}, such as "
                "speed_gts: 16, width: 4"
            )
        else:
            numbers = [(key, values.number(value), value) for key, value in link.items()]
            found += [
                f"preflight_link.{model}.{key}: {value!r} must be a number above 0"
                for key, number, value in numbers
                if not number or number <= 0
            ]
    return found


def missing_tools(view: HostAnswer, tests: t.Sequence[Test] = ()) -> list[Finding]:
    """Missing tools, and a fio that is too old. tests: all that the host is asked for."""
    return [finding._replace(concerns="") for finding in _tool_findings(view, tests)]


def _tool_findings(view: HostAnswer, tests: t.Sequence[Test]) -> list[Finding]:
    if view.facts is None or view.asked is None:
        return []
    present, least = view.facts.tools, str(view.asked["ssd_fio_min_version"])
    takes = {*examine_arguments.listed(view.asked.get("preflight_tools") or ()), *_tools_of_tests(tests)}
    found = [
        Finding(f"{name} is missing; install it with the package manager", view.name)
        for name in sorted(present)
        if not present[name] and (name in takes or name not in examine_arguments.MAY_TAKE)
    ]
    setpriv = present.get("setpriv")
    if setpriv and setpriv.version and is_older(setpriv.version, SETPRIV_SINCE):
        old = f"setpriv {setpriv.version} ({setpriv.path}) is older than util-linux {SETPRIV_SINCE}"
        found.append(Finding(f"{old}, so it can't end fio with its job; install a newer util-linux", view.name))
    fio = present.get("fio")
    if fio and not fio.version:
        found.append(
            Finding(
                f"{fio.path} does not report its version; reinstall fio, {least} or newer (ssd_fio_min_version)",
                view.name,
            )
        )
    elif fio and is_older(str(fio.version), least):
        old = f"fio {fio.version} ({fio.path}) is older than {least} (ssd_fio_min_version)"
        found.append(Finding(f"{old}; install a newer one", view.name))
    elif fio and is_older(str(fio.version), RATE_OF_MIX_SINCE):
        unlike = [_unlike_rate(test, cell, str(fio.version)) for test, cell in _rates_of_mixes(tests)]
        found += [Finding(text, view.name) for text in unlike]
    told = view.facts.fio_engines or {}
    found += [
        Finding(f"fio can't use {engine}: {said}; {ENGINE_REMEDY[engine]}", view.name)
        for engine, said in told.items()
        if said
    ]
    return found + _too_many_in_flight(view, tests)


def _too_many_in_flight(view: HostAnswer, tests: t.Sequence[Test]) -> list[Finding]:
    """More I/Os of libaio than the kernel takes, which fio would tell after the purge. A cell with threads: auto has
    all in its queue_depth.
    """
    left, asked = view.facts.aio_left if view.facts else None, view.asked or {}
    if left is None or "libaio" not in ((view.facts and view.facts.fio_engines) or {}) or not view.entries:
        return []
    cells = [(_in_flight(cell), test.name, cell.id) for test in tests for cell in test.cells]
    most, test, cell = max(cells, default=(0, "", ""))
    count = len(view.entries)
    told = asked.get("ssd_parallel_drives")
    if told == values.AUTO:  # by reads there may be more, which is not known before
        drives = shared_limits.of_drives(view.drives or ()).sure
    else:
        drives = min(count, values.drives_at_once(told, count))
    if most * drives <= left:
        return []
    text = (
        f"test {test}, cell {cell}: {most} I/Os in flight, of {drives} drives at a time; the kernel takes {left} more "
        "of libaio: raise fs.aio-max-nr, lower ssd_parallel_drives, or set workload_ioengine: io_uring"
    )
    return [Finding(text, view.name)]


def _in_flight(cell: PlannedCell) -> int:
    streams: t.Sequence[AnyLoad] = cell.jobs or [cell]
    return sum(stream.threads * stream.queue_depth for stream in streams)


def _rates_of_mixes(tests: t.Sequence[Test]) -> list[tuple[str, str]]:
    """(test, cell) of each cell that is limited to a rate of I/Os of several sizes."""
    return [
        (test.name, cell.id) for test in tests for cell in test.cells if cell.rate_iops and cell.mix and cell.mix.sizes
    ]


def _unlike_rate(test: str, cell: str, version: str) -> str:
    return (
        f"test {test}, cell {cell}: fio {version} does not keep rate_iops with several block sizes: it does a fifth of "
        f"the rate or less; install fio {RATE_OF_MIX_SINCE} or newer, or give each size a stream of its own (jobs)"
    )


def _tools_of_tests(tests: t.Sequence[Test]) -> tuple[str, ...]:
    """Of the tools that a test may take, those that one of these does."""
    return ("mdadm",) if any(test.array_request for test in tests) else ()


def tuning_findings(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Return what the host cannot do of the tuning that is asked for. A host where the run works, or is done with, is
    not asked again.
    """
    if view.asked is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    return [
        Finding(message, view.name, drive, concerns=drive)
        for drive, message in tuning_values.host_problems(view.asked, view.snapshot, view.entries or ())
    ]
