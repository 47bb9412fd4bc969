# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has otherwise than its peers, from their snapshots. Pure, standard library only."""

from __future__ import annotations

import collections
import typing as t

Mapping = t.Mapping[str, t.Any]
# What people call it, where that is another word than the snapshot's.
SAID = {
    "bios_settings": "BIOS attributes",
    "c_states": "C-states",
    "clock_source": "clock source",
    "iommu": "IOMMU",
    "payload_bytes": "PCI Express payload in bytes",
    "read_request_bytes": "PCI Express read request in bytes",
    "hardware_queues": "hardware queues of a drive",
    "nvme_poll_queues": "poll queues of the NVMe driver",
}
# What a dictionary of a brief is of.
PARTS = {
    "tools": "tool {0}",
    "mitigations": "mitigation of {0}",
    "bios_attributes": "BIOS attribute {0}",
    "hypervisor": "hypervisor's {0}",
}
# A host whose BMC did not answer has them all the same, and another board has none of them.
_ONLY_IF_BOTH = PARTS["bios_attributes"].format("")
_MOST_OF_BIOS = 20


class Peers(t.NamedTuple):
    """counts: by name, how many hosts have which text; number: of hosts."""

    counts: t.Mapping[str, t.Mapping[str, int]]
    number: int


def peers(rest: t.Iterable[t.Mapping[str, str]]) -> Peers:
    """Hosts to hold others against, each as `flat` makes it."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    number = 0
    for each in rest:
        number += 1
        for key, value in each.items():
            counts[key][value] += 1
    return Peers(counts, number)


def describe_differences(mine: t.Mapping[str, str], of: Peers, among: bool = False) -> list[str]:
    """Return what a host has otherwise than most of the others: "bios: AMI 2.4 where 7 of 8 others have AMI 2.6". mine:
    as `flat` makes it. among: it is one of the peers itself, and not to be held against itself.
    """
    rest = of.number - among
    found = []
    for key in sorted({*mine, *of.counts}) if mine and rest > 0 else ():
        counts: dict[str | None, int] = dict(of.counts.get(key, {}).items())
        counts[None] = of.number - sum(counts.values())
        own = mine.get(key)
        counts[own] = counts.get(own, 0) - among
        most = max(counts, key=lambda value: counts[value])
        if None in (own, most) and key.startswith(_ONLY_IF_BOTH):
            continue
        if own != most and 2 * counts[most] > rest:
            found.append(f"{key}: {_said(own)} where {counts[most]} of {rest} others have {_said(most)}")
    return _shortened(found)


def _shortened(found: list[str]) -> list[str]:
    """Return differences, of BIOS attributes the first ones and how many more there are."""
    more = [each for each in found if each.startswith(_ONLY_IF_BOTH)][_MOST_OF_BIOS:]
    if not more:
        return found
    return [*(each for each in found if each not in more), f"and {len(more)} more BIOS attributes"]


def flat(snapshot: Mapping) -> dict[str, str]:
    """Return a snapshot (host_brief.py) as texts by name; of the kernel's command line each argument that is not
    of this machine alone.
    """
    flat = {}
    for key, value in snapshot.items():
        if key in PARTS and isinstance(value, t.Mapping):
            flat.update({PARTS[key].format(name): str(each) for name, each in value.items() if each not in (None, "")})
        elif key == "command_line" and value:
            words = [
                word
                for word in str(value).split()
                if not word.startswith(("root=", "BOOT_IMAGE=", "initrd=", "resume=")) and "UUID" not in word
            ]
            flat.update(
                {f"kernel argument {word.partition('=')[0]}": word.partition("=")[2] or "set" for word in words}
            )
        elif key == "memory_bytes" and isinstance(value, (int, float)):
            # The kernel keeps a little of it, more or less.
            flat["memory"] = f"{float(f'{value / 2**30:.2g}'):g} GiB"
        elif isinstance(value, (str, int, float)) and value != "":
            flat[SAID.get(key, key)] = str(value)
    return flat


def _said(value: str | None) -> str:
    return "none" if value is None else value
