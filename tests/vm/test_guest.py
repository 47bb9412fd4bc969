# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest itself: tests rely on it to be there."""

from __future__ import annotations

import signal
import threading
import time

import pytest


@pytest.mark.long
def test_a_qemu_that_crashes_while_the_guest_boots_is_started_again(guest):
    guest.stop()

    def crash():
        while guest.process is None:
            time.sleep(0.1)
        guest.process.send_signal(signal.SIGSEGV)

    crashing = threading.Thread(target=crash, daemon=True)
    crashing.start()
    with pytest.warns(UserWarning, match="boots again: QEMU ended with -11"):
        guest.start()
    crashing.join()
    assert guest.run("echo $((6 * 7))").stdout == "42\n"
