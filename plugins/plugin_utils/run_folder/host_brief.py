# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's snapshot in short, as it goes with the host's record. Pure, but for what is known of a hypervisor."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ...module_utils.core.files import read_json
from ...module_utils.records.results import Brief
from ..common import bmc_tables as tables
from ..validation import printable

# What esxi.yml keeps of each host that runs ESXi, below the results folder.
HYPERVISORS = "_hypervisors"


def with_hypervisor(brief_: Brief | None, results_dir: str, name: str) -> tuple[Brief | None, str]:
    """Return a guest's brief with what its hypervisor is, and what is wrong with that; "": nothing. name: of the
    hypervisor in the inventory; "": nobody said that there is one.
    """
    if not name or brief_ is None:
        return brief_, ""
    if os.sep in name:
        return brief_, f"ssd_hypervisor {name!r} is not the name of a host in the inventory"
    path = os.path.join(results_dir, HYPERVISORS, f"{name}.json")
    try:
        found = read_json(path)
    except ValueError as error:
        return brief_, f"{path} is damaged ({error}); run esxi.yml again"
    if found is None:
        return brief_, f"nothing is known of its hypervisor {name}: run esxi.yml before the run (docs/esxi.md)"
    told: dict[str, t.Any] = {
        str(key)[:100]: printable.line(str(value), 1000) for key, value in list(found.items())[:20]
    }
    return dataclasses.replace(brief_, hypervisor=told), ""


def brief(snapshot: t.Mapping[str, t.Any]) -> Brief:
    """Return the few lines of a snapshot that go with every result; all of it is in the journal."""
    cpu, bios, tuned = (snapshot.get(key) or {} for key in ("cpu", "bios", "tunables"))
    services, functions = tuned.get("services"), _functions_of_drives(_dict(snapshot.get("pcie")))
    names = ("iommu", "payload_bytes", "read_request_bytes")
    of_functions: dict[str, t.Any] = {name: _of_drives(functions, name) for name in names}
    return Brief(
        cpu=cpu.get("model"),
        sockets=cpu.get("sockets"),
        cores=cpu.get("cores"),
        cpus=cpu.get("cpus"),
        memory_bytes=(snapshot.get("memory") or {}).get("total_bytes"),
        system=" ".join(text for text in (bios.get("system_vendor"), bios.get("system")) if text) or None,
        bios=" ".join(text for text in (bios.get("vendor"), bios.get("version"), bios.get("date")) if text) or None,
        kernel=(snapshot.get("kernel") or {}).get("release"),
        os=(snapshot.get("kernel") or {}).get("os"),
        command_line=snapshot.get("command_line"),
        tools={name: told["version"] for name, told in (snapshot.get("tools") or {}).items() if told},
        governor="/".join(sorted(tuned.get("governor") or {})) or None,
        smt=tuned.get("smt"),
        aspm_policy=tuned.get("aspm_policy"),
        turbo=_turbo(tuned),
        c_states=_c_states(tuned),
        irqbalance=services.get("irqbalance.service") if isinstance(services, dict) else None,
        clock_source=tuned.get("clock_source"),
        mitigations={name: _clause(text) for name, text in _dict(cpu.get("mitigations")).items() if text},
        nvme_poll_queues=tuned.get("nvme_poll_queues"),
        hardware_queues=_of_drives(_dict(tuned.get("queue")), "hardware_queues"),
        bios_settings=_bios_settings(_dict(snapshot.get("bios_settings"))),
        bios_attributes={
            name: value
            for name, value in _dict(_dict(snapshot.get("bios_settings")).get("attributes")).items()
            if not tables.is_own(name)
        },
        **of_functions,
    )


def _bios_settings(told: t.Mapping[str, t.Any]) -> str | None:
    """Return whether the BIOS attributes could be read; None where no BMC is given."""
    return (f"unknown ({told['unknown']})" if told.get("unknown") else "read") if told else None


def _dict(value: t.Any) -> dict[str, t.Any]:
    """A journal is what its host made of it."""
    return value if isinstance(value, dict) else {}


def _functions_of_drives(pcie: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the PCI functions of a snapshot's drives, by kernel name."""
    devices = _dict(pcie.get("devices"))
    return {name: devices.get(str(address)) for name, address in _dict(pcie.get("drives")).items()}


def _of_drives(told: t.Mapping[str, t.Any], key: str) -> str | None:
    """Return the values that drives have; unlike ones joined by "/"."""
    found = {str(_dict(about)[key]) for about in told.values() if _dict(about).get(key) is not None}
    return "/".join(sorted(found))[:100] or None


def _clause(text: t.Any) -> str:
    return re.split("[,;]", str(text))[0][:100]


def _turbo(tuned: t.Mapping[str, t.Any]) -> str | None:
    """Return whether CPUs may run faster than their base frequency: Intel's driver has a switch against it."""
    told = {"0": "on", "1": "off"}.get(str(tuned.get("no_turbo")))
    return told or {"1": "on", "0": "off"}.get(str(tuned.get("boost")))


def _c_states(tuned: t.Mapping[str, t.Any]) -> str | None:
    """Return how deep a CPU may sleep, by its idle states and the limit on how long it may take to wake up: "on, down
    to C6", or "off"; None where the kernel has no idle states.
    """
    told, limit = tuned.get("idle_states"), tuned.get("cpu_dma_latency_us")
    if not isinstance(told, list) or not told:
        return None
    names = []
    for state in told:
        name, latency = (state.get(key) if isinstance(state, dict) else None for key in ("name", "latency_us"))
        too_slow = isinstance(limit, int) and isinstance(latency, int) and latency > limit
        if isinstance(name, str) and name != "POLL" and not state.get("disabled") and not too_slow:
            names.append(name)
    return f"on, down to {names[-1][:40]}" if names else "off"
