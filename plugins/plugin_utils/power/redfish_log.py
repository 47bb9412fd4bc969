# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC that speaks Redfish has last on record of its system (DSP2046: LogService, LogEntry): the host's console
where it keeps that, as OpenBMC's HostLogger does, else the newest entry of its other logs.
"""

from __future__ import annotations

import re
import typing as t

from ..validation import printable
from .bmc import BmcError

Json = dict[str, t.Any]
Get = t.Callable[[str], Json]
MOST_LOGS = 10
LONGEST = 300
_CONSOLE = re.compile(r"hostlogger|console|serial|\bsol\b", re.IGNORECASE)


def last_line(system: Json, get: Get) -> str:
    """Return it, and where and when it was logged; "": the BMC has none. get: raises BmcError."""
    newest, told = ("", ""), ""
    for service in _services(system, get)[:MOST_LOGS]:
        name = printable.line(service.get("Id") or service.get("Name") or "", 40)
        entry = _newest(service, get)
        text = printable.line(entry.get("Message") or "", LONGEST) if entry else ""
        if not text:
            continue
        at = printable.line((entry or {}).get("Created") or "", 40)
        is_console = bool(_CONSOLE.search(f"{name} {service.get('Name')}"))
        what = "the last line of its console" if is_console else "the last entry of the log"
        order = ("1" if is_console else "0", at)
        if not told or order > newest:
            newest, told = order, f"{what} ({name}{f', {at}' if at else ''}): {text}"
    return told


def _services(system: Json, get: Get) -> list[Json]:
    """Return the logs of a system, and of the managers that it is managed by."""
    links = (system.get("Links") or {}).get("ManagedBy") if isinstance(system.get("Links"), dict) else None
    owners = [system, *(_got(place, get) for place in _places(links))]
    collections = [_got(owner.get("LogServices"), get) for owner in owners]
    return [_got(place, get) for collection in collections for place in _places(collection.get("Members"))]


def _newest(service: Json, get: Get) -> Json | None:
    """Return the newest entry of a log. A BMC answers with a page; the last of a log may be on another."""
    entries = _got(service.get("Entries"), get)
    found = _members(entries)
    count, place = entries.get("Members@odata.count"), _path(service.get("Entries"))
    if isinstance(count, int) and count > len(found):
        found += _members(_got({"@odata.id": f"{place}?$skip={count - 1}"}, get))
    # Some tell the newest first, others last.
    if found and _created(found[0]) > _created(found[-1]):
        return found[0]
    return found[-1] if found else None


def _created(entry: Json) -> str:
    return str(entry.get("Created") or "")


def _members(collection: Json) -> list[Json]:
    members = collection.get("Members")
    return [one for one in members if isinstance(one, dict)] if isinstance(members, list) else []


def _places(links: t.Any) -> list[t.Any]:
    return links[:MOST_LOGS] if isinstance(links, list) else []


def _path(link: t.Any) -> str:
    place = link.get("@odata.id") if isinstance(link, dict) else None
    return place if isinstance(place, str) and place.startswith("/") else ""


def _got(link: t.Any, get: Get) -> Json:
    """Return what a link leads to; {} where that is nothing."""
    place = _path(link)
    try:
        return get(place) if place else {}
    except BmcError:
        return {}
