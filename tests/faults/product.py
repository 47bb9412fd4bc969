# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fault bench uses of the collection, by one name each; importable without an installed collection."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))
sys.path.append(str(ROOT / "tests" / "integration"))

import cells

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import deadline, files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check as guard
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control as job
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_runner, precondition_curve
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import archive, digests, engines, summary
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning

__all__ = [
    "archive",
    "cells",
    "deadline",
    "digests",
    "engine",
    "engines",
    "entry",
    "files",
    "fio",
    "fio_runner",
    "guard",
    "Host",
    "job",
    "locks",
    "planning",
    "precondition_curve",
    "rundir",
    "summary",
    "tuning",
]
