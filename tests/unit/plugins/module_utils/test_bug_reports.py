# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of tools from public bug reports of other programs, and what is made of them here.

A line that begins with "Wrong:" names a known fault (tests/machines/README.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import Tool
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_findings
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

REPORTS = Path(__file__).resolve().parents[3] / "fixtures" / "reports"
SAS_METHODS = ("scsi_sanitize_crypto", "scsi_sanitize_block", "scsi_sanitize_overwrite", "scsi_format_unit")


def test_a_control_character_in_the_model_keeps_no_drive_out(fake):
    """nvme-cli 1.16 prints it raw; the fields that count are there."""
    fake.nvme("nvme0n1", "259:0", "EXAMPLE0001")
    fake.answers["nvme version"] = (0, "nvme version 1.16\n", "")
    fake.answers["nvme id-ctrl"] = (0, (REPORTS / "id-ctrl-control-character.json").read_text(encoding="utf-8"), "")
    (drive,) = guard_check.inspect(fake, [parse({"serial": "EXAMPLE0001"})])
    assert drive["refusals"] == []


@pytest.mark.parametrize(
    "faults, reason",
    [
        ({"no_rsoc": True}, "it does not report which commands it supports"),
        ({"unknown": ["crypto"]}, "no answer on command 0x48"),
    ],
)
def test_one_unknown_command_disables_all_sas_methods(emulated_drive, faults, reason):
    """Wrong: "unknown" counts as "no": methods that the drive has are unsupported, and naming one is refused."""
    drive = emulated_drive("scsi", faults=faults)
    drive.identity["max_discard_bytes"] = 1 << 30
    offers = drive.offers()
    assert [offers[name].supported for name in SAS_METHODS] == [False] * 4
    assert [reason in offers[name].reason for name in SAS_METHODS] == [True] * 4
    chosen = methods.choose("auto", list(offers.values()))
    assert (chosen.method, chosen.purge_class) == ("deallocate", "not_pts")
    with pytest.raises(PurgeError, match="scsi_sanitize_block"):
        methods.choose("scsi_sanitize_block", list(offers.values()))


def test_a_git_build_is_not_known_to_be_old(monkeypatch):
    """The clone has no tags after 3.3, and 3118 commits; whether it does what a job asks for is tried (preflight)."""
    monkeypatch.setenv("PATH", str(REPORTS / "fio-git-build"))
    fio = facts.tool(Host(), "fio")
    assert fio == Tool(str(REPORTS / "fio-git-build/fio"), "3.3-3118-ga1ce")
    answer = host_answers.of("h1", {"ssd_fio_min_version": "3.28"}, facts={"tools": {"fio": base.to_json(fio)}})
    assert host_findings.missing_tools(answer) == []
