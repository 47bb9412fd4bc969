# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.settings_record import SettingsRecord, read_all


@dataclasses.dataclass(frozen=True)
class Saved:
    serial: str
    lit: bool


def test_a_record_is_kept_replaced_and_removed(tmp_path):
    record = SettingsRecord(Saved, str(tmp_path / "state"), "rssdm", "S/1")
    assert record.read() is None
    record.write(Saved("S/1", False))
    record.write(Saved("S/1", True))
    assert record.read() == Saved("S/1", True) and read_all(Saved, str(tmp_path / "state"), "rssdm") == [record.read()]
    assert record.path.endswith("/rssdm/S_1.json")
    assert json.load(open(record.path)) == {"lit": True, "schema_version": 1, "serial": "S/1"}
    record.remove()
    record.remove()
    assert record.read() is None


@pytest.mark.parametrize("text", ["", "[1]", "{", "null", "{}", '{"serial": 1, "lit": true}'])
def test_what_is_no_record_counts_as_none(tmp_path, text):
    record = SettingsRecord(Saved, str(tmp_path), "rssdm", "S1")
    record.write(Saved("S1", True))
    open(record.path, "w").write(text)
    assert record.read() is None and read_all(Saved, str(tmp_path), "rssdm") == []
