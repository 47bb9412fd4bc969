# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what was tuned is still in force, and how to bring back what is not."""

from __future__ import annotations

import typing as t

from ..core.blocking_io import InTime
from ..core.deadline import Hangs
from ..core.host import Host
from . import setting_kinds
from .setting_kinds import KINDS, Setting, current
from .settings import apply_one, more

# Where the wanted value is not in force, and need not be.
EXCUSED = ("not_applicable", "managed")
NO_ANSWER = "hanging"  # the value of what is not told in time


def drifted(
    host: Host,
    applied: t.Sequence[Setting],
    device: str,
    kinds: t.Collection[str] = tuple(KINDS),
    silent: set[str] | None = None,
) -> list[str]:
    """Return what is not as it was asked for, on the host or on this drive: a sentence for each setting and value.

    device: the drive's kernel name. kinds: of settings to look at; some cost a process. silent: what gave no answer
      (setting_kinds.waits_for) and is not asked again; this adds to it where the host's files have deadlines.
    """
    grouped: dict[tuple[str, str | None, str], list[Setting]] = {}
    for item in _off(host, applied, device, kinds, set() if silent is None else silent):
        grouped.setdefault((item["name"], item["now"], item["wanted"]), []).append(item)
    return [_sentence(items[0], len(items)) for items in grouped.values()]


def _off(
    host: Host, applied: t.Sequence[Setting], device: str, kinds: t.Collection[str], silent: set[str]
) -> list[Setting]:
    looked_at = (
        item
        for item in applied
        if item["outcome"] not in EXCUSED and item["device"] in (None, device) and item["kind"] in kinds
    )
    # A generator: what is found silent on the way is not asked for its other settings.
    asked = (item for item in looked_at if setting_kinds.waits_for(item) not in silent)
    seen = [_now(host, item, silent) for item in asked]
    return [item for item in seen if item["now"] != item["wanted"]]


def _now(host: Host, item: Setting, silent: set[str]) -> Setting:
    """With the value in force as `now`; NO_ANSWER where the host's files have deadlines and it kept none."""
    if isinstance(host, InTime):
        host.patience_s = setting_kinds.patience_s(item)
    try:
        return dict(item, now=current(host, item))
    except Hangs:
        silent.add(setting_kinds.waits_for(item))
        return dict(item, now=NO_ANSWER)


def _sentence(item: Setting, count: int) -> str:
    """With the kernel's reason where it never took the value."""
    refused = item["outcome"] == "failed" and not item["message"].startswith(item["path"])
    reason = " ({0})".format(item["message"]) if refused else ""
    return "{0}{1} is {2}, tuned to {3}{4}".format(item["path"], more(count), item["now"], item["wanted"], reason)


def reapply(host: Host, applied: t.Sequence[Setting], device: str) -> list[Setting]:
    """Make again what no longer is as it was made, on the host or on this drive: a purge may give the drive a new
    queue.

    Returns those settings, as they are now; what never worked is not tried again.
    """
    made = [item for item in applied if item["outcome"] in ("changed", "unchanged")]
    lost = [item for item in _off(host, made, device, tuple(KINDS), set()) if item["now"] is not None]
    return [
        apply_one(host, dict({key: value for key, value in item.items() if key != "now"}, before=item["now"]))
        for item in lost
    ]
