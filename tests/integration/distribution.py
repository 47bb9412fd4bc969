# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of pytest-xdist's processes runs which test: what a file makes once is made once, any other test goes where
there is time.

A plugin, registered by conftest.py. (--dist loadgroup would do, but pytest-xdist 3.8 with pytest 9.2 loses the groups:
tests' ids can't be changed.)
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

# Files with tests of a minute and more begin first, so that none of them is what the other processes wait for at the
# end.
LONGEST_FIRST = (
    "test_demo",
    "test_kill_and_attach",
    "test_true_figures",
    "test_retest",
    "test_module_answers",
    "test_install",
    "test_nightly",
    "test_nightly_kills",
    "test_quarantine",
    "test_vendor_power_cycle",
    "test_watch_ssh",
    "test_wrong_drive_process",
)
CLEAN_UP_S = 60
FOLDER = pytest.StashKey[tempfile.TemporaryDirectory]()


def groups(items):
    """{a test's id: the first test's id} of those that share what a file makes once, directly or by another test."""
    found = []  # (what they share, the tests)
    for item in items:
        shared, together = set(made_once(item)), [item.nodeid]
        if shared:
            for group in [group for group in found if group[0] & shared]:
                found.remove(group)
                shared, together = shared | group[0], group[1] + together
            found.append((shared, together))
    return {test: together[0] for _shared, together in found for test in together}


def made_once(item):
    """The fixtures of a test that are made once for its file, a parametrized one for each of its values. `make_bench`
    makes for each who asks.
    """
    indices = item.callspec.indices if hasattr(item, "callspec") else {}
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        if definitions[-1].scope == "module" and name != "make_bench":
            yield str(item.path), name, indices.get(name)


def pytest_collection_modifyitems(config, items):
    """In a process that runs tests: sort them, and tell the controller the groups."""
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: (
                LONGEST_FIRST.index(item.path.stem) if item.path.stem in LONGEST_FIRST else len(LONGEST_FIRST)
            )
        )
        Path(config.workerinput["groups"]).write_text(json.dumps(groups(items)))


def pytest_configure_node(node):
    """In the controller: where a process tells its groups, and that it has time to clean up when it is interrupted."""
    node.nodemanager.EXIT_TIMEOUT = CLEAN_UP_S
    folder = node.config.stash.setdefault(FOLDER, tempfile.TemporaryDirectory())
    node.workerinput["groups"] = str(Path(folder.name, node.gateway.id))


def pytest_keyboard_interrupt():
    """In a process that runs tests: fixtures clean up now, and the second SIGINT that execnet sends 5 s later must not
    cut that off.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_xdist_make_scheduler(config, log):
    """In the controller: give out tests by group, in the order in which they are sorted."""
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


class GroupScheduling(LoadScopeScheduling):
    """Tests of one group go to one process."""

    _groups = None

    def _split_scope(self, nodeid):
        """A test's group. It is asked for once every process has collected, and all find the same."""
        if self._groups is None:
            told = next(Path(self.config.stash[FOLDER].name).iterdir())
            self._groups = json.loads(told.read_text())
        return self._groups.get(nodeid, nodeid)
