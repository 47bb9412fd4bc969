# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import sys
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Work, stuck_s, timeout_s
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge

TB = 10**12


class Held:
    """A drive that is held, or is not (descriptor None)."""

    def __init__(self, descriptor=7):
        self.identity = Identity(path="/dev/loop9", size_bytes=TB)
        self._descriptor = descriptor

    def note_sentinels(self, sentinels):
        """What is about to be written to prove a purge with."""
        self.noted_sentinels = sentinels

    def descriptor(self):
        if self._descriptor is None:
            raise PermissionError("not held")
        return self._descriptor

    @contextlib.contextmanager
    def lend(self, may_change=()):
        yield


def work(held=None, tick=lambda share: None):
    return Work(
        host=Host(),
        held=held or Held(),
        options=PlannedPurge("auto"),
        tick=tick,
        note=lambda *_, **__: None,
        fill=lambda tick: 0,
    )


@pytest.mark.parametrize(
    "size, given, expected", [(0, None, 1800), (TB, None, 21800), (TB, 60, 60), (16 * TB, None, 321800)]
)
def test_a_timeout_follows_the_capacity_or_the_inventory(size, given, expected):
    assert timeout_s(size, PlannedPurge("auto", timeout_s=given)) == expected


@pytest.mark.parametrize("size, given, expected", [(0, None, 900), (TB, None, 1020), (TB, 5, 5)])
def test_so_does_the_watchdog(size, given, expected):
    assert stuck_s(size, PlannedPurge("auto", stuck_s=given)) == expected


def test_a_command_gives_its_result_and_ticks_meanwhile():
    shares = []
    script = "import time; time.sleep(2.2); print('done')"
    result = work(tick=shares.append).command([sys.executable, "-c", script], 30, share=lambda: 0.5)
    assert (result.rc, result.stdout.strip()) == (0, "done") and shares == [0.5, 0.5]


def test_a_stop_ends_a_command_that_may_not_have_begun(tmp_path):
    def stop(_share):
        raise InterruptedError

    began, flag = time.monotonic(), tmp_path / "formatted"
    with pytest.raises(InterruptedError):
        work(tick=stop).command(
            [sys.executable, "-c", "import sys, time; time.sleep(2.5); open(sys.argv[1], 'w')", str(flag)], 30
        )
    assert time.monotonic() - began < 2.4
    time.sleep(2.5)
    assert not flag.exists()


def test_no_command_starts_on_a_drive_that_is_not_held(tmp_path):
    with pytest.raises(PermissionError):
        work(Held(None)).command(["touch", str(tmp_path / "ran")], 30)
    assert not (tmp_path / "ran").exists()


def test_what_goes_wrong_while_waiting_is_not_lost():
    def broken(_argv):
        raise OSError("the log is full")

    working = work()
    working.host.log = broken
    with pytest.raises(OSError, match="the log is full"):
        working.command(["true"], 30)
