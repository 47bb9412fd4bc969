# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives at once, on made-up hosts whose limits are known."""

from __future__ import annotations

import random
import zlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import parallelism_search

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


def trial(of, number, confirms, alone_):
    """Group after group, up to the first that loses."""
    parts = []
    for group in parallelism_search.groups(of["drives"], number, confirms):
        parts.append(figures(of, group))
        if not parallelism_search.is_rate_kept(alone_, parts[-1]):
            break
    return parallelism_search.Trial(number, confirms, parts)


def calibrated(of):
    """(the record, the trials in order)"""
    own, trials = alone(of), []
    while (step := parallelism_search.next_trial(of["drives"], own, trials)) is not None:
        assert step not in [(done.number, done.confirms) for done in trials] and 1 < step[0] <= len(of["drives"])
        trials.append(trial(of, *step, own))
    return parallelism_search.decide(of["drives"], own, trials), trials


HALF = [(range(4), 2000), (range(4, 8), 4000)]
HOSTS = [
    ("one drive", host(1), 1, "it is the only drive"),
    ("two drives, no limit", host(2), 2, "all drives together"),
    ("24 drives, no limit", host(24), 24, "all drives together"),
    ("no limit, noise of half a per cent", host(8, noise=0.005), 8, "all drives together"),
    ("no limit, noise of 0.9 %", host(8, noise=0.009), 8, "all drives together"),
    ("drives of all kinds, no limit", host(5, rates=[10, 500, 500, 90_000, 1_000_000]), 5, "all drives together"),
    ("CPUs for one drive", host(4, cpu=1000), 1, "with 2 together, S"),
    ("CPUs for less than one drive", host(4, cpu=700), 1, "keeps"),
    ("CPUs for three of eight", host(8, cpu=3000), 3, "with 4 together, S"),
    ("CPUs for five of eight, noise", host(8, cpu=5100, noise=0.005), 5, "with 6 together, S"),
    ("CPUs for seven of eight", host(8, cpu=7000), 7, "with 8 together, S"),
    ("CPUs for 8 of 24", host(24, cpu=8000), 8, "with 9 together, S"),
    ("97 % of what all want", host(4, cpu=3880), 3, "keeps 97.0 %"),
    ("98 % of what all want, to the digit", host(4, cpu=3920), 4, "all drives together"),
    ("99 % of what all want", host(4, cpu=3960), 4, "all drives together"),
    ("a link for two of four", host(4, links=[(range(4), 2000)]), 2, f"in {SEQUENTIAL}"),
    ("one port of two is narrow", host(8, links=HALF), 2, "with 3 together, S"),
    ("a link for all, CPUs for six", host(8, cpu=6000, links=[(range(8), 9000)]), 6, f"in {READ}"),
    ("CPUs for all, a link for six", host(8, cpu=9000, links=[(range(8), 6000)]), 6, f"in {SEQUENTIAL}"),
    ("first and last share a port", host(4, links=[((0, 3), 1000)]), 1, "with 2 together, S0"),
    ("any neighbour costs 5 %", host(6, beat=0.05), 1, "keeps 95.0 %"),
    ("any neighbour costs 1 %", host(6, beat=0.01), 6, "all drives together"),
    ("a fast drive beside slow ones", host(4, rates=[100, 100, 100, 5000], cpu=5100), 3, "with 4 together"),
    ("noise that hides the loss", host(8, noise=0.05), 1, "so a loss of 2 % can't be detected"),
    ("noise and a limit", host(8, cpu=1000, noise=0.08), 1, "alone differs by"),
]


@pytest.mark.parametrize(("of", "number", "why"), [entry[1:] for entry in HOSTS], ids=[entry[0] for entry in HOSTS])
def test_the_largest_number_at_which_every_drive_keeps_98_per_cent(of, number, why):
    record, trials = calibrated(of)
    assert record.parallel_drives == number and why in record.why, record
    told = record.trials
    assert [(item.number, item.confirms) for item in told] == [(done.number, done.confirms) for done in trials]
    assert all(item.held or item.number > number for item in told)
    # What is used was confirmed, by all drives.
    confirmed = [item for item in told if item.confirms and item.held]
    assert [item.number for item in confirmed] == ([number] if number > 1 else [])
    assert all([one.drive for one in item.kept] == of["drives"] for item in confirmed)
    if told:
        assert len(record.alone) == len(of["drives"]) * len(of["cells"])


def made_up(chance):
    """A host with a limit of any kind, or several, or none: by the neighbours that drives have, by their number."""
    count = chance.choice([2, 3, 4, 7, 8, 12, 24])
    links = [
        (chance.sample(range(count), chance.randint(1, count)), 1000 * chance.randint(1, count))
        for _link in range(chance.randint(0, 3))
    ]
    noise = chance.choice([0, 0, 0.004])
    return host(count, cpu=chance.choice([None, 1000 * chance.randint(1, count)]), links=links, noise=noise)


@pytest.mark.parametrize("number", range(150))
def test_what_is_used_was_held_by_all_neighbours_and_costs_no_more_than_planned(number):
    """Of monotone and other hosts alike: nothing that was seen contradicts the number, and the time is bounded."""
    of = made_up(random.Random(number))
    count = len(of["drives"])
    record, trials = calibrated(of)
    used = record.parallel_drives
    own = alone(of)
    assert count + sum(len(done.parts) for done in trials) <= parallelism_search.most_groups(count)
    for group in parallelism_search.groups(of["drives"], used, True) if used > 1 else ():
        assert parallelism_search.is_rate_kept(own, figures(of, group))
    if not of["links"] and of["noise"] == 0:
        # A limit that only grows with the drives is found to the digit.
        largest = max(most for most in range(1, count + 1) if not of["cpu"] or of["cpu"] / most / 1000 >= 0.98)
        assert used == largest


