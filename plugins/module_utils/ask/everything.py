# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module examine: all that preflight asks of a host, in one go. A part has the name of the module that does it."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..run import engines
from ..run.states import LIVE_STATES
from . import checks, drives, host, runs

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
        return runs.answer(machine, values, check_mode)

    ask("run_info", runs.OPTIONS, ask_runs)
    ask("host_info", host.OPTIONS, lambda values: host.answer(machine, values))
    ask("drive_facts", drives.OPTIONS, lambda values: drives.answer(machine, values))
    # Not where a run works: reading its drives would show in what it measures.
    if not any(run["state"] in LIVE_STATES for run in said.get("runs", [])):
        readable = [str(entry["drive"]) for entry in said.get("drives", []) if entry["eligible"]]
        ask("host_checks", checks.OPTIONS, lambda values: checks.answer(machine, values), readable=readable)
    return said
