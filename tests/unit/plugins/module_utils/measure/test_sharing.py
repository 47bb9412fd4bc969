# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives may be measured at once, on constructed hosts whose shared limit is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import sharing


class Shared:
    """Drives that each do `own` alone; together no more than `limit` in all. calls: the groups that were measured."""

    def __init__(self, limit, own=100.0, cells=("long", "short"), slow_together=()):
        self.limit, self.own, self.cells, self.slow_together = limit, own, cells, slow_together
        self.calls = []

    def __call__(self, group):
        self.calls.append(list(group))
        rate = min(self.own, self.limit / len(group))
        lame = len(group) > 1 and set(group) & set(self.slow_together)
        return {drive: {cell: rate * (0.5 if lame else 1) for cell in self.cells} for drive in group}


def names(count):
    return [f"S{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("count", "limit", "at_once", "tried"),
    [
        (1, 100, 1, []),
        (2, 200, 2, [2]),
        (2, 196, 2, [2]),  # each keeps exactly 98 %
        (2, 195.9, 1, [2]),
        (4, 400, 4, [4]),
        (4, 200, 2, [4, 2, 3]),
        (4, 300, 3, [4, 2, 3]),
        (4, 100, 1, [4, 2]),
        (8, 500, 5, [8, 4, 6, 5]),
    ],
)
def test_the_most_that_keep_their_rate_are_found(count, limit, at_once, tried):
    found = sharing.search(names(count), Shared(limit))
    assert found.at_once == at_once and [step["at_once"] for step in found.tried] == tried
    assert set(found.alone) == set(names(count))
    assert all(step["kept"] == (min(step["shares"].values()) >= 0.98) for step in found.tried)


def test_the_record_has_the_shares():
    (step,) = sharing.search(names(2), Shared(150)).tried
    assert step == {"at_once": 2, "shares": {"S0": 0.75, "S1": 0.75}, "kept": False}


def test_the_worst_cell_counts_and_what_is_missing_kept_nothing():
    alone = {"A": {"long": 100.0, "short": 10.0}, "B": {"long": 100.0, "short": 0.0}, "C": {}}
    together = {"A": {"long": 99.0, "short": 5.0}, "B": {"long": 100.0, "short": 1.0}, "C": {"long": 1.0}}
    assert sharing.shares(alone, together) == {"A": 0.5, "B": 0.0, "C": 0.0}
    assert sharing.shares(alone, {"A": {"long": 100.0}}) == {"A": 0.0}


def test_one_drive_that_falls_short_counts_for_all():
    """S3 loses half beside any other: no number of drives at once is right for it."""
    assert sharing.search(names(4), Shared(1e9, slow_together=["S3"])).at_once == 1


@given(count=st.integers(1, 24), limit=st.floats(50, 3000))
def test_any_shared_limit_is_found_and_not_by_trying_them_all(count, limit):
    host = Shared(limit)
    most = max((number for number in range(1, count + 1) if min(100.0, limit / number) >= 98.0), default=1)
    found = sharing.search(names(count), host)
    if limit >= 100:
        assert found.at_once == most
    assert len(found.tried) <= 1 + count.bit_length()
    assert all(len(group) == step for group, step in zip(host.calls, [1] * count))


@given(count=st.integers(2, 24), data=st.data())
def test_each_drive_is_in_a_group_of_that_size(count, data):
    number = data.draw(st.integers(2, count))
    made = sharing.groups(names(count), number)
    assert {drive for group in made for drive in group} == set(names(count))
    assert all(len(group) == len(set(group)) == number for group in made)
