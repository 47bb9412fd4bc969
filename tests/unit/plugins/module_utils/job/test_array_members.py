# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of the health of an array's drive other than the one that carries the test."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import array_members
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.kernel_watch import DriveLog
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, health_metrics
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, events
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.health import HealthChange
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.criteria import usable
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

TEST = planned.spec(cells=[{"job": "[global]\nrefill_buffers=1\n[c]\nrw=randwrite\n"}])
SAID = "raid: it counted 2 more media errors (media_errors, max 0)"
NOTED = ["member_health"]
EVIDENCE = [*NOTED, "left", "logs_kept"]


class Held:
    """A drive in the guard's hands."""

    path, evidence = "/dev/nvme1n1", ""
    identity = Identity(transport="nvme", kernel_name="nvme1n1", path=path, serial="S1")

    def keep_as_evidence(self, reason):
        self.evidence = reason


@pytest.fixture
def member(fake, run_dir):
    """An NVMe drive of an array. noted: its journal; tell(media_errors): change its log."""
    controller = fake.pci("0000:00:01.0", "0000:01:00.0") + "/nvme/nvme1"
    fake.link(fake.disk("nvme1n1", "259:1", controller) + "/device", controller)
    made = types.SimpleNamespace(name="nvme1n1", drive="S1", held=Held(), plan=planned.drive(drive="S1"), noted=[])

    def note(event, **fields):
        made.noted.append(base.parse(events.EVENTS[event], dict(fields, drive="S1")))
        made.did.append(event)

    def tell(media_errors):
        log = {"critical_warning": 0, "temperature": 313, "media_errors": media_errors}
        fake.answers["nvme smart-log"] = (0, json.dumps(log), "")

    made.did, made.note, made.tell = [], note, tell
    made.watchdog = types.SimpleNamespace(call=lambda _what, step, _longer_s=0.0: step())
    made.job = types.SimpleNamespace(
        host=fake,
        run_dir=run_dir,
        sample_interval_s=0,
        baselines={},
        health_criteria=usable(health_metrics.DEFAULT_CRITERIA),
    )
    return made


def watch(member, log):
    """The watch of it. log: of the drive that carries the test."""
    bench = types.SimpleNamespace(place=types.SimpleNamespace(cpus=None))
    lead = types.SimpleNamespace(job=member.job, bench=bench, kernel_log=log)
    return array_members.MemberWatch(lead, member, TEST, Attempt("raid", 1))


@pytest.mark.parametrize(
    ("more", "criteria", "error", "evidence", "did"),
    [
        (0, health_metrics.DEFAULT_CRITERIA, None, "", NOTED),
        (2, health_metrics.DEFAULT_CRITERIA, None, SAID, EVIDENCE),
        (2, [], None, "", NOTED),
        # Whatever becomes of the test.
        (2, health_metrics.DEFAULT_CRITERIA, fio.FioError("no JSON"), SAID, EVIDENCE),
        (2, health_metrics.DEFAULT_CRITERIA, fio.Interrupted(), SAID, EVIDENCE),
        # One of the drives gives no answer: none is asked.
        (2, health_metrics.DEFAULT_CRITERIA, Hangs("no answer"), "", []),
    ],
)
def test_a_drive_of_an_array_is_held_to_its_own_health(member, more, criteria, error, evidence, did):
    member.job.health_criteria = usable(criteria)
    member.tell(3)
    expected = pytest.raises(type(error)) if error else contextlib.nullcontext()
    with expected, watch(member, DriveLog(None, member.note, threading.Event())):
        member.tell(3 + more)
        if error:
            raise error
    assert (member.held.evidence, member.did) == (evidence, did)
    if did:
        told = member.noted[0]
        assert (told.drive, told.test, told.health.media_errors) == ("S1", "raid", more)


class Log:
    """A kernel's log that tells of a reset of every drive."""

    def end(self):
        return ""

    def counted_of(self, _name, health):
        return dataclasses.replace(health or HealthChange(), controller_resets=1)


@pytest.mark.parametrize("is_at_the_end", [False, True])
def test_one_that_hangs_is_not_asked_but_fails_by_the_kernels_log(member, is_at_the_end):
    def hang(_what, _step, _longer_s=0.0):
        raise Hangs("no answer")

    member.tell(3)
    with pytest.raises(Hangs), watch(member, Log()):
        if not is_at_the_end:
            raise Hangs("no answer")
        member.watchdog.call = hang
    assert member.held.evidence == "raid: its controller was reset once (controller_resets, max 0)"
    assert member.did == [*NOTED, "left"]
