# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module examine: all that preflight asks of a host, in one go. A part has the name of the module that does it."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..machine import facts
from ..purge import drive_facts
from ..run import engines, run_info
from ..run.states import LIVE_STATES
from . import host_checks

Values = t.Dict[str, t.Any]
# Options of a part and what is given for them, to what the part is called with. Raises ValueError for a wrong value.
Validate = t.Callable[[Values, Values], Values]


# The keys of each part's answer that preflight needs.
PARTS = {
    "run_info": ("runs",),
    "host_info": ("host_info",),
    "drive_facts": ("drives",),
    "host_checks": ("findings", "snapshot", "wear"),
}


def answer(machine: Host, given: t.Mapping[str, t.Any], check_mode: bool, validate: Validate) -> Values:
    """What each part says that is asked for, by the part's own keys, and `failures`: what went wrong with others."""
    said: Values = {"failures": {}}

    def ask(part: str, options: Values, function: t.Callable[[Values], Values], **more: t.Any) -> None:
        if given.get(part) is None:
            return
        try:
            told = function(validate(options, {**given[part], **more}))
            said.update({key: told[key] for key in PARTS[part]})
        except Exception as error:  # as if it were a module of its own
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            said["failures"][part] = f"{kind}{error}"

    def ask_runs(values: Values) -> Values:
        said["engines"] = engines.names(values["state_dir"])
        return run_info.answer(machine, values, check_mode)

    ask("run_info", run_info.OPTIONS, ask_runs)
    ask("host_info", facts.OPTIONS, lambda values: facts.answer(machine, values))
    ask("drive_facts", drive_facts.OPTIONS, lambda values: drive_facts.answer(machine, values))
    # Not where a run works: reading its drives would show in what it measures.
    if not any(run["state"] in LIVE_STATES for run in said.get("runs", [])):
        readable = [str(entry["drive"]) for entry in said.get("drives", []) if entry["eligible"]]
        ask("host_checks", host_checks.OPTIONS, lambda values: host_checks.answer(machine, values), readable=readable)
    return said
