# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short sample of tests/bench/false_refusals.py: five drives in each state that our own work leaves them in, looked
at on this machine.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time

import false_refusals
import own_machine
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.parametrize("state", false_refusals.STATES)
def test_no_drive_is_refused_that_nobody_else_used(state, monkeypatch):
    monkeypatch.setattr(
        false_refusals.Drive,
        "attach",
        lambda drive: setattr(drive, "path", own_machine.attach(drive.file, "--direct-io=on")),
    )
    assert false_refusals.refused(state, looks=5, seconds=0.2, drives=5) == []


@pytest.mark.parametrize("argv, codes", [(["true"], []), (["sleep", "9"], ["opened"])])
def test_a_child_that_is_about_to_start_a_program_is_no_user(loop_drive, argv, codes):
    """fio is started for one drive while another is checked: until the child is fio it has copies of all that we have
    open. One that goes on with a drive open is a user all the same.
    """
    drive = loop_drive()
    handle = os.open(drive.path, os.O_RDWR | os.O_EXCL)
    forked, kept = threading.Event(), (handle,) if codes else ()
    children = []

    def start():
        hold_s = 0 if codes else 5
        children.append(subprocess.Popen(argv, preexec_fn=lambda: time.sleep(hold_s), pass_fds=kept))
        forked.set()

    starting = threading.Thread(target=start)
    starting.start()
    try:
        forked.wait(0.5)
        (seen,) = guard_check.inspect(Host(), [parse(drive.selector)], {drive.path: handle}, terms=None)
    finally:
        starting.join()
        children[0].kill()
        children[0].wait()
        os.close(handle)
    assert [refusal["code"] for refusal in seen["refusals"]] == codes
