# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_classifier import DataScan
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Extent
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import release_drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results

STEADY = [run_results.attempt()]


class Work:
    """What make_blank takes of a Work: each step that touches the drive has to go through `bounded`; `hangs`: the one
    that does not come back.
    """

    host, handle, identity, size_bytes = None, 7, None, 4096

    def __init__(self, hangs=""):
        self.hangs, self.inside = hangs, ""
        self.held = types.SimpleNamespace(check=lambda: self.touch("check"))

    def clock(self):
        return 0.0

    def bounded(self, what, step):
        self.inside = what
        try:
            return step()
        finally:
            self.inside = ""

    def touch(self, step, value=None):
        assert self.inside, step + " would wait for ever for a drive that hangs"
        if step == self.hangs:
            raise Hangs(step)
        return value


@pytest.fixture
def work_of(monkeypatch):
    def make(blank=True, unreadable=None, **about):
        work = Work(**about)
        method = types.SimpleNamespace(
            family="any",
            supported=lambda _found: "",
            run=lambda work, _found: work.bounded("discard", lambda: work.touch("discard")),
        )
        monkeypatch.setitem(methods.METHODS, "deallocate", method)
        monkeypatch.setattr(methods, "probe", lambda _host, _identity: {"any": {}})
        seen = DataScan(1 << 20, foreign=None if blank else 4096, unreadable=unreadable)
        monkeypatch.setattr(release_drive.data_scan, "scan", lambda *_arguments: work.touch("look", seen))
        return work

    return make


@pytest.mark.parametrize("blank, state", [(True, release_drive.BLANK), (False, release_drive.AS_IS)])
def test_a_drive_is_left_blank_once_it_reads_so(work_of, blank, state):
    left = release_drive.make_blank(work_of(blank), STEADY)
    assert left.state == state and bool(left.reason) != blank


def test_a_drive_that_cannot_be_read_says_where(work_of):
    left = release_drive.make_blank(work_of(False, unreadable=Extent(4096, 4096)), STEADY)
    assert (left.state, left.reason) == (release_drive.AS_IS, "it cannot be read at byte 4096 after deallocation")


@pytest.mark.parametrize("step", ["check", "discard", "look"])
def test_nobody_waits_for_a_drive_that_hangs_at_the_end(work_of, step):
    with pytest.raises(Hangs, match=step):
        release_drive.make_blank(work_of(hangs=step), STEADY)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [("invalid", ""), ("not_steady", ""), ("complete", ""), ("error", "wsat ended with an error")],
)
def test_only_an_error_leaves_what_there_is_to_find_out(work_of, outcome, reason):
    left = release_drive.make_blank(work_of(), [*STEADY, run_results.attempt(test="wsat", outcome=outcome)])
    assert (left.state, left.reason) == (release_drive.AS_IS if reason else release_drive.BLANK, reason)


@pytest.mark.parametrize(
    ("gib_s", "blank"),
    [(1.0, True), (4.9, True), (5.1, False)],
)
def test_a_stop_waits_for_a_drive_only_as_long_as_it_has(work_of, monkeypatch, gib_s, blank):
    """Of four GiB, each of which takes so long; a tick after each lets no stop through, unlike that of a test."""
    work, now = work_of(), [0.0]
    work.tick = lambda _share: pytest.fail("it would end at once")
    work.clock = lambda: now[0]

    def run(work, _found):
        for gib in range(4):
            now[0] += gib_s
            work.tick((gib + 1) / 4)

    method = types.SimpleNamespace(family="any", supported=lambda _found: "", run=run)
    monkeypatch.setitem(methods.METHODS, "deallocate", method)
    left = release_drive.make_blank_in_time(work)
    assert left.state == (release_drive.BLANK if blank else release_drive.AS_IS)
    assert ("takes longer than the 20 s" in left.reason) is not blank


def test_a_drive_that_the_guard_refuses_stays_and_its_results_stand(work_of):
    work = work_of(hangs="discard")

    def refuse():
        raise Refused([Refusal("opened", "it is open in qemu")])

    work.held.check = refuse
    left = release_drive.make_blank(work, STEADY)
    assert left.state == release_drive.AS_IS and "open in qemu" in left.reason
