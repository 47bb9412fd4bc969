# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a drive can do what a test asks of it beside I/O: be reset, rest in a state without I/O, test itself. Pure.

By what it told when it was looked at; what it did not tell is no reason. The host job looks once more.
"""

from __future__ import annotations

import typing as t

from ...module_utils.purge import methods
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.purge import AtaDrive, NvmeDrive
from .findings import Finding, HostAnswer

# Those whose self-tests nvme-cli or smartctl begins (drive/self_test.py).
_TEST_THEMSELVES = ("nvme", "sata", "sas")
_REMEDY = "take {0}, or measure this drive in a run without it"


def findings(views: t.Sequence[HostAnswer], plans: t.Mapping[str, Plan]) -> list[Finding]:
    """Return what tests ask of drives that can't do it, each key of a drive once."""
    return [
        Finding(f"{text}; {_REMEDY.format(what)}", view.name, drive.drive, drive.drive)
        for view in views
        for drive in (plans[view.name].drives if view.name in plans else ())
        for text, what in _of_drive(view, drive)
    ]


def _of_drive(view: HostAnswer, drive: PlannedDrive) -> list[tuple[str, str]]:
    """Return of each key why it can't do what that asks for, and what to take out of what."""
    seen = next((one for one in view.drives or () if str(one.drive) == drive.drive), None)
    told = list(methods.reported((seen and seen.purge_capabilities) or {}).values())
    nvme = next((one for one in told if isinstance(one, NvmeDrive)), None)
    ata = next((one for one in told if isinstance(one, AtaDrive)), None)
    found: dict[str, tuple[str, str]] = {}
    for test in drive.tests:
        for key, why in _asked(test, drive.expected.get("transport"), nvme, ata).items():
            if why:
                # A self-test is all that its test does.
                what = f"{test.name} out of the plan" if test.self_test else f"{key} out of the test"
                found.setdefault(key, (f"test {test.name}: {key}: {why}", what))
    return list(found.values())


def _asked(test: PlannedTest, transport: str | None, nvme: NvmeDrive | None, ata: AtaDrive | None) -> dict[str, str]:
    """Return of each key that the test has why the drive can't do it; "": nothing is known against it."""
    kind = f"this drive is {transport}" if transport else "what this drive hangs on is unknown"
    several = f"its NVM subsystem has {nvme.controllers} controllers" if nvme and nvme.controllers > 1 else ""
    found = {}
    if test.integrity and test.integrity.reset:
        found["integrity.reset"] = several if transport == "nvme" else f"only NVMe controllers are reset, and {kind}"
    if test.integrity and test.integrity.low_power:
        rests = "it has no power state in which it does no I/O" if nvme and nvme.can_rest is False else several
        found["integrity.low_power"] = rests if transport == "nvme" else f"only NVMe drives are put to rest, and {kind}"
    if test.self_test:
        none = any(one and one.has_self_tests is False for one in (nvme, ata))
        has_none = "the drive has no self-tests" if none else ""
        is_known = transport in _TEST_THEMSELVES
        found["self_test"] = has_none if is_known else f"only NVMe, SATA and SAS drives test themselves, and {kind}"
    return found
