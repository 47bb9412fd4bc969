# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard: may these drives be erased? Probes each drive that the entries name, and lets the rules judge."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..core import trust
from ..core.host import Host
from ..drive import identity
from ..drive.entry import label, selector_item
from . import own_data
from .device import user_space
from .facts import Facts, Machine
from .probe import machine, probe
from .rules import Refusal, entry_problem, lifted_codes, make_refusals, ours, refusals


def inspect(
    host: Host,
    selectors: Sequence[Any],
    held: Optional[Mapping[str, int]] = None,
    state_dir: Optional[str] = None,
    run_id: Optional[str] = None,
) -> List[Dict[str, Any]]:
    """May the drives that these entries of ssd_drives name be erased?

    `held` maps the path of a drive to a descriptor that this process opened with O_EXCL; it is compared with the
    drive instead of another exclusive open. `state_dir`: where our ledger is; what the run `run_id`, or a finished one,
    left on a drive does not speak against it. Returns, in the order given, `{selector, drive, path, identity, eligible,
    refusals: [{code, message}], overridden: the same, passing: [who has it open and only looks at drives, such as udev],
    own_data: None or {run_id, state, released, unchanged}}`; path and
    identity are None where no single drive matches.
    """
    located = [_locate(host, selector) for selector in selectors]
    shared = machine(host, [name for name, _refused in located if name], quick=bool(held))
    shared.untrusted = trust.problems(state_dir) if state_dir else []
    results = []
    for index, (selector, (name, refused)) in enumerate(zip(selectors, located)):
        facts = None
        if name is not None:
            facts, failed = _safe_probe(host, name, dict(held or {}), shared, state_dir)
            same = [label(selectors[other]) for other, (twin, _none) in enumerate(located) if twin == name and other != index]
            refused = [*make_refusals("duplicate", label(selector), same), *failed, *(refusals(facts, selector) if facts else [])]
        results.append(_result(selector, facts, refused, run_id))
    return results


def discover(host: Host, state_dir: Optional[str] = None) -> List[Dict[str, Any]]:
    """Every whole drive of the host, with the best selector proposed (None without one), as `inspect` returns them."""
    names = identity.whole_drives(host)
    shared = machine(host, names)
    results = []
    for name in names:
        selector = identity.best_selector(host, name)
        facts, refused = _safe_probe(host, name, {}, shared, state_dir)
        if selector is None:
            refused = [*make_refusals("no_identity", identity.node(name), [""]), *refused]
        results.append(_result(selector, facts, [*refused, *(refusals(facts, selector) if facts else [])]))
    return results


def _result(selector: Any, facts: Optional[Facts], refused: List[Refusal], run_id: Optional[str] = None) -> Dict[str, Any]:
    known = facts.own_data if facts else None
    left = [refusal for refusal in refused if refusal["code"] not in ours(known, run_id)]
    lifted = lifted_codes(selector)
    return {
        "selector": selector,
        "drive": label(selector) if selector is not None else None,
        "path": facts.path if facts else None,
        "identity": facts.identity if facts else None,
        "eligible": facts is not None and all(refusal["code"] in lifted for refusal in left),
        "refusals": [refusal for refusal in left if refusal["code"] not in lifted],
        "overridden": [refusal for refusal in left if refusal["code"] in lifted],
        "passing": facts.passing if facts else [],
        "own_data": known,
    }


def _locate(host: Host, selector: Any) -> Tuple[Optional[str], List[Refusal]]:
    """The one kernel name behind a selector, or why there is none."""
    who = label(selector)
    problem = entry_problem(selector)
    if problem:
        return None, make_refusals("bad_selector", who, [problem])
    try:
        names = identity.find(host, selector)
    except (OSError, ValueError) as error:
        return None, make_refusals("probe_failed", who, [str(error)])
    if len(names) > 1:
        return None, make_refusals("ambiguous", who, [identity.node(name) for name in names])
    return (names[0], []) if names else (None, make_refusals("not_found", who, [" by its " + selector_item(selector)[0] + user_space(host)]))


def _safe_probe(
    host: Host, name: str, held: Dict[str, int], shared: Machine, state_dir: Optional[str]
) -> Tuple[Optional[Facts], List[Refusal]]:
    path = identity.node(name)
    try:
        ledger = own_data.read(state_dir, identity.identity(host, name))
        return probe(host, name, held.get(path), shared, ledger), []
    except Exception as error:  # pylint: disable=broad-except  # whatever it is: an unknown is a refusal
        return None, make_refusals("probe_failed", path, ["%s: %s" % (type(error).__name__, error)])
