# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import tool_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, min_size=1, max_size=4)


@pytest.mark.parametrize(
    "text, found",
    [
        ('{"mn": "Example\x01PC\x1b[31m"}', {"mn": "Example\x01PC\x1b[31m"}),
        ('{"mn": "two\nlines"}', {"mn": "two\nlines"}),
        ('NVMe status: {reserved}\n{"sn": "1"}', {"sn": "1"}),
        ('warning: {"sn": "1"}', {"sn": "1"}),
        ('{"sn": "1"}\nnvme: 1 {warning}\n', {"sn": "1"}),
        ('{\n "sn": "1",\n "psds": [\n  {"mp": 1}\n ]\n}\n', {"sn": "1", "psds": [{"mp": 1}]}),
    ],
)
def test_flaws_around_an_object_and_in_its_texts_are_forgiven(text, found):
    assert tool_json.read(text) == found


@pytest.mark.parametrize(
    "text, key, why",
    [
        ("", "", "no JSON: nothing"),
        ("[]", "", "no JSON: []"),
        ("device not found", "", "no JSON: device not found"),
        ('{"error": "no access"}', "jobs", 'no JSON with jobs: {"error": "no access"}'),
        ('{"sn": 1, "lbafs": [\n  {"ds": 9}', "", "broken JSON (Expecting ',' delimiter"),
        ('{"sn": "1"}\n{"sn": "2"}', "", "2 JSON objects"),
        ('{"sn": "1"}{"sn": "2"}', "", "2 JSON objects"),
        ('{"jobs": [1]}\n{"jobs": [2]}\n', "jobs", "2 JSON objects"),
        ("{" + '"a":{' * 100_000, "", "broken JSON"),
    ],
)
def test_what_leaves_a_doubt_is_refused(text, key, why):
    with pytest.raises(tool_json.NotOneObject) as refused:
        tool_json.read(text, key)
    assert str(refused.value).startswith(why)


def test_a_key_tells_a_result_from_a_warning():
    assert tool_json.read('{"warning": "old"}\n{"jobs": []}', "jobs") == {"jobs": []}


@given(OBJECTS)
def test_what_json_writes_is_read_back(value):
    for indent in (None, 2):
        assert tool_json.read("warning\n" + json.dumps(value, indent=indent) + "\ndone\n") == value


@given(OBJECTS, st.data())
def test_an_object_that_breaks_off_is_none(value, data):
    text = json.dumps(value, indent=2)
    with pytest.raises(tool_json.NotOneObject):
        tool_json.read(text[: data.draw(st.integers(0, len(text) - 1))])
