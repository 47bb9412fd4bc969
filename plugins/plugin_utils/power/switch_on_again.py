# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches on what a power cut left off (left_off.py), each by its own BMC, and waits until it answers."""

from __future__ import annotations

import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

from ..watch.poller import Sweep
from .left_off import HOW_ON, LeftOff
from .switches import BmcSwitch, NotCut

ASK_EVERY_S = 2.0
MOST_AT_ONCE = 32


class Host(t.NamedTuple):
    """One that was left off. ask: whatever it answers; raises where it does not."""

    left: LeftOff
    switch: BmcSwitch
    ask: t.Callable[[], t.Any]


class Done(t.NamedTuple):
    """What came of it. switched: by this play; is_on: those, and who answers; problems: of the rest."""

    switched: list[str]
    is_on: list[str]
    problems: list[str]


def all_of(
    hosts: t.Mapping[str, Host],
    timeout_s: float,
    only_tells: bool,
    tell: t.Callable[[str], None],
    clock: t.Callable[[], float] = time.monotonic,
) -> Done:
    """Switch them on, and wait for each as long as its run would have. timeout_s: of a question to a host."""
    for name, host in hosts.items():
        tell(f"{name}: {host.left.text}{f'; {HOW_ON}' if only_tells else ''}")
    if only_tells or not hosts:
        return Done([], [], [])
    # Side by side: a BMC that does not obey is asked for minutes.
    with ThreadPoolExecutor(min(len(hosts), MOST_AT_ONCE)) as pool:
        refused = dict(zip(hosts, pool.map(_refusal, hosts.values())))
    why = {name: f"{name}: it is left off: {text}; switch it on by hand" for name, text in refused.items() if text}
    switched = [name for name in hosts if name not in why]
    for name in switched:
        tell(f"{name}: it is switched on; waiting until it answers")
    back = _back(hosts, set(switched), timeout_s, clock)
    problems = [text for name, text in why.items() if name not in back]
    for name in switched:
        if name not in back:
            problems.append(f"{name}: it is switched on, and gave no answer for {hosts[name].left.back_s:g} s")
    for text in problems:
        tell(text)
    return Done(switched, [name for name in hosts if name in back or name in switched], problems)


def _refusal(host: Host) -> str:
    """Switch a host on, and return why that could not be done; "": it is on."""
    try:
        host.switch.switch_on()
    except NotCut as error:
        return str(error) or "its BMC does not say why"
    return ""


def _back(hosts: t.Mapping[str, Host], switched: set[str], timeout_s: float, clock: t.Callable[[], float]) -> set[str]:
    """Return who answers. Those that were not switched on are asked once: somebody may have done it."""
    asks = {name: host.ask for name, host in hosts.items()}
    sweep = Sweep(asks, lambda _answer: True, timeout_s)
    until = {name: clock() + host.left.back_s for name, host in hosts.items() if name in switched}
    try:
        while asks:
            sweep.round()
            waits = [name for name, end in until.items() if not sweep.hosts[name].ended and clock() < end]
            if not waits:
                break
            sweep.pause(ASK_EVERY_S)
    finally:
        sweep.close()
    return {name for name, seen in sweep.hosts.items() if seen.ended}
