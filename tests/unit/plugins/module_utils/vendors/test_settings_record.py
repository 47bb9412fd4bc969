# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.settings_record import SettingsRecord


def test_a_record_is_kept_replaced_and_removed(tmp_path):
    record = SettingsRecord(str(tmp_path / "state"), "rssdm", "S/1")
    assert record.read() == {}
    record.write(pending={"a": 1})
    record.write(pending={"b": 2})
    assert record.read() == {"pending": {"b": 2}, "schema_version": 1}
    assert record.path.endswith("/rssdm/S_1.json")
    record.remove()
    record.remove()
    assert record.read() == {}


@pytest.mark.parametrize("text", ["", "[1]", "{", "null"])
def test_what_is_no_record_counts_as_none(tmp_path, text):
    record = SettingsRecord(str(tmp_path), "rssdm", "S1")
    record.write()
    open(record.path, "w").write(text)
    assert record.read() == {}
