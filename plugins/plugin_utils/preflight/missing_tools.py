# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks for the run: tools, and what the tuning that is asked for needs. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.checks.base import version_key
from ...module_utils.run.states import SETTLED_STATES
from ..plan import tuning_values
from ..plan.testfiles import Test
from . import examine_arguments
from .findings import Finding, HostAnswer, Run


def tools(view: HostAnswer, tests: t.Sequence[Test] = ()) -> list[Finding]:
    """Missing tools, and a fio that is too old. tests: all that the host is asked for."""
    if view.facts is None or view.asked is None:
        return []
    present, least = view.facts["tools"], str(view.asked["ssd_fio_min_version"])
    takes = {*examine_arguments.listed(view.asked.get("preflight_tools") or ()), *_for_tests(tests)}
    found = [
        Finding(f"{name} is missing; install it with the package manager", view.name)
        for name in sorted(present)
        if not present[name] and (name in takes or name not in examine_arguments.MAY_TAKE)
    ]
    fio = present.get("fio")
    if fio and not fio.get("version"):
        found.append(
            Finding(
                f"{fio['path']} does not report its version; reinstall fio, {least} or newer (ssd_fio_min_version)",
                view.name,
            )
        )
    elif fio and version_key(str(fio["version"])) < version_key(least):
        old = f"fio {fio['version']} ({fio['path']}) is older than {least} (ssd_fio_min_version)"
        found.append(Finding(f"{old}; install a newer one", view.name))
    return found


def _for_tests(tests: t.Sequence[Test]) -> tuple[str, ...]:
    """Of the tools that a test may take, those that one of these does."""
    return ("mdadm",) if any(test.get("array") for test in tests) else ()


def tuning(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Return what the host cannot do of the tuning that is asked for. A host where the run works, or is done with, is
    not asked again.
    """
    if view.asked is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    return [
        Finding(message, view.name, drive)
        for drive, message in tuning_values.host_problems(view.asked, view.snapshot, view.entries or ())
    ]
