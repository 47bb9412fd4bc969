# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard: may these drives be erased? Rules over facts that `guard_probe` read; what is unknown is a refusal.

A new rule is a line in REFUSALS and one in RULES, and where it needs a new fact, a field of `guard_probe.Facts`.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import drive
from .guard_probe import Facts, Machine, machine, probe
from .host import Host

Refusal = Dict[str, str]

_MOST_SHOWN = 4


class _Text(NamedTuple):
    """What is wrong (`{detail}` is the finding), and what the operator can do."""

    problem: str
    remedy: str


_KEEP_OUT = "or take the drive out of ssd_drives."

REFUSALS: Dict[str, _Text] = {
    "bad_selector": _Text(
        "this entry of ssd_drives names no drive: {detail}",
        'Write it as discover.yml prints it, such as - serial: "22123A4F5B6C".',
    ),
    "not_found": _Text(
        "this host has no such drive{detail}",
        "Compare with what discover.yml prints (the whole value counts, letter case too), and look for a drive that dropped out.",
    ),
    "ambiguous": _Text("several block devices match: {detail}", "Name the drive by wwn or by_id instead; discover.yml proposes one."),
    "duplicate": _Text("other entries of ssd_drives name the same drive: {detail}", "Keep one of them."),
    "no_identity": _Text("it has neither serial, wwn, by_id nor backing_file of its own{detail}", "It cannot be named safely, so it cannot be qualified."),
    "not_whole_drive": _Text("it is not a whole drive: {detail}", "Name the drive itself; discover.yml lists them."),
    "no_capacity": _Text("its capacity is {detail}", "Look at the drive's health and at the kernel log; it may be in recovery mode."),
    "read_only": _Text("it is read-only{detail}", "Find out why (worn out, write-protected); if only the kernel's flag is set, blockdev --setrw lifts it."),
    "mounted": _Text("it is mounted: {detail}", "Unmount it everywhere, containers included, if nothing on it is needed, " + _KEEP_OUT),
    "swap": _Text("it is used as swap: {detail}", "swapoff it if the host can do without, " + _KEEP_OUT),
    "held": _Text("another device is built on it: {detail}", "Take that apart first (vgchange -an, mdadm --stop, cryptsetup close, losetup -d), " + _KEEP_OUT),
    "partition_table": _Text("it has a partition table: {detail}", "If nothing on it is needed, wipe it by hand (wipefs --all), " + _KEEP_OUT),
    "signature": _Text("it holds data: {detail}", "If nothing on it is needed, wipe it by hand (wipefs --all), " + _KEEP_OUT),
    "busy": _Text("another process holds it exclusively{detail}", "Find it (lsof, fuser -v) and end what uses the drive, " + _KEEP_OUT),
    "identity_changed": _Text("it is not the drive that it was: {detail}", "Start over with preflight; never force this one."),
    "locked": _Text("another run works on this drive: {detail}", "Wait for that run (watch.yml) or end it (stop.yml)."),
    "not_held": _Text("this job does not hold it{detail}", "Nothing was written; report this, with the journal of the run."),
    "probe_failed": _Text("it could not be checked: {detail}", "Mend that first; the check needs root, util-linux (wipefs, blkid) and a drive that answers."),
}


def _not_whole(facts: Facts) -> List[str]:
    if facts.block_backing:
        return ["its backing_file is the block device %s" % facts.block_backing]
    names = {"partition": "%s is a partition", "stacked": "%s is a virtual or stacked device"}
    return [names[facts.kind] % facts.path] if facts.kind in names else []


def _no_capacity(facts: Facts) -> List[str]:
    size = facts.identity.get("size_bytes")
    return [] if size or facts.kind != "drive" else ["unknown" if size is None else "%d bytes" % size]


# (code, findings): a rule refuses when it finds something. Order is that of the report.
RULES: Tuple[Tuple[str, Callable[[Facts], Iterable[str]]], ...] = (
    ("not_whole_drive", _not_whole),
    ("no_capacity", _no_capacity),
    ("mounted", lambda facts: facts.mounts),
    ("swap", lambda facts: facts.swaps),
    ("held", lambda facts: facts.holders),
    ("partition_table", lambda facts: [*facts.tables, *facts.partitions]),
    ("signature", lambda facts: facts.signatures),
    ("read_only", lambda facts: [""] if facts.read_only else []),
    ("busy", lambda facts: [""] if facts.busy else []),
    ("identity_changed", lambda facts: facts.changed),
    ("probe_failed", lambda facts: facts.failures),
)

# What must be the same between plan and run. The kernel name is not: it may change at every boot.
_SAME = ("serial", "wwn", "model", "size_bytes", "logical_block_size_bytes", "backing_file")


