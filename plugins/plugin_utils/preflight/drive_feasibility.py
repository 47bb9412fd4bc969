# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a drive can do what a test asks of it beside I/O: be reset, rest in a state without I/O, test itself, tell
about its write cache; and whether it has the zones that its tests write by. Pure.

By what it told when it was looked at; what it did not tell is no reason. The host job looks once more. A self-test is
all that its test does, so a drive without self-tests goes without that test. A key that is a part of a test (reset,
low_power) is refused: without it, the test would be another one.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...module_utils.drive import entry, zones
from ...module_utils.guard import rules
from ...module_utils.purge import methods
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.purge import AtaDrive, NvmeDrive
from ..plan.test_record import Test
from ..run_folder.run_record import RunWarning
from .findings import Finding, HostAnswer, of_refusal
from .host_tests import Requested

# Those whose self-tests nvme-cli or smartctl begins (drive/self_test.py).
_TEST_THEMSELVES = ("nvme", "sata", "sas")
# Whose write cache nobody can read or switch (tuning/write_cache.py).
_TELL_NO_CACHE = ("loop",)
_NO_CACHE = "a loop device does not tell whether its write cache is on, so the test would be invalid"
_GOES_WITHOUT = "nothing, as its other tests run; or take the test out of the plan"
_REMEDY = "take {0}, or measure this drive in a run without it"


def findings(views: t.Sequence[HostAnswer], plans: t.Mapping[str, Plan]) -> list[Finding]:
    """Return what tests ask of drives that can't do it, each key of a drive once."""
    return _zones_findings(views, plans) + [
        Finding(f"{text}; {_REMEDY.format(what)}", view.name, drive.drive, drive.drive)
        for view in views
        for drive in (plans[view.name].drives if view.name in plans else ())
        for text, what in _of_drive(view, drive)
    ]


def _zones_findings(views: t.Sequence[HostAnswer], plans: t.Mapping[str, Plan]) -> list[Finding]:
    """Return which drives the plan is not for, as they have zones, or have none."""
    found = []
    for view in views:
        for drive in plans[view.name].drives if view.name in plans else ():
            wrong = zones.misplaced_tests(drive.tests, drive.expected)
            refusals = rules.refuse("wrong_zones", drive.drive, drive.expected.path, wrong) if wrong else []
            found += [of_refusal(refusal, view.name, drive.drive) for refusal in refusals]
    return found


def _of_drive(view: HostAnswer, drive: PlannedDrive) -> list[tuple[str, str]]:
    """Return of each key why it can't do what that asks for, and what to take out of what."""
    seen = next((one for one in view.drives or () if str(one.drive) == drive.drive), None)
    told = methods.reported((seen and seen.purge_capabilities) or {}).values()
    nvme = next((one for one in told if isinstance(one, NvmeDrive)), None)
    found: dict[str, tuple[str, str]] = {}
    transport = drive.expected.transport
    for test in drive.tests:
        for key, why in _asked(test, transport, nvme).items():
            if why:
                found.setdefault(key, (f"test {test.name}: {key}: {why}", f"{key} out of the test"))
        # A drive that goes without its self-tests has other tests; one that has none is refused.
        why = _without_self_tests(seen, transport) if test.self_test else ""
        if why:
            found.setdefault("self_test", (f"test {test.name}: self_test: {why}", f"{test.name} out of the plan"))
    if entry.parse(drive.selector).options.write_cache and transport in _TELL_NO_CACHE:
        found.setdefault("write_cache", (f"write_cache: {_NO_CACHE}", "write_cache out of its entry"))
    return list(found.values())


def self_tests_left_out(view: HostAnswer, tests: t.Collection[Test]) -> dict[str, dict[str, str]]:
    """Return by drive the tests that it goes without, as it has no self-tests: {drive: {test: why}}; none for a drive
    that would have no test left. tests: of the host, as load_plan returns them.
    """
    names = [test.name for test in tests if test.self_test]
    if len(names) == len(tests):
        return {}
    reasons = {
        str(one.drive): _without_self_tests(one, one.identity.transport) for one in view.drives or () if one.identity
    }
    return {drive: dict.fromkeys(names, why) for drive, why in reasons.items() if why and names}


def without_self_tests(plan: Plan, left_out: t.Mapping[str, t.Mapping[str, str]]) -> Plan:
    """Return a plan without those tests."""
    drives = [
        dataclasses.replace(drive, tests=[test for test in drive.tests if test.name not in left_out[drive.drive]])
        if drive.drive in left_out
        else drive
        for drive in plan.drives
    ]
    return dataclasses.replace(plan, drives=drives)


def warnings(views: t.Sequence[HostAnswer], requested: Requested, begun: t.Mapping[str, Plan]) -> list[RunWarning]:
    """Return what is left out, for plan mode and run.json. begun: the plans of hosts where the run is not under way."""
    return [
        RunWarning(view.name, "self_test", drive, "warning", f"left out: {', '.join(of_drive)}: {why}", _GOES_WITHOUT)
        for view in views
        if view.name in begun
        for drive, of_drive in self_tests_left_out(view, requested[view.name].tests).items()
        for why in [next(iter(of_drive.values()))]
    ]


def _asked(test: PlannedTest, transport: str | None, nvme: NvmeDrive | None) -> dict[str, str]:
    """Return of each key that the test has why the drive can't do it; "": nothing is known against it."""
    kind = _kind(transport)
    several = f"its NVM subsystem has {nvme.controllers} controllers" if nvme and nvme.controllers > 1 else ""
    found = {"write_cache": _NO_CACHE if test.write_cache and transport in _TELL_NO_CACHE else ""}
    if test.integrity and test.integrity.reset:
        found["integrity.reset"] = several if transport == "nvme" else f"only NVMe controllers are reset, and {kind}"
    if test.integrity and test.integrity.low_power:
        rests = "it has no power state in which it does no I/O" if nvme and nvme.can_rest is False else several
        found["integrity.low_power"] = rests if transport == "nvme" else f"only NVMe drives are put to rest, and {kind}"
    return found


def _without_self_tests(seen: FoundDrive | None, transport: str | None) -> str:
    """Return why a drive can't test itself; "": nothing is known against it."""
    if transport not in _TEST_THEMSELVES:
        return f"only NVMe, SATA and SAS drives test themselves, and {_kind(transport)}"
    told = methods.reported((seen and seen.purge_capabilities) or {}).values()
    none = any(isinstance(one, (NvmeDrive, AtaDrive)) and one.has_self_tests is False for one in told)
    none = none or bool(seen and seen.has_self_tests is False)
    return "the drive has no self-tests" if none else ""


def _kind(transport: str | None) -> str:
    return f"this drive is {transport}" if transport else "what this drive hangs on is unknown"
