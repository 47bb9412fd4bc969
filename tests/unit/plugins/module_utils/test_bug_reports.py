# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of tools from public bug reports of other programs, and what is made of them here."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
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
    "faults, auto, unknown, reason",
    [
        # FORMAT UNIT is mandatory: nobody has to tell that it is there.
        ({"no_rsoc": True}, "scsi_format_unit", SAS_METHODS[:3], "does not report which commands it supports"),
        ({"unknown": ["crypto"]}, "scsi_sanitize_block", SAS_METHODS[:1], "no answer on command 0x48"),
    ],
)
def test_an_unknown_sas_command_is_there_for_who_names_it(emulated_drive, faults, auto, unknown, reason):
    offers = emulated_drive("scsi", faults=faults).offers()
    assert [offers[name].supported for name in SAS_METHODS] == [True] * 4
    assert tuple(name for name in SAS_METHODS if offers[name].unknown) == unknown
    chosen = methods.choose("auto", list(offers.values()))
    assert (chosen.method, chosen.purge_class) == (auto, "pts") and reason in chosen.why
    named = methods.choose("scsi_sanitize_crypto", list(offers.values()))
    assert reason in named.why


def test_a_git_build_is_not_known_to_be_old(monkeypatch):
    """The clone has no tags after 3.3, and 3118 commits; whether it does what a job asks for is tried (preflight)."""
    monkeypatch.setenv("PATH", str(REPORTS / "fio-git-build"))
    fio = facts.tool(Host(), "fio")
    assert fio == Tool(str(REPORTS / "fio-git-build/fio"), "3.3-3118-ga1ce")
    answer = host_answers.of("h1", {"ssd_fio_min_version": "3.28"}, facts={"tools": {"fio": base.to_json(fio)}})
    assert host_findings.missing_tools(answer) == []
