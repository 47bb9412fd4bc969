# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives at once, on made-up hosts whose limits are known."""

from __future__ import annotations

import random
import zlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import together

REPEATS = 3
READ, SEQUENTIAL = "rand-4k-r100-tc4-qd32", "seq-128k-r100-tc1-qd32"


def host(count, cpu=None, links=(), noise=0.0, rates=None, cells=(READ, SEQUENTIAL), beat=0.0):
    """cpu: IOPS that the CPUs manage of the first cell; links: [(drives, what their port carries of the last cell)];
    noise: by which share a figure is off at most, either way; beat: what any neighbour at all costs.
    """
    return {
        "drives": [f"S{place}" for place in range(count)],
        "rates": rates or [1000] * count,
        "cpu": cpu,
        "links": links,
        "noise": noise,
        "cells": cells,
        "beat": beat,
    }


def measured(of, group, again):
    """The figures of a group that runs together, once."""
    places = [of["drives"].index(drive) for drive in group]
    found = {}
    for cell in of["cells"]:
        limits = [(set(places), of["cpu"])] if of["cpu"] and cell == of["cells"][0] else []
        limits += [(set(on) & set(places), rate) for on, rate in of["links"]] if cell == of["cells"][-1] else []
        found[cell] = {}
        for place, drive in zip(places, group):
            rate = of["rates"][place] * (1 - of["beat"] * (len(group) > 1))
            for on, most in limits:
                asked = sum(of["rates"][other] for other in on)
                rate = min(rate, of["rates"][place] * most / asked) if place in on else rate
            chance = random.Random(zlib.crc32(f"{cell} {drive} {group} {again}".encode()))
            found[cell][drive] = rate * (1 + of["noise"] * chance.uniform(-1, 1))
    return found


def figures(of, group):
    times = [measured(of, group, again) for again in range(REPEATS)]
    return {cell: {drive: [one[cell][drive] for one in times] for drive in group} for cell in of["cells"]}


def alone(of):
    each = [figures(of, [drive]) for drive in of["drives"]]
    return {cell: {drive: part[cell][drive] for part in each for drive in part[cell]} for cell in of["cells"]}


def calibrated(of):
    """(the record, the numbers that were tried, in order)"""
    own, trials = alone(of), {}
    while (number := together.next_number(of["drives"], own, trials)) is not None:
        assert number not in trials and 1 < number <= len(of["drives"])
        trials[number] = [figures(of, group) for group in together.groups(of["drives"], number)]
    return together.decide(of["drives"], own, trials), list(trials)


HALF = [(range(4), 2000), (range(4, 8), 4000)]
HOSTS = [
    ("one drive", host(1), 1, "no other drive"),
    ("two drives, no limit", host(2), 2, "all drives together"),
    ("24 drives, no limit", host(24), 24, "all drives together"),
    ("no limit, noise of half a per cent", host(8, noise=0.005), 8, "all drives together"),
    ("no limit, noise of 0.9 %", host(8, noise=0.009), 8, "all drives together"),
    ("drives of all kinds, no limit", host(5, rates=[10, 500, 500, 90_000, 1_000_000]), 5, "all drives together"),
    ("CPUs for one drive", host(4, cpu=1000), 1, "of 2 together S"),
    ("CPUs for less than one drive", host(4, cpu=700), 1, "keeps"),
    ("CPUs for three of eight", host(8, cpu=3000), 3, "of 4 together S"),
    ("CPUs for five of eight, noise", host(8, cpu=5100, noise=0.005), 5, "of 6 together S"),
    ("CPUs for seven of eight", host(8, cpu=7000), 7, "of 8 together S"),
    ("CPUs for 8 of 24", host(24, cpu=8000), 8, "of 9 together S"),
    ("97 % of what all want", host(4, cpu=3880), 3, "keeps 97.0 %"),
    ("98 % of what all want, to the digit", host(4, cpu=3920), 4, "all drives together"),
    ("99 % of what all want", host(4, cpu=3960), 4, "all drives together"),
    ("a link for two of four", host(4, links=[(range(4), 2000)]), 2, f"in {SEQUENTIAL}"),
    ("one port of two is narrow", host(8, links=HALF), 2, "of 3 together S"),
    ("a link for all, CPUs for six", host(8, cpu=6000, links=[(range(8), 9000)]), 6, f"in {READ}"),
    ("CPUs for all, a link for six", host(8, cpu=9000, links=[(range(8), 6000)]), 6, f"in {SEQUENTIAL}"),
    ("first and last share a port", host(4, links=[((0, 3), 1000)]), 1, "of 2 together S0"),
    ("any neighbour costs 5 %", host(6, beat=0.05), 1, "keeps 95.0 %"),
    ("any neighbour costs 1 %", host(6, beat=0.01), 6, "all drives together"),
    ("a fast drive beside slow ones", host(4, rates=[100, 100, 100, 5000], cpu=5100), 3, "of 4 together"),
    ("noise that hides the loss", host(8, noise=0.05), 1, "so a loss of 2 % can't be told"),
    ("noise and a limit", host(8, cpu=1000, noise=0.08), 1, "alone differs by"),
]


@pytest.mark.parametrize(("of", "number", "why"), [entry[1:] for entry in HOSTS], ids=[entry[0] for entry in HOSTS])
def test_the_largest_number_at_which_every_drive_keeps_98_per_cent(of, number, why):
    record, tried = calibrated(of)
    assert record["parallel_drives"] == number and why in record["why"], record
    assert [item["number"] for item in record["trials"]] == sorted(tried)
    assert all(item["held"] == (item["number"] <= number) for item in record["trials"])
    # Each trial costs time: no more of them than halving takes.
    assert len(tried) <= 1 + len(of["drives"]).bit_length()


def test_every_drive_is_in_a_group_of_each_number_with_its_neighbours():
    drives = ["a", "b", "c"]
    assert together.groups(drives, 3) == [drives]
    assert together.groups(drives, 2) == [["a", "b"], ["b", "c"], ["c", "a"]]
    assert together.groups(["a"], 4) == [["a"]]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda own, trials: own[READ].pop("S1"), "S1 has too few figures of rand-4k"),
        (lambda own, trials: own[READ]["S1"].pop(), "S1 has too few figures of rand-4k"),
        (lambda own, trials: own[READ].update(S1=[0, 0, 0]), "S1 has too few figures of rand-4k"),
        (lambda own, trials: own.clear(), "nothing was measured alone"),
        (lambda own, trials: trials[2][0][READ].pop("S1"), "of 2 together S1 has too few figures"),
        (lambda own, trials: trials[2][0][READ]["S0"].pop(), "of 2 together S0 has too few figures"),
        (lambda own, trials: trials.clear(), "no larger number was measured"),
    ],
)
def test_what_is_not_known_lets_no_drives_run_together(spoil, why):
    of = host(2)
    own, trials = alone(of), {2: [figures(of, of["drives"])]}
    assert together.decide(of["drives"], own, trials)["parallel_drives"] == 2
    spoil(own, trials)
    record = together.decide(of["drives"], own, trials)
    assert record["parallel_drives"] == 1 and why in record["why"]


def test_a_number_that_holds_beyond_one_that_does_not_counts_for_nothing():
    """Chance may let more drives pass than fewer."""
    of, narrow = host(4), host(4, cpu=1000)
    trials = {4: [figures(of, of["drives"])], 2: [figures(narrow, group) for group in together.groups(of["drives"], 2)]}
    record = together.decide(of["drives"], alone(of), trials)
    assert record["parallel_drives"] == 1 and together.next_number(of["drives"], alone(of), trials) is None
