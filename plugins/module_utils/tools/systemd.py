# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services and timers of systemd: which are active, start and stop one."""

from __future__ import annotations

import typing as t

from ..core.host import Host

SYSTEMD = "/run/systemd/system"
# A start waits for the service's own, which may load a profile.
CHANGE_TIMEOUT_S = 120.0
ACTIVE = ("active", "activating", "reloading")
# Those that rewrite settings or move interrupts, and those that may install a new kernel or driver in the middle of a
# run.
REWRITERS = (
    "irqbalance.service",
    "tuned.service",
    "power-profiles-daemon.service",
    "ondemand.service",
    "unattended-upgrades.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dnf-automatic.timer",
    "dnf-automatic-download.timer",
    "dnf-automatic-install.timer",
)


def state(host: Host, unit: str) -> str | None:
    """`active` or `inactive`; None where there is no systemd or no such unit."""
    return states(host, [unit])[unit]


def states(host: Host, units: t.Sequence[str]) -> dict[str, str | None]:
    """`state` of several units, by one command."""
    found: dict[str, str | None] = {unit: None for unit in units}
    if not units or not host.exists(SYSTEMD):
        return found
    shown = host.run(["systemctl", "show", "--property=LoadState,ActiveState", "--", *units]).stdout
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.strip().split("\n\n")]
    if len(blocks) == len(units):
        for unit, block in zip(units, blocks):
            if block.get("LoadState") == "loaded":
                found[unit] = "active" if block.get("ActiveState") in ACTIVE else "inactive"
    return found


def stopped_with(host: Host, unit: str) -> list[str]:
    """Return the active units that systemd stops together with this one, and does not start with it (systemd.unit(5),
    Requires=, BindsTo=, PartOf=).
    """
    if not host.exists(SYSTEMD):
        return []
    shown = host.run(["systemctl", "show", "--property=RequiredBy,BoundBy,ConsistsOf", "--", unit]).stdout
    # To start a target would start everything that belongs to it.
    names = sorted(
        {name for line in shown.splitlines() for name in line.partition("=")[2].split() if not name.endswith(".target")}
    )
    return [name for name, seen in states(host, names).items() if seen == "active"]


def change(host: Host, unit: str, wanted: str) -> str:
    """Make a unit `active` or `inactive`; an error text, empty when it worked."""
    result = host.run(["systemctl", "start" if wanted == "active" else "stop", "--", unit], timeout_s=CHANGE_TIMEOUT_S)
    return (result.stderr.strip() or f"systemctl ended with exit code {result.rc}") if result.rc else ""
