# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The statement that a drive is retired: which use of it is which drive's."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import retired
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import RetiredUse

EUI, NGUID = "eui.0025385b01234567", "eui.36344730524001230025384500000001"


def who(serial=None, wwn=None, model=None, backing_file=None):
    return {"serial": serial, "wwn": wwn, "model": model, "backing_file": backing_file}


@pytest.mark.parametrize(
    "noted, now, same",
    [
        (who("S4X1", EUI, "MZQL"), who("S4X1", NGUID, "MZQL"), True),  # its namespace was made anew
        (who("S4X1", EUI), who("S4X1", "uuid.36344730-5240"), True),
        (who("S4X1", "naa.5002538e00000001"), who("S4X1      001", "naa.5002538E00000001"), True),
        (who("S4-X1"), who("s4x1 "), True),
        (who("S4X1", None, "MZ7LH"), who("S4X1", "naa.5002538e00000001", "DELL MZ7LH"), True),
        (who(backing_file="/a"), who(backing_file="/a"), True),
        (who(backing_file="/a"), who(backing_file="/b"), False),
        (who("S4X1", EUI), who("S4X2", NGUID), False),
        (who("0000000000"), who("0000000000"), False),
        (who(), who(), False),
    ],
)
def test_a_use_is_of_a_drive_with_any_name_of_its_own(noted, now, same):
    use = RetiredUse("r1", "2026-11-20T00:00:00Z", noted, "true", [], 1)
    assert (retired.use_of([use], now) is use) is same


def test_two_namespaces_of_one_run_are_two_drives(tmp_path):
    state_dir = str(tmp_path / "state")
    first, second = who("S4X1", EUI), who("S4X1", NGUID)
    retired.note(state_dir, first, "r1", "true", [])
    assert retired.use_of(retired.uses(state_dir), second, "r1") is None
    retired.note(state_dir, second, "r1", "true", [])
    assert len(retired.uses(state_dir)) == 2 and retired.use_of(retired.uses(state_dir), second, "r1")
