# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module examine: all that preflight reads of a host, in one go. A part has the name of the module that does it."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive.entry import parse
from ..machine import facts, links, shared_parts
from ..purge import drive_facts
from ..records import base
from ..records.identity import Identity
from ..run import engines, run_info
from ..run.states import LIVE_STATES
from . import host_checks, service_drives
from .facts import hypervisor

Values = t.Dict[str, t.Any]
# From the options of a part and their values to what the part is called with. Raises ValueError for a wrong value.
Validate = t.Callable[[Values, Values], Values]

# The keys of each part's result that preflight needs.
PARTS = {
    "run_info": ("runs",),
    "host_info": ("host_info",),
    "drive_facts": ("drives",),
    "host_checks": ("findings", "snapshot", "wear"),
}
_OF_SERVICE = ("drives", "service_not_found")
# Of drives in service. It is no module of its own: it answers in place of drive_facts, or goes over that answer.
SERVICE = "service_drives"


def module_result(host: Host, requested: t.Mapping[str, t.Any], validate: Validate) -> Values:
    """Return the keys of each requested part, and `failures`: what went wrong in the other parts."""
    result: Values = {"failures": {}}

    def add(part: str, options: Values, function: t.Callable[[Values], Values], **more: t.Any) -> None:
        if requested.get(part) is None:
            return
        try:
            found = function(validate(options, {**requested[part], **more}))
            result.update({key: found[key] for key in PARTS.get(part, _OF_SERVICE)})
        except Exception as error:  # as if it were a module of its own
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            result["failures"][part] = f"{kind}{error}"

    def runs(values: Values) -> Values:
        result["engines"] = engines.names(values["state_dir"])
        return run_info.module_result(host, values)

    def service(values: Values) -> Values:
        found = service_drives.module_result(host, values, result.get("drives", []))
        return _with_links(host, found) if values["reads"] else found

    add("run_info", run_info.OPTIONS, runs)
    # Not while a run is working: it has tried its engine, and another fio would show in what it measures.
    quiet: Values = {"fio_engines": []} if any(run["state"] in LIVE_STATES for run in result.get("runs", [])) else {}
    add("host_info", facts.OPTIONS, lambda values: facts.module_result(host, values), **quiet)
    add("drive_facts", drive_facts.OPTIONS, lambda values: _with_links(host, drive_facts.module_result(host, values)))
    reads = bool((requested.get(SERVICE) or {}).get("reads"))
    if "drives" in result or reads:
        add(SERVICE, service_drives.OPTIONS, service)
    # Not while a run is working: reading its drives would show in what it measures.
    if not any(run["state"] in LIVE_STATES for run in result.get("runs", [])):
        readable = [str(entry["drive"]) for entry in result.get("drives", []) if entry["eligible"]]
        # Of `all` nobody named them before.
        named = [entry["selector"] for entry in result.get("drives", []) if reads and entry["selector"] is not None]
        more = {"drives": named} if reads else {}
        checks = host_checks.OPTIONS
        add("host_checks", checks, lambda values: host_checks.module_result(host, values), readable=readable, **more)
    return result


def _with_links(host: Host, found: Values) -> Values:
    """Return what drive_facts found, with what the link of each drive carries and what it shares with others, where
    that is known.
    """
    is_virtual_machine = hypervisor(host) is not None
    for entry in found["drives"]:
        identity = base.parse(Identity, entry.get("identity") or {})
        name = identity.kernel_name
        carried = links.carries_mb_s(host, name, identity.transport) if name else None
        entry.update({} if carried is None else {"link_mb_s": carried})
        own = parse(entry.get("selector"))
        parts = shared_parts.of_drive(host, name, identity, own, is_virtual_machine) if name else None
        entry.update({} if parts is None else {"shared": base.to_json(parts)})
    return found
