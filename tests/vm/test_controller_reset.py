# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An integrity test whose drive's controller is reset before it is read back: a real reset of the guest's kernel, which
counts for nothing against the drive; and none where somebody uses the controller's other namespace.
"""

from __future__ import annotations

import pytest
from hardware import TWO_NAMESPACES, wwn

TEST = {"base": "integrity", "purge": False, "integrity": {"passes": 1, "reset": True}}


@pytest.fixture
def drive(lab, guest):
    """The first of two namespaces, blank, and the node of the second."""
    guest.blank(TWO_NAMESPACES)
    lab.host["ssd_drives"] = [{"wwn": wwn(TWO_NAMESPACES, 1)}]
    lab.vars.update(ssd_plan=[TEST])
    lab.clear_commands()
    return guest.device(TWO_NAMESPACES, 2)


def resets(lab):
    return [argv for argv in lab.commands() if argv[:2] == ["nvme", "reset"]]


def test_a_reset_is_ours_and_not_held_against_the_drive(lab, guest, drive):
    second = guest.drives[TWO_NAMESPACES].namespaces[1]
    before = second.sha256()
    code, output = lab.play("qualify")
    assert code == 0 and lab.summary()["verdicts"]["pass"] == 1, output
    (found,) = lab.journal("integrity")
    assert found["resets"] == len(resets(lab)) == 1 and found["wrong_blocks"] == {}
    (ended,) = lab.journal("test_finished")
    assert ended["health"]["controller_resets"] == 0 and not lab.journal("kernel_event"), ended
    assert "resetting controller" in guest.run("dmesg").stdout
    assert second.sha256() == before


@pytest.mark.long
def test_a_controller_whose_other_namespace_is_mounted_is_not_reset(lab, guest, drive):
    guest.run(f"mkfs.ext4 -q -F {drive} && mkdir -p /mnt/second && mount {drive} /mnt/second", timeout_s=300)
    try:
        first = guest.drives[TWO_NAMESPACES].namespaces[0]
        before = first.sha256()
        code, output = lab.play("qualify")
        assert code != 0 and resets(lab) == [] and first.sha256() == before, output
        (ended,) = lab.journal("test_finished")
        assert ended["ended"] == "invalid" and "is in use (mounted)" in ended["reasons"][0], ended
    finally:
        guest.run(f"umount /mnt/second; wipefs -qaf {drive}")
