# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What run.json has of a run that is gone on with: a reading of it that takes what older or damaged records lack."""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ...module_utils.records.base import Json
from ..run_folder import run_record
from ..run_folder.run_record import Definition


class BegunDrive(t.NamedTuple):
    """A drive that the run was asked to test. tests: its tests by name. left_out: why it was left out, or empty."""

    host: str
    drive: str
    tests: t.Sequence[str]
    left_out: str


class BegunRun(t.NamedTuple):
    """tests: their definitions by name. health_criteria: by host. unknown_causes: ssd_unknown_causes, or empty."""

    drives: t.Sequence[BegunDrive] = ()
    tests: t.Mapping[str, Definition] = MappingProxyType({})
    criteria: t.Sequence[Json] = ()
    health_criteria: t.Mapping[str, t.Sequence[Json]] = MappingProxyType({})
    unknown_causes: str = ""

    def hosts(self) -> set[str]:
        """Return the hosts that began it with a drive."""
        return {drive.host for drive in self.drives if not drive.left_out}


def read(folder: str) -> BegunRun:
    """Return the run of a folder; of one without run.json nothing is known. Raises ValueError for a damaged record."""
    return parse(run_record.read_run(folder) or {})


def parse(record: t.Mapping[str, t.Any]) -> BegunRun:
    """Return what a run.json says."""
    drives = [
        BegunDrive(
            str(entry["host"]), str(entry.get("drive", "")), entry.get("tests") or (), str(entry.get("left_out") or "")
        )
        for entry in record.get("asked") or ()
    ]
    criteria = [item for item in record.get("criteria") or () if isinstance(item, dict)]
    of_health = {
        str(host): [item for item in held_to if isinstance(item, dict)]
        for host, held_to in (record.get("health_criteria") or {}).items()
    }
    return BegunRun(drives, record.get("tests") or {}, criteria, of_health, str(record.get("unknown_causes") or ""))
