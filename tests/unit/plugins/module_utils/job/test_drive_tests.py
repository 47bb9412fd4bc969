# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test of a drive, from its purge to its end, on a drive whose tools print what is given."""

from __future__ import annotations

import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_tests import DriveTests
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.kernel_watch import DriveLog
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import health_metrics
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import PurgeEnd, Verification
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.criteria import usable
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.reducer import USUAL
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PURGES = planned.drive(drive="d", tests=[{"name": "purges", "purge": {"method": "auto"}, "cells": []}])


def station(fake, conditions):
    """What a drive's tests work with, where nothing but its conditions is looked at."""
    nothing, stop = types.SimpleNamespace, threading.Event()
    evidence, noted = [], []

    def note(event, **fields):
        noted.append({"event": event, **fields})

    job = nothing(
        host=fake,
        stop=stop,
        criteria=(),
        health_criteria=usable(health_metrics.DEFAULT_CRITERIA),
        validity=USUAL,
        sample_interval_s=0,
        write_bytes_per_s=None,
        tuned=nothing(drifted=lambda _name: []),
    )
    held = nothing(
        identity=Identity(transport="nvme", path="/dev/nvme0n1", size_bytes=1 << 30, logical_block_size_bytes=512),
        filesystem=None,
        keep_as_evidence=evidence.append,
    )
    return nothing(
        job=job,
        plan=PURGES,
        history=[],
        results=[],
        name="nvme0n1",
        members=[],
        held=held,
        bench=nothing(place=nothing(cpus="0"), settle=lambda: None),
        conditions=conditions,
        kernel_log=DriveLog(None, note, stop),
        watchdog=Watchdog(stop),
        guard=lambda _step, **_shown: None,
        look=lambda: None,
        make_settings_again=lambda _attempt: None,
        show=lambda **_shown: None,
        tick=None,
        note=note,
        note_sample=note,
        noted=noted,
        evidence=evidence,
    )


@pytest.mark.parametrize(("unreadable", "new"), [(0, 3), (2, 0)])
def test_errors_that_a_purge_brought_count_unless_erased_blocks_were_refused(nvme, fake, monkeypatch, unreadable, new):
    def perform(_work):
        nvme.tell(media_errors=6)
        return PurgeEnd("sanitize-crypto", 1.0, True, Verification(32, 0, unreadable), "pts")

    monkeypatch.setattr(purge_step, "perform", perform)
    played = station(fake, nvme())
    assert DriveTests(played).run(PURGES.tests[0]) == "complete"
    end = played.noted[-1]
    assert (end["event"], end["health"]["media_errors"]) == ("test_finished", new)
    says = [f"purges: it counted {new} more media errors (media_errors, max 0)"] if new else [""]
    assert played.evidence == says
