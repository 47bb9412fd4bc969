# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of a schema, and what is made of values on the way. Messages: tests/unit/plugins/plugin_utils/plan."""

from __future__ import annotations

import datetime

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema


def test_a_whole_number_that_a_template_made_a_float_becomes_one():
    """JSON Schema takes 5.0 for an integer; what counts rounds with it does not."""
    shape = {
        "properties": {
            "max": {"type": ["integer", "null"]},
            "share": {"type": "number"},
            "targets": {"type": "array", "items": {"type": "integer"}},
        }
    }
    made = schema.with_defaults({"max": 5.0, "share": 5.0, "targets": [1.0]}, shape)
    assert repr(made) == "{'max': 5, 'share': 5.0, 'targets': [1]}"


def test_a_date_is_the_text_that_json_gets():
    """YAML reads `retired: 2026-11-28` as a date."""
    assert schema.plain([{"retired": datetime.date(2026, 11, 28)}]) == [{"retired": "2026-11-28"}]
