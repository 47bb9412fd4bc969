# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power state that an NVMe drive works in: a higher number allows less power, and so less speed.

Source: NVM Express Base Specification 2.0, Power Management (feature 02h) and the power state descriptors of Identify
  Controller.
"""

from __future__ import annotations

import re
import typing as t

from ..core import tool_json
from ..core.host import Host
from ..tools.nvme import power_states

TIMEOUT_S = 20.0
# `nvme get-feature:0x02 (Power Management), Current value:00000001` (2.x); since 2.11 with 0x.
_VALUE = re.compile(r"Current value:\s*(?:0x)?([0-9a-fA-F]{1,8})\b")
_STATE_BITS = 0x1F


class State(t.NamedTuple):
    """number: 0 is full power. works: whether it does I/O in that state (a drive that idles may say one in which it
    does not); None: unknown.
    """

    number: int | None
    works: bool | None


def read(host: Host, path: str) -> State:
    """Return the state that the drive reports now."""
    number = reported(host, path)
    if number is None:
        return State(None, None)
    return State(
        number,
        operational(host.run(["nvme", "id-ctrl", path, "--output-format=json"], timeout_s=TIMEOUT_S).stdout, number),
    )


def reported(host: Host, path: str) -> int | None:
    """Return the number of that state alone; None: unknown."""
    return current(host.run(["nvme", "get-feature", path, "--feature-id=2"], timeout_s=TIMEOUT_S).stdout)


def named(number: int | None) -> str:
    """Return the words for a state: "power state 4"."""
    return f"power state {'unknown' if number is None else number}"


def current(text: str) -> int | None:
    """From `nvme get-feature --feature-id=2`."""
    match = _VALUE.search(text)
    return int(match.group(1), 16) & _STATE_BITS if match else None


def operational(text: str, number: int) -> bool | None:
    """Return whether a state is one in which I/O is done, by `nvme id-ctrl` in JSON; None: unknown."""
    states = _states(text)
    return states[number] if number < len(states) else None


def deepest(host: Host, path: str) -> int | None:
    """Return the state of least power in which no I/O is done; None: the drive has none, or does not tell."""
    told = _states(host.run(["nvme", "id-ctrl", path, "--output-format=json"], timeout_s=TIMEOUT_S).stdout)
    return max((number for number, works in enumerate(told) if works is False), default=None)


def enter(host: Host, path: str, number: int) -> str:
    """Put a controller into a state until the next power cycle or reset; why it is in none such, "" where it is.

    path: of the controller, as no namespace has a state of its own: with a namespace's id it refuses the command.
    """
    argv = ["nvme", "set-feature", path, "--feature-id=2", f"--value={number}"]
    answer = host.run(argv, timeout_s=TIMEOUT_S)
    if answer.rc != 0:
        return answer.ended()
    now = reported(host, path)
    return "" if now == number else f"it reports {named(now)}, not {number}"


def _states(text: str) -> list[bool | None]:
    try:
        return power_states(tool_json.read(text))
    except tool_json.NotOneObject:
        return []
