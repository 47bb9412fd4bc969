# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_checks: what would invalidate the results of a host or a drive."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ..core.host import Host
from ..drive.entry import parse
from ..machine import pcie, snapshot
from ..records import base
from . import facts as check_facts
from . import table
from .base import HostFacts, LinkRule, Required

# SMART reports it in one byte; tools that count on are believed up to there.
MOST_USED_PCT = 1000
# Options with a variable preflight_<name> each: mappings of what is required, and limits with their defaults.
VERSION_RULES = ("firmware", "drivers", "versions")
LIMITS = {
    "temperature_headroom_c": 10,
    "min_free_memory_mib": 1024,
    "min_cpus": 2,
    "max_used_pct": 90,
}
OPTIONS: dict[str, t.Any] = {
    "drives": {"type": "list", "elements": "raw", "default": []},
    "levels": {"type": "dict", "default": {}},
    "write_cache_chosen": {"type": "bool", "default": False},
    "parallel_drives": {"type": "int", "default": 1},
    "traffic_s": {"type": "float", "default": 0},
    "readable": {"type": "list", "elements": "str", "default": []},
    **{name: {"type": "dict", "default": {}} for name in (*VERSION_RULES, "link")},
    **{name: {"type": "int", "default": value} for name, value in LIMITS.items()},
}


def module_result(host: Host, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the module's result."""
    functions = pcie.functions(host)
    observed = snapshot.gather(host, functions=functions)
    required = Required(
        **{name: options[name] for name in (*VERSION_RULES, *LIMITS, "parallel_drives", "write_cache_chosen")},
        link={
            pattern: LinkRule(float(rule.get("speed_gts") or 0), int(rule.get("width") or 0))
            for pattern, rule in options["link"].items()
        },
    )
    entries = [parse(drive) for drive in options["drives"]]
    facts = check_facts.gather(host, entries, observed, functions, required, options["traffic_s"], options["readable"])
    findings = table.run(facts, options["levels"], check_facts.vendor(host, facts))
    # The journal has the list of PCI Express functions, which is long.
    brief = dict(base.to_json(observed), pcie={"drives": observed.pcie["drives"]})
    return {
        "findings": [asdict(finding) for finding in findings],
        "passed": table.passed(findings),
        "snapshot": brief,
        "wear": _wear(facts),
    }


def _wear(facts: HostFacts) -> list[dict[str, t.Any]]:
    """Return, of each drive that was found, how many per cent of its rated life are used, by its own count."""
    reported = [(drive.drive, drive.health.used_pct) for drive in facts.drives]
    return [
        {"drive": drive, "used_pct": used if used is not None and 0 <= used <= MOST_USED_PCT else None}
        for drive, used in reported
    ]
