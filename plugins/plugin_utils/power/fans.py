# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets a host's fans high, and back: by Redfish as the tables have it, or by the operator's own IPMI commands."""

from __future__ import annotations

import typing as t

from ...module_utils.core.files import now
from ...module_utils.records.base import Scalar
from ...module_utils.records.bmc import FansRecord
from ..common.bmc_values import parsed
from .bmc import BmcAccess, BmcError, BmcIdentity
from .ipmi import IpmiBmc
from .redfish import RedfishBmc

IPMI = "ipmi"
# A BMC that takes longer for one question is not waited for: fans hold no run up.
ASK_S = 10.0


class FansUnset(Exception):
    """The fans are as they were; the message says why."""


class Change(t.NamedTuple):
    """A change of the fans. is_needed: they are not so yet; make: does it; raises FansUnset. now: what they are."""

    record: FansRecord
    is_needed: bool
    make: t.Callable[[], None]
    now: str


def owner(access: BmcAccess) -> BmcIdentity:
    """Return whose BMC it says that it is. Raises FansUnset."""
    try:
        return IpmiBmc(access).identity() if access.protocol == IPMI else RedfishBmc(access, ASK_S).whose()
    except BmcError as error:
        raise FansUnset(f"tune_fans: the BMC {access.address}: {error}") from None


def set_high(access: BmcAccess, ipmi: t.Mapping[str, t.Sequence[str]], known: FansRecord | None) -> Change:
    """Return how to set them high; nothing is done yet. known: what an earlier play recorded. Raises FansUnset."""
    if ipmi:
        commands = [parsed(command) for command in ipmi["high"]]
        return Change(known or FansRecord(IPMI, None, now()), known is None, lambda: _send(access, commands), "IPMI")
    if access.protocol == IPMI:
        raise FansUnset("tune_fans: the BMC is asked by IPMI, where only your own commands do it: tune_fans_ipmi")
    bmc = RedfishBmc(access, ASK_S)
    try:
        found = bmc.fan_mode()
    except BmcError as error:
        raise FansUnset(f"tune_fans: the BMC {access.address}: {error}") from None
    if found is None:
        raise FansUnset(f"tune_fans: the BMC {access.address} offers no fan mode that is known (docs/bios.md)")
    path, mode, value = found
    record = known if known and known.way == mode.name else FansRecord(mode.name, value, now())
    return Change(record, value != mode.high, lambda: _patch(bmc, path, mode.property, mode.high), str(value))


def set_back(access: BmcAccess, ipmi: t.Mapping[str, t.Sequence[str]], known: FansRecord) -> Change:
    """Return how to restore them; nothing is done yet. Raises FansUnset."""
    if known.way == IPMI:
        if not ipmi:
            raise FansUnset("the fans were set high by tune_fans_ipmi, which is needed to restore them too")
        commands = [parsed(command) for command in ipmi["restore"]]
        return Change(known, True, lambda: _send(access, commands), "high")
    bmc = RedfishBmc(access, ASK_S)
    try:
        found = bmc.fan_mode()
    except BmcError as error:
        raise FansUnset(f"the fans stay high: the BMC {access.address}: {error}") from None
    if found is None or found[1].name != known.way:
        raise FansUnset(f"the fans stay high: the BMC {access.address} no longer offers the mode of {known.way}")
    path, mode, value = found
    return Change(known, value != known.before, lambda: _patch(bmc, path, mode.property, known.before), str(value))


def _patch(bmc: RedfishBmc, path: str, keys: tuple[str, ...], value: Scalar) -> None:
    body: t.Any = value
    for key in reversed(keys):
        body = {key: body}
    try:
        bmc.patch(path, body)
        found = bmc.fan_mode()
    except BmcError as error:
        raise FansUnset(f"the fans could not be set to {value}: {error}") from None
    if found is None or found[2] != value:
        raise FansUnset(f"the fans could not be set to {value}: the BMC took it, and has {found and found[2]}")


def _send(access: BmcAccess, commands: list[list[int]]) -> None:
    bmc = IpmiBmc(access)
    try:
        for command in commands:
            bmc.raw(command)
    except BmcError as error:
        raise FansUnset(f"the fans could not be set: {error}") from None
