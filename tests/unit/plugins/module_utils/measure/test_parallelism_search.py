# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives at once by reads, on made-up hosts whose limits are known."""

from __future__ import annotations

import random
import zlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import parallelism_search
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import ReadTogether

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


def reads(of, sampled=None, sure=1):
    """What the plan asks for. sampled: the places of the drives that are read alone; None: all."""
    names, count = of["drives"], len(of["drives"])
    alone_ = names if sampled is None else [names[place] for place in sampled]
    return ReadTogether(REPEATS, [], alone_, parallelism_search.numbers(count, sure), sure)


def alone(of, asked):
    each = [figures(of, [drive]) for drive in asked.alone]
    return {cell: {drive: part[cell][drive] for part in each for drive in part[cell]} for cell in of["cells"]}


def trial(of, number, asked, own):
    """Group after group, up to the first that loses."""
    parts = []
    for group in parallelism_search.groups(of["drives"], number, asked.alone):
        parts.append(figures(of, group))
        if not parallelism_search.is_rate_kept(own, parts[-1]):
            break
    return parallelism_search.Trial(number, parts)


def calibrated(of, asked=None):
    """(the record, the trials in order)"""
    asked = asked or reads(of)
    own, trials = alone(of, asked), []
    while (number := parallelism_search.next_number(asked, own, trials)) is not None:
        trials.append(trial(of, number, asked, own))
    return parallelism_search.decide(of["drives"], asked, own, trials), trials


HALF = [(range(4), 2000), (range(4, 8), 4000)]
HOSTS = [
    ("two drives, no limit", host(2), 2, "all drives together"),
    ("24 drives, no limit", host(24), 24, "all drives together"),
    ("no limit, noise of half a per cent", host(8, noise=0.005), 8, "all drives together"),
    ("drives of all kinds, no limit", host(5, rates=[10, 500, 500, 90_000, 1_000_000]), 5, "all drives together"),
    ("CPUs for one drive", host(4, cpu=1000), 1, "with 2 together, S"),
    ("CPUs for less than one drive", host(4, cpu=700), 1, "keeps"),
    ("CPUs for three of eight", host(8, cpu=3000), 2, "with 4 together, S"),
    ("CPUs for seven of eight", host(8, cpu=7000), 4, "with 8 together, S"),
    ("CPUs for 8 of 24", host(24, cpu=8000), 6, "with 12 together, S"),
    ("97 % of what all want", host(4, cpu=3880), 2, "keeps 97.0 %"),
    ("98 % of what all want, to the digit", host(4, cpu=3920), 4, "all drives together"),
    ("a link for two of four", host(4, links=[(range(4), 2000)]), 2, f"in {SEQUENTIAL}"),
    ("one port of two is narrow", host(8, links=HALF), 2, "with 4 together, S"),
    ("a link for all, CPUs for six", host(8, cpu=6000, links=[(range(8), 9000)]), 4, f"in {READ}"),
    ("CPUs for all, a link for six", host(8, cpu=9000, links=[(range(8), 6000)]), 4, f"in {SEQUENTIAL}"),
    ("first and last share a port", host(4, links=[((0, 3), 1000)]), 1, "with 2 together, S"),
    ("any neighbour costs 5 %", host(6, beat=0.05), 1, "keeps 95.0 %"),
    ("any neighbour costs 1 %", host(6, beat=0.01), 6, "all drives together"),
    ("noise that hides the loss", host(8, noise=0.05), 1, "so a loss of 2 % can't be detected"),
    ("noise and a limit", host(8, cpu=1000, noise=0.08), 1, "alone differs by"),
]


@pytest.mark.parametrize(("of", "number", "why"), [entry[1:] for entry in HOSTS], ids=[entry[0] for entry in HOSTS])
def test_the_first_half_at_which_every_drive_keeps_98_per_cent(of, number, why):
    record, trials = calibrated(of)
    assert record.parallel_drives == number and why in record.why, record
    assert [item.number for item in record.trials] == [done.number for done in trials]
    assert all(item.held is (item.number == number) for item in record.trials)


@pytest.mark.parametrize("seed", range(100))
def test_a_sample_of_the_drives_finds_no_less_than_is_sure_in_the_time_that_was_planned(seed):
    """A link behind all drives disturbs all alike, so any few of them tell of it."""
    chance = random.Random(seed)
    count = chance.choice([2, 3, 4, 7, 8, 12, 24, 48])
    fit = chance.randint(1, count)
    of = host(count, links=[(range(count), 1000 * fit)])
    sampled = sorted(chance.sample(range(count), min(count, chance.randint(1, 3))))
    asked = reads(of, sampled, sure=chance.randint(1, fit))
    record, trials = calibrated(of, asked)
    assert asked.otherwise <= record.parallel_drives and 0.98 * record.parallel_drives <= fit
    assert len(sampled) + sum(len(done.parts) for done in trials) <= parallelism_search.most_groups(asked, count)


def test_each_drive_that_was_read_alone_is_in_the_middle_of_its_neighbours():
    drives = ["a", "b", "c", "d", "e", "f"]
    assert parallelism_search.groups(drives, 6, ["a"]) == [drives]
    assert parallelism_search.groups(drives, 3, ["a", "d"]) == [["f", "a", "b"], ["c", "d", "e"]]
    assert parallelism_search.groups(drives, 3, ["a", "b"]) == [["f", "a", "b"]], "a group of both is enough"


@pytest.mark.parametrize(("most", "sure", "tried"), [(24, 1, [24, 12, 6, 3]), (24, 8, [24, 12]), (2, 1, [2])])
def test_halves_are_tried_above_what_is_sure(most, sure, tried):
    assert parallelism_search.numbers(most, sure) == tried


@pytest.mark.parametrize(
    ("disturb", "why"),
    [
        (lambda own, part: own[READ].pop("S1"), "S1 has too few figures for rand-4k"),
        (lambda own, part: own[READ]["S1"].pop(), "S1 has too few figures for rand-4k"),
        (lambda own, part: own[READ].update(S1=[0, 0, 0]), "S1 has too few figures for rand-4k"),
        (lambda own, part: own.clear(), "nothing was measured alone"),
        (lambda own, part: part[READ].pop("S1"), "with 2 together, S1 has too few figures"),
        (lambda own, part: part[READ]["S0"].pop(), "with 2 together, S0 has too few figures"),
        (lambda own, part: part[READ].update(S0=[900] * 3), "with 2 together, S0 keeps 90.0 %"),
    ],
)
def test_what_is_not_known_lets_no_more_drives_run_together_than_is_sure(disturb, why):
    of = host(2)
    asked = reads(of)
    own, trials = alone(of, asked), [parallelism_search.Trial(2, [figures(of, of["drives"])])]
    assert parallelism_search.decide(of["drives"], asked, own, trials).parallel_drives == 2
    disturb(own, trials[0].parts[0])
    record = parallelism_search.decide(of["drives"], asked, own, trials)
    assert record.parallel_drives == 1 and why in record.why
