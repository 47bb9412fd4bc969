# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import OfferedPurge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text, purge_choice
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers, planned, plans
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NVME, TB

IDENTITY = {
    "serial": "S1",
    "path": "/dev/nvme0n1",
    "size_bytes": TB,
    "logical_block_size_bytes": 512,
    "model": "M",
    "max_discard_bytes": 1 << 30,
}
CELL = {"block_size": "16KiB", "read_pct": 0, "runtime_s": 1}
RUN = Run("r1", "r", {})


def make(tests, variables=None, **capabilities):
    """(the host's view, its plan)"""
    found = {
        "nvme": dict(NVME, **capabilities),
        "any": {key: IDENTITY[key] for key in ("path", "size_bytes", "max_discard_bytes")},
    }
    entry = {
        "drive": "S1",
        "selector": {"serial": "S1"},
        "path": "/dev/nvme0n1",
        "identity": IDENTITY,
        "eligible": True,
        "refusals": [],
        "purge_capabilities": found,
    }
    view = host_answers.of("h1", asked={}, drives=[entry])
    short = {"precondition": False, "cells": [CELL], "rounds": {"max": 1}}
    given = [{"name": f"t{number}", **({} if "base" in test else short), **test} for number, test in enumerate(tests)]
    rendered = render_plan.render(
        render_plan.load_plan(given),
        run={"id": "r1", "name": "r"},
        host="h1",
        boot_id="b",
        drives=plans.found([entry]),
        engine_version="1",
        variables=variables or {},
    )
    return view, rendered


def methods(chosen):
    return [offer.method for offer in chosen.values()]


def test_plan_mode_tells_the_method_why_and_the_exact_command():
    view, rendered = make([{}])
    chosen, found = purge_choice.choose(view, rendered, RUN)
    text = plan_text.describe(rendered, {"S1": "/dev/nvme0n1"}, None, chosen)
    at = next(index for index, line in enumerate(text) if "purge by" in line)
    assert (
        found == []
        and "purge by nvme_format_crypto (auto: the strongest that the drive offers; not nvme_sanitize_crypto:"
        in text[at]
    )
    assert "given up after 6 h 3 min" in text[at] and "not_pts" not in text[at]
    assert text[at + 1].strip() == "nvme format /dev/nvme4 --namespace-id=1 --lbaf=0 --ses=2 --timeout=21800000"


def test_what_is_no_purge_of_the_pts_is_flagged():
    chosen, _found = purge_choice.choose(*make([{"purge": {"method": "deallocate"}}]), RUN)
    (offer,) = list(chosen.values())
    first, second = purge_choice.plan_lines(offer)
    assert "not a PTS purge (not_pts)" in first and second == "  ioctl BLKDISCARD /dev/nvme0n1 0 1000000000000"


@pytest.mark.parametrize(
    "tests, capabilities, code, message",
    [
        (
            [{"purge": {"method": "nvme_sanitize_block"}}],
            {},
            "purge_unsupported",
            "it offers: nvme_format_crypto, nvme_format_user_data, deallocate, overwrite",
        ),
        (
            [{"purge": {"method": "ata_security_erase"}}],
            {},
            "purge_unsupported",
            "the drive offers: nvme_format_crypto",
        ),
        (
            [{"purge": {"method": "nvme_format_crypto"}}],
            {"fna": 7, "namespaces": [1, 3]},
            "purge_hits_others",
            "its namespace 3",
        ),
        ([{"purge": {"lba_size_bytes": 8192}}], {}, "purge_unsupported", "it has: 512, 4096"),
    ],
)
def test_what_the_drive_cannot_do_is_a_finding_before_anything_is_erased(tests, capabilities, code, message):
    chosen, (finding,) = purge_choice.choose(*make(tests, **capabilities), RUN)
    assert chosen == {} and finding.message.startswith(code + ": ") and message in finding.message
    assert finding.text().startswith(f"h1: drive S1 (/dev/nvme0n1): {code}: ") and finding.text().count("S1") == 1
    assert finding.message.endswith("Choose another purge_method, or auto.")


def test_the_same_finding_of_several_tests_is_told_once():
    _chosen, found = purge_choice.choose(*make([{"purge": {"method": "nvme_sanitize_block"}}] * 2), RUN)
    assert len(found) == 1


@pytest.mark.parametrize("state, asked", [("running", False), ("finished", False), ("stopped", True)])
def test_drives_that_the_run_holds_are_not_asked_again(state, asked):
    view, rendered = make([{"purge": {"method": "nvme_sanitize_block"}}])
    assert bool(purge_choice.choose(view, rendered, Run("r1", "r", {"h1": state}))[1]) is asked


def test_a_wanted_lba_size_holds_for_this_test_and_those_after_it():
    iops = {"base": "iops"}
    view, rendered = make([iops, dict(iops, purge={"lba_size_bytes": 4096}), iops])
    (drive,) = rendered.drives
    assert [len(test.not_applicable) for test in drive.tests] == [0, 7, 7]
    assert all("rand-512" in item.id for test in drive.tests for item in test.not_applicable)
    chosen, found = purge_choice.choose(view, rendered, RUN)
    assert found == [] and [[word for word in offer.commands[0] if "lbaf" in word][0] for offer in chosen.values()] == [
        "--lbaf=0",
        "--lbaf=1",
        "--lbaf=1",
    ]


def test_a_later_test_has_the_lba_size_that_it_wants_itself():
    iops = {"base": "iops"}
    small, large = (dict(iops, purge={"lba_size_bytes": size}) for size in (512, 4096))
    view, rendered = make([large, small])
    chosen, found = purge_choice.choose(view, rendered, RUN)
    assert found == []
    assert ["--lbaf=0" in offer.commands[0] for offer in chosen.values()] == [False, True]
    view, rendered = make([large, dict(iops, purge={"method": "deallocate", "lba_size_bytes": 512})])
    chosen, (finding,) = purge_choice.choose(view, rendered, RUN)
    assert "cannot change the LBA size from 4096 to 512 bytes" in finding.message


@pytest.mark.parametrize(
    ("method", "share"),
    [("none", 0.0), ("overwrite", 1.0), ("nvme_sanitize_overwrite", 1.0), ("auto", 0.1), ("deallocate", 0.1)],
)
def test_methods_that_write_everything_take_as_long_as_that(method, share):
    assert purge_choice.share_of_fill(planned.spec(purge={"method": method}), None) == share
    offer = OfferedPurge(method, True, "", "", "pts", [], 60.0)
    assert purge_choice.share_of_fill(planned.spec(purge={"method": "auto"}), offer) == share


def test_a_test_without_a_purge_chooses_none():
    view, rendered = make([{"purge": False}, {}])
    assert methods(purge_choice.choose(view, rendered, RUN)[0]) == ["nvme_format_crypto"]
