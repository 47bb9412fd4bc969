# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's folder, and a drive's conditions, for the tests of host jobs."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import test_conditions
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder


@pytest.fixture
def run_dir(tmp_path):
    """The folder of run r."""
    place = folder.RunDir(str(tmp_path), "r")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    return place


SMART = {"critical_warning": 0, "temperature": 313, "media_errors": 3, "unsafe_shutdowns": 1}


@pytest.fixture
def nvme(fake, tmp_path):
    """An NVMe drive, and the conditions of its campaign: nvme(history). nvme.tell(**smart) changes its log; None: it
    gives no answer. nvme.noted: its journal.
    """
    controller = fake.pci("0000:00:01.0", "0000:01:00.0") + "/nvme/nvme0"
    fake.link(fake.disk("nvme0n1", "259:0", controller) + "/device", controller)
    identity = Identity(transport="nvme", kernel_name="nvme0n1", path="/dev/nvme0n1", serial="S1")

    def make(history=()):
        made = test_conditions.Conditions(fake, lambda: identity, {}, note, str(tmp_path / "state"))
        made.begin(history)
        return made

    def note(event, **fields):
        make.noted.append(dict(fields, event=event))

    def tell(**smart):
        log = {**SMART, **smart}
        fake.answers["nvme smart-log"] = (1, "", "timed out") if None in smart.values() else (0, json.dumps(log), "")

    make.noted, make.tell = [], tell
    tell()
    return make
