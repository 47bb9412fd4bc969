# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a drive can write in time what a saturation test asks for, by what earlier runs measured of its model: proof
refuses, doubt does not. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.attributes import VIRTUAL
from ..common import units
from ..common.units import plan_duration
from ..plan import time_estimates
from . import alternative_test
from .duration_history import SAME_SIZE
from .findings import Finding
from .saturation_history import Saturation

# After its fall a drive's rate moves within the range that steady state allows (20 %); what it would take at 20 % more
# is still proof.
FASTER = 1.2
# One drive may be a bad one of its model.
LEAST_DRIVES = 2
CHECK = "saturation_time"

Mapping = t.Mapping[str, t.Any]


def wanted_models(plans: t.Mapping[str, Mapping]) -> set[str]:
    """Return the models of which a test of these plans asks for more than it may be able to wait for."""
    return {drive["expected"]["model"] for drive, _test in _bound(plans.values())}


def _bound(plans: t.Iterable[Mapping]) -> list[tuple[Mapping, Mapping]]:
    """Return each drive of a known model with each of its saturation tests of one cell that have a limit in time."""
    pairs = [(drive, test) for plan in plans for drive in plan["drives"] for test in drive["tests"]]
    return [
        (drive, test)
        for drive, test in pairs
        if drive["expected"].get("model")
        and drive["expected"].get("transport") not in VIRTUAL
        and len(test["cells"]) == 1
        and time_estimates.slowest_write(test, drive["expected"]["size_bytes"]) is not None
    ]


def findings(plans: t.Mapping[str, Mapping], known: t.Sequence[Saturation]) -> list[Finding]:
    """Tests that no drive of the model could finish, by LEAST_DRIVES or more of them. plans: plan.json by host; known:
    of results.history.
    """
    slow = _slow(plans, known)
    return [
        Finding(f"test {test['name']}: {proof}; {_advice(test)}", host, drive)
        for host, drive, test, proof, sure in slow
        if sure
    ]


def warnings(plans: t.Mapping[str, Mapping], known: t.Sequence[Saturation]) -> list[dict[str, t.Any]]:
    """Return those that fewer drives speak against, as warnings of run.json: {host, check, drive, level, message,
    remedy}.
    """
    return [
        {
            "host": host,
            "check": CHECK,
            "drive": drive,
            "level": "warning",
            "message": f"test {test['name']}: {proof}",
            "remedy": _advice(test),
        }
        for host, drive, test, proof, sure in _slow(plans, known)
        if not sure
    ]


def _advice(test: Mapping) -> str:
    return f"raise its rounds.max or rounds.time_limit_s, or {alternative_test.advice(test)}"


def _slow(plans: t.Mapping[str, Mapping], known: t.Sequence[Saturation]) -> list[tuple[str, str, Mapping, str, bool]]:
    """(host, drive, test, what speaks against it, whether enough drives do)."""
    bound = [(host, drive, test) for host, plan in plans.items() for drive, test in _bound([plan])]
    said = [(host, drive, test, too_slow(test, drive["expected"], known)) for host, drive, test in bound]
    return [
        (
            host,
            drive["drive"],
            test,
            proof,
            _are_enough(_alike(test, drive["expected"], known), host),
        )
        for host, drive, test, proof in said
        if proof
    ]


def _are_enough(seen: t.Sequence[Saturation], host: str) -> bool:
    """Return whether so many speak against a test that it is refused. No single host can have another one's refused."""
    hosts = {item.host for item in seen}
    return len({(item.host, item.drive) for item in seen}) >= LEAST_DRIVES and (len(hosts) > 1 or hosts == {host})


def _alike(test: Mapping, identity: Mapping, known: t.Sequence[Saturation]) -> list[Saturation]:
    """Return what was measured of drives of this model and size by the same cell."""
    size, cell = identity["size_bytes"], test["cells"][0]["id"]
    return [
        item
        for item in known
        if item.model == identity["model"] and item.cell == cell and abs(item.size_bytes - size) <= SAME_SIZE * size
    ]


def too_slow(test: Mapping, identity: Mapping, known: t.Sequence[Saturation]) -> str:
    """Return why the test cannot get as far as its first window on such a drive; "" where that is not proved: the
    fastest that was measured counts.
    """
    size, alike = identity["size_bytes"], _alike(test, identity, known)
    asked, left_s = test["steady_state"]["min_capacity_multiple"] * size, time_estimates.time_for_writing_s(test)
    if not alike or left_s is None:
        return ""
    fastest = min(alike, key=lambda item: needed_s(item, asked))
    least_s = needed_s(fastest, asked)
    if least_s <= left_s:
        return ""
    return (
        f"its limits leave {plan_duration(max(0.0, left_s))} for writing "
        f"{test['steady_state']['min_capacity_multiple']:g} x {units.data_size(size)}; "
        f"this model takes at least {plan_duration(least_s)}, as run {fastest.run_id} measured ({fastest.host}, "
        f"{fastest.drive}: "
        f"{units.data_size(fastest.written_bytes)} in {plan_duration(fastest.elapsed_s)}, then "
        f"{units.show('bandwidth', fastest.then_bytes_per_s)})"
    )


def needed_s(item: Saturation, asked_bytes: float) -> float:
    """Return how long a drive like this takes at least to write so much from fresh on. 0 where it was seen to have
    written as much.
    """
    if asked_bytes <= item.written_bytes:
        return 0.0
    return item.elapsed_s + (asked_bytes - item.written_bytes) / (item.then_bytes_per_s * FASTER)
