# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight asks a host, made from the host's variables. Pure."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils.checks import host_checks
from ..common import argument_specs
from ..common.argument_specs import Variables
from ..common.values import AUTO, drives_at_once

# Options of a module, by name.
Values = dict[str, t.Any]
# Options of host_checks that have a variable of their own.
MAPPINGS = ("levels", *host_checks.VERSION_RULES, "link")
# Tools that some tests take; they are missing only where one of the plan does.
MAY_TAKE = ("mdadm",)
# What is tried on a host for each workload_ioengine (fio_trial): that a drive has poll queues, its identity says.
ENGINES = {name: name for name in ("libaio", "io_uring", "io_uring_fixed")}
ENGINES["io_uring_polled"] = "io_uring"
# What has a host prepared before its job: kernel arguments, and what needs a vendor's tool.
BOOT = "tune_boot_enabled"
OF_BMC = ("tune_bios", "tune_fans")
PREPARED = ("vendor_rssdm", "vendor_iomemory", "vendor_iomemory_dma_delay", "vendor_iomemory_pci_check")


def prepares(asked: Variables) -> bool:
    """Return whether a host is prepared before its job starts (roles/workload/tasks/prepare.yml). asked: what
    is set.
    """
    return (
        bool(asked.get("vendor_rssdm") or asked.get("vendor_iomemory"))
        or any(asked.get(name) for name in OF_BMC)
        or asked.get("vendor_iomemory_dma_delay", "") != ""
        or any(boolean(asked.get(name, False), strict=False) for name in ("vendor_iomemory_pci_check", BOOT))
    )


def parts(asked: Variables, unset: str) -> dict[str, Values]:
    """Return the options of the module examine. asked: the host's variables; unset: stands for one that nobody has set.

    A host whose drives are no list is asked only for its runs and tools: named_drives says what is wrong.
    """
    state_dir, drives = asked["ssd_state_dir"], asked["ssd_drives"]
    always = {
        "run_info": {"state_dir": state_dir, "definitions_of": asked["ssd_run_id"]},
        "host_info": {
            "tools": _tools(asked["preflight_tools"]),
            "fio_engines": [ENGINES[name] for name in [_engine(asked, unset)] if name in ENGINES],
            "cut_reach_of": state_dir,
        },
    }
    if not isinstance(drives, (list, tuple)):
        return always
    cache, cache_enabled = asked.get("tune_write_cache", unset), asked.get("tune_write_cache_enabled", unset)
    look = {"look": asked["ssd_look"], "look_s": asked["ssd_look_s"]}
    return {
        **always,
        "drive_facts": {"drives": drives, "state_dir": state_dir, **look},
        "host_checks": {
            "drives": drives,
            # An empty answer of a survey is an empty mapping.
            **{name: asked[f"preflight_{name}"] or {} for name in MAPPINGS},
            **{name: asked[f"preflight_{name}"] for name in host_checks.LIMITS},
            "parallel_drives": _drives_checked(asked["ssd_parallel_drives"], len(drives)),
            "write_cache_chosen": cache not in (unset, "leave")
            and (cache_enabled == unset or boolean(cache_enabled, strict=False)),
            "traffic_s": max(_number(asked[f"preflight_{name}_s"], float, 0.0) for name in ("traffic", "warm_up")),
        },
    }


def _drives_checked(number: t.Any, drives: int) -> int:
    """Return how many drives at a time the links are checked for: with auto no more run than these carry."""
    return 1 if number == AUTO else drives_at_once(number, drives)


def listed(tools: t.Any) -> list[str]:
    """preflight_tools as a list; they may be a text."""
    return [name.strip() for name in tools.split(",")] if isinstance(tools, str) else list(tools)


def _engine(asked: Variables, unset: str) -> str:
    """Return workload_ioengine, which may be anything."""
    given = asked.get("workload_ioengine", unset)
    return str(argument_specs.default("workload_ioengine") if given == unset else given)


def _tools(wanted: t.Any) -> t.Any:
    """Return what preflight_tools has, and what a test may take: whether one of the plan does, is told later
    and once.
    """
    try:
        return [*listed(wanted), *(tool for tool in MAY_TAKE if tool not in listed(wanted))]
    except TypeError:  # no list: findings tell
        return wanted


def _number(value: t.Any, kind: t.Callable[[t.Any], t.Any], otherwise: t.Any) -> t.Any:
    """As the filters int and float have it: what is no number is told with the other wrong values."""
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise
