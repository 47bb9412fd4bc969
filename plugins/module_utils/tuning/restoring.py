# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How one setting gets its value of before the run back, and which is first (settings.restore does them all)."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive import identity
from ..drive.entry import parse
from . import setting_kinds
from .setting_kinds import KINDS, Setting, current


def order(settings: t.Sequence[Setting]) -> list[Setting]:
    """Return the host before its drives, as one that hangs must not keep the rest from being put back; services last,
    as they set things anew.

    In each of these first what resets other settings, then those, the last that was made first.
    """

    def rank(numbered: tuple[int, Setting]) -> tuple[t.Any, ...]:
        index, item = numbered
        resets = setting_kinds.has_side_effects(item) and item["wanted"] is not None
        return (
            item["kind"] == "service",
            item.get("device") is not None,
            item["wanted"] is None,
            not resets,
            index if resets else -index,
        )

    return [item for _index, item in sorted(enumerate(settings), key=rank)]


def restored(host: Host, item: Setting, same_boot: bool, let_go: bool) -> Setting:
    """One setting as it was before the run, in this boot or after another; `let_go`: as in settings.restore."""
    if KINDS[item["kind"]].survives_reboot:
        entry = parse(item["selector"])
        names = identity.find(host, entry)
        if len(names) == 1:
            return _back(host, dict(item, device=names[0]))
        message = f"the drive {entry.label} is not there"
        if not (same_boot or let_go):
            return dict(item, effective=None, outcome="failed", message=message)
        name = item["name"].replace("_", " ")
        message = "{0}; its {1} was {2} before, and stays {3}".format(message, name, item["before"], item["wanted"])
        return dict(item, effective=None, outcome="not_applicable", message=message)
    return _back(host, item) if same_boot else dict(item, effective=None, outcome="restored", message="by a reboot")


def _back(host: Host, item: Setting) -> Setting:
    """Put one back."""
    value = current(host, item)
    if value is None:
        return dict(item, effective=None, outcome="not_applicable", message=item["path"] + " is gone")
    message = ""
    if value != item["before"]:
        _outcome, message = KINDS[item["kind"]].write(host, item, item["before"])
        value = current(host, item)
    return dict(item, effective=value, outcome="restored" if value == item["before"] else "failed", message=message)


def may_be_back(item: Setting, hung: t.Collection[str]) -> bool:
    """Return whether it is worth another look: it failed, and what it waits for answers."""
    return item["outcome"] == "failed" and setting_kinds.waits_for(item) not in hung


def look_again(host: Host, item: Setting) -> Setting:
    """One that would not go back may have come back with another: the kernel refuses a 0 for dirty_bytes, and sets it
    with dirty_ratio.
    """
    if KINDS[item["kind"]].survives_reboot:
        return item
    value = current(host, item)
    return dict(item, effective=value, outcome="restored", message="") if value == item["before"] else item