@pytest.mark.parametrize("verdicts", range(100))
def test_a_host_that_answers_by_chance_ends_in_time_with_what_it_confirmed(verdicts):
    """More drives may do better than fewer: no order of answers makes the search long, or its outcome unconfirmed."""
    chance = random.Random(verdicts)
    drives = [f"S{place}" for place in range(24)]
    own = {"c": {drive: [100.0] * 3 for drive in drives}}
    trials, measured_ = [], len(drives)
    while (step := parallelism_search.next_trial(drives, own, trials)) is not None:
        parts = [
            {"c": {drive: [100.0 if chance.random() < 0.999 else 90.0] * 3 for drive in group}}
            for group in parallelism_search.groups(drives, *step)
        ]
        lost = next(
            (place for place, part in enumerate(parts) if not parallelism_search.is_rate_kept(own, part)), len(parts)
        )
        trials.append(parallelism_search.Trial(*step, parts[: lost + 1]))
        measured_ += len(trials[-1].parts)
    told = parallelism_search.decide(drives, own, trials)
    held = {item.number for item in told.trials if item.confirms and item.held}
    failed = {item.number for item in told.trials if not item.held}
    assert told.parallel_drives in {1, *held} and all(told.parallel_drives < number for number in failed)
    assert measured_ <= parallelism_search.most_groups(24)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_the_most_groups_are_those_of_the_longest_way(count):
    """Every order of answers there is."""
    drives = [f"S{place}" for place in range(count)]
    own = {"c": {drive: [100.0] * 3 for drive in drives}}

    def longest(trials):
        step = parallelism_search.next_trial(drives, own, trials)
        if step is None:
            return 0
        well = [{"c": {drive: [100.0] * 3 for drive in group}} for group in parallelism_search.groups(drives, *step)]
        badly = [*well[:-1], {"c": {drive: [50.0] * 3 for drive in well[-1]["c"]}}]
        return len(well) + max(longest([*trials, parallelism_search.Trial(*step, parts)]) for parts in (well, badly))

    assert count + longest([]) == parallelism_search.most_groups(count)


def test_every_drive_is_measured_once_for_a_number_and_beside_all_neighbours_to_confirm_it():
    drives = ["a", "b", "c"]
    assert parallelism_search.groups(drives, 3, False) == parallelism_search.groups(drives, 3, True) == [drives]
    assert parallelism_search.groups(drives, 2, False) == [["a", "b"], ["c", "a"]]
    assert parallelism_search.groups(drives, 2, True) == [["a", "b"], ["b", "c"], ["c", "a"]]
    assert parallelism_search.groups(["a"], 4, False) == [["a"]]


@pytest.mark.parametrize(
    ("disturb", "why"),
    [
        (lambda own, part: own[READ].pop("S1"), "S1 has too few figures for rand-4k"),
        (lambda own, part: own[READ]["S1"].pop(), "S1 has too few figures for rand-4k"),
        (lambda own, part: own[READ].update(S1=[0, 0, 0]), "S1 has too few figures for rand-4k"),
        (lambda own, part: own.clear(), "nothing was measured alone"),
        (lambda own, part: part[READ].pop("S1"), "with 2 together, S1 has too few figures"),
        (lambda own, part: [cell.pop("S1") for cell in part.values()], "with 2 together, S1 has too few figures"),
        (lambda own, part: part[READ]["S0"].pop(), "with 2 together, S0 has too few figures"),
        (lambda own, part: part[READ].update(S0=[900] * 3), "with 2 together, S0 keeps 90.0 %"),
    ],
)
def test_what_is_not_known_lets_no_drives_run_together(disturb, why):
    of = host(2)
    own = alone(of)
    trials = [parallelism_search.Trial(2, confirms, [figures(of, of["drives"])]) for confirms in (False, True)]
    assert parallelism_search.decide(of["drives"], own, trials).parallel_drives == 2
    disturb(own, trials[1].parts[0])
    record = parallelism_search.decide(of["drives"], own, trials)
    assert record.parallel_drives == 1 and why in record.why
    assert parallelism_search.decide(of["drives"], alone(of), []).why == "no larger number was measured"


def test_a_number_that_holds_beyond_one_that_does_not_counts_for_nothing():
    """Chance may let more drives pass than fewer."""
    of, narrow = host(4), host(4, cpu=1000)
    own = alone(of)
    trials = [trial(of, 4, False, own), trial(of, 4, True, own), trial(narrow, 2, False, own)]
    assert parallelism_search.decide(of["drives"], own, trials).parallel_drives == 1
    assert parallelism_search.next_trial(of["drives"], own, trials) is None


def test_a_confirmation_that_fails_leads_to_a_smaller_number_that_is_confirmed():
    """Drives 2 to 4 share a port that the bisection's own groups never ask for all at once."""
    of = host(9, links=[((2, 3, 4), 2000)], cpu=3000)
    record, trials = calibrated(of)
    assert [(done.number, done.confirms) for done in trials][-2:] == [(3, True), (2, True)]
    assert record.parallel_drives == 2 and "with 3 together, S" in record.why
    of = host(8, links=[((2, 3, 4), 2000)], cpu=3000)
    assert calibrated(of)[0].parallel_drives == 2
