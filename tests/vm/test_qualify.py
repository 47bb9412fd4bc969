# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive of a real kernel, from the inventory to the verdict."""

from __future__ import annotations

import pytest
from command_log import destructive
from hardware import NEIGHBOUR, PLAIN


def test_plan_mode_changes_nothing(lab):
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    outcome = lab.outcome("qualify", "-e", "ssd_mode=plan")
    assert outcome.code == 0 and "would erase" in outcome.output, outcome.output
    assert not outcome.changed and outcome.commands and not any(map(destructive, outcome.commands)), outcome.commands
    assert lab.guest.run(f"ls {lab.state}/runs", check=False).returncode != 0


@pytest.mark.long
def test_a_drive_is_qualified_and_its_neighbour_left_alone(lab):
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    before = lab.hashes()
    lab.clear_commands()
    code, output = lab.play("qualify", "-e", "purge_method=deallocate")
    assert code == 0, output
    assert lab.summary()["verdicts"]["pass"] == 1
    (purge,) = lab.journal("purge")
    assert purge["verified"] is True
    after = lab.hashes()
    assert after.pop(PLAIN) != before.pop(PLAIN)
    assert after == before and NEIGHBOUR in after
    assert ["ioctl", "BLKDISCARD"] in [argv[:2] for argv in lab.commands()]