def inspect(host: Host, selectors: Sequence[Any], held: Optional[Mapping[str, int]] = None) -> List[Dict[str, Any]]:
    """May the drives that these selectors name be erased?

    `held` maps the path of a drive to a descriptor that this process opened with O_EXCL; it is compared with the
    drive instead of another exclusive open. Returns, in the order given, `{selector, drive, path, identity,
    eligible, refusals: [{code, message}]}`; path and identity are None where no single drive matches.
    """
    located = [_locate(host, selector) for selector in selectors]
    shared = machine(host)
    results = []
    for index, (selector, (name, refused)) in enumerate(zip(selectors, located)):
        facts = None
        if name is not None:
            facts, failed = _safe_probe(host, name, dict(held or {}), shared)
            same = [drive.label(selectors[other]) for other, (twin, _none) in enumerate(located) if twin == name and other != index]
            refused = [*_refuse("duplicate", drive.label(selector), same), *failed, *(refusals(facts, selector) if facts else [])]
        results.append(_result(selector, facts, refused))
    return results


def refusals(facts: Facts, selector: Any = None) -> List[Refusal]:
    """Every reason, from the facts alone, why the drive may not be erased."""
    who = facts.path if selector is None else "%s (%s)" % (drive.label(selector), facts.path)
    return [refusal for code, rule in RULES for refusal in _refuse(code, who, list(rule(facts)))]


def refuse(code: str, selector: Any, path: Optional[str], detail: str) -> List[Refusal]:
    """A refusal for something that was found outside the rules, in the same words as theirs."""
    who = drive.label(selector)
    return _refuse(code, "%s (%s)" % (who, path) if path else who, [detail])


def compare(expected: Any, actual: Any, same_boot: bool, who: str = "the drive") -> List[Refusal]:
    """Is a drive still the one that was planned? Both are identities; `diskseq` counts only within one boot. `who`: its name for people."""
    if not isinstance(expected, Mapping) or not isinstance(actual, Mapping) or not expected or not actual:
        return _refuse("identity_changed", who, ["its identity is missing"])
    keys = (*_SAME, "diskseq") if same_boot else _SAME
    changes = ["%s was %s, is %s" % (key, expected.get(key), actual.get(key)) for key in keys if expected.get(key) != actual.get(key)]
    return _refuse("identity_changed", "%s (%s)" % (who, actual.get("path")), changes)


def discover(host: Host) -> List[Dict[str, Any]]:
    """Every whole drive of the host, with the best selector proposed (None without one), as `inspect` returns them."""
    shared = machine(host)
    results = []
    for name in drive.whole_drives(host):
        selector = drive.best_selector(host, name)
        facts, refused = _safe_probe(host, name, {}, shared)
        if selector is None:
            refused = [*_refuse("no_identity", drive.node(name), [""]), *refused]
        results.append(_result(selector, facts, [*refused, *(refusals(facts, selector) if facts else [])]))
    return results


def _result(selector: Any, facts: Optional[Facts], refused: List[Refusal]) -> Dict[str, Any]:
    return {
        "selector": selector,
        "drive": drive.label(selector) if selector is not None else None,
        "path": facts.path if facts else None,
        "identity": facts.identity if facts else None,
        "eligible": facts is not None and not refused,
        "refusals": refused,
    }


def _locate(host: Host, selector: Any) -> Tuple[Optional[str], List[Refusal]]:
    """The one kernel name behind a selector, or why there is none."""
    who = drive.label(selector)
    problem = drive.selector_problem(selector)
    if problem:
        return None, _refuse("bad_selector", who, [problem])
    try:
        names = drive.find(host, selector)
    except (OSError, ValueError) as error:
        return None, _refuse("probe_failed", who, [str(error)])
    if len(names) > 1:
        return None, _refuse("ambiguous", who, [drive.node(name) for name in names])
    return (names[0], []) if names else (None, _refuse("not_found", who, [" by its " + drive.selector_item(selector)[0]]))


def _safe_probe(host: Host, name: str, held: Dict[str, int], shared: Machine) -> Tuple[Optional[Facts], List[Refusal]]:
    path = drive.node(name)
    try:
        return probe(host, name, held.get(path), shared), []
    except Exception as error:  # pylint: disable=broad-except  # whatever it is: an unknown is a refusal
        return None, _refuse("probe_failed", path, ["%s: %s" % (type(error).__name__, error)])


def _refuse(code: str, who: str, details: Sequence[str]) -> List[Refusal]:
    """One refusal with all its findings; none without a finding."""
    if not details:
        return []
    shown = list(dict.fromkeys(details))
    more = ["%d more" % (len(shown) - _MOST_SHOWN)] if len(shown) > _MOST_SHOWN else []
    text = REFUSALS[code]
    return [{"code": code, "message": "%s: %s. %s" % (who, text.problem.format(detail="; ".join(shown[:_MOST_SHOWN] + more)), text.remedy)}]
