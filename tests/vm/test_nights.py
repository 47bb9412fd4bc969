# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nightly runs on one drive, with a power loss of the server between two nights."""

from __future__ import annotations

import pytest
from hardware import PLAIN
from lab import SHORT_TEST

# What is measured does not matter here, and a busy machine's guest may stand still for longer than a cell may take: so
# there is one.
ONE_ROUND = {**SHORT_TEST, "steady_state": False, "rounds": {"max": 1}, "run_margin": 0.1}


def is_compared(margin, before):
    """The night's figures were held to those of the one before. Whether the power was off in between stays unknown, as
    QEMU's drive always counts 0 power cycles: a new boot alone may be warm.
    """
    if before is None:
        assert margin is None
        return
    (drive,) = margin["drives"]
    assert (margin["run"], drive["serial"], drive["otherwise"]) == (before, PLAIN, {}), margin
    assert drive["figures"] > 1 and len(drive["beyond"]) <= drive["figures"], margin
    assert drive["cycle"] == "unknown" and "rebooted" in drive["why"] and "keeps no count" in drive["why"], margin


@pytest.mark.long
def test_nights_over_a_reboot_pass(lab, guest):
    """Left blank on the first night, as it is on the second: the third finds fio's fill, on another boot, and needs no
    excuse either. Each is held to the margin of the night before.
    """
    before = None
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    lab.vars["ssd_plan"] = [ONE_ROUND]
    for night, leave in (("one", "blank"), ("two", "as_is"), ("three", "blank")):
        code, output = lab.play(
            "qualify", "-e", f"ssd_run_id={night}", "-e", f"ssd_leave={leave}", "-e", "purge_method=deallocate"
        )
        assert code == 0 and lab.summary()["verdicts"]["pass"] == 1, output
        guards = lab.journal("guard", night)
        assert (
            guards
            and all(record["eligible"] for record in guards)
            and not any(record["overridden"] for record in guards)
        )
        left = lab.journal("left", night)
        assert [record["state"] for record in left] == (["blank"] if leave == "blank" else [])
        print(night, guards[0]["look"], left)
        is_compared(lab.summary()["fleet"]["margin"], before)
        before = night
        if night != "three":
            guest.run("sync")
            guest.stop()
            guest.start()
