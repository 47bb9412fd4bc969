# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By how much counts of a drive's life grew between two looks, by the sources of each."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import life_counts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.environment import Environment, PowerState

NAME, OTHER = "media_errors", "unsafe_shutdowns"
UNKNOWN = {name: None for name in Environment.__dataclass_fields__}


def look(total=None, transport="sata", **sources):
    """A look at a drive that has this count in one place, or in several."""
    about = {"transport": transport, "error": "", "aer": {}, "power_state": PowerState(None, None)}
    return Environment(**{**UNKNOWN, **about, NAME: total, "counts_by_source": {NAME: sources} if sources else None})


@pytest.mark.parametrize(
    ("before", "now", "more", "text"),
    [
        (look(3), look(3), 0, ""),
        (look(3), look(5), 2, "3 to 5"),
        (look(3), look(), None, ""),
        (look(), look(3), None, ""),
        # It was reset.
        (look(3), look(1), None, ""),
        # Several places count the same events, and one of them all.
        (look(a=100, b=0), look(a=100, b=5), 5, "b 0 to 5"),
        (look(a=1, b=1), look(a=3, b=4), 3, "a 1 to 3, b 1 to 4"),
        # Another place, and one that is gone or new.
        (look(a=3), look(b=9), None, ""),
        (look(a=3), look(a=3, b=9), 0, ""),
        (look(a=3, b=9), look(a=3), 0, ""),
        # One was reset.
        (look(a=3, b=5), look(a=3, b=3), None, ""),
        (look(a=3, b=5), look(a=4, b=3), 1, "a 3 to 4"),
        # Each page of a SAS drive counts other events.
        (
            look(transport="sas", read=1, verify=7),
            look(transport="sas", read=2, verify=9),
            3,
            "read 1 to 2, verify 7 to 9",
        ),
        (look(transport="sas", read=0, verify=7), look(transport="sas", read=0), 0, ""),
        (look(transport="sas", read=3, verify=7), look(transport="sas", read=2, verify=8), 1, "verify 7 to 8"),
        (look(transport="sas", read=3), look(transport="sas", read=2), None, ""),
    ],
)
def test_a_source_that_both_looks_have_tells_how_many_are_new(before, now, more, text):
    assert life_counts.more(before, now, NAME) == more
    assert life_counts.text(life_counts.rose(before, now, NAME)) == text
    assert life_counts.more(before, now, OTHER) is None


def test_what_fell_is_told_by_its_sources():
    found = life_counts.fell(look(a=3, b=5, c=1), look(a=4, b=3, d=0), NAME)
    assert life_counts.text(found) == "b 5 to 3"


def test_a_look_with_one_count_as_it_is_now_has_the_others_as_they_were():
    before = look(a=3, b=5)
    now = life_counts.with_count_of(before, look(a=4, c=1), NAME)
    assert life_counts.of(now) == {NAME: {"a": 4, "b": 5, "c": 1}} and life_counts.of(before) == {
        NAME: {"a": 3, "b": 5}
    }
    assert life_counts.of(life_counts.with_count_of(before, look(9), OTHER)) == {NAME: {"a": 3, "b": 5}, OTHER: {}}


def test_counts_of_two_looks_are_those_of_the_later_one_where_both_have_them():
    one, other = {NAME: {"a": 1, "b": 2}}, {NAME: {"b": 3}, OTHER: {"total": 4}}
    assert life_counts.merged(one, other) == {NAME: {"a": 1, "b": 3}, OTHER: {"total": 4}}
