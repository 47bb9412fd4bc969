# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a fleet of good drives is flagged, and how surely a bad drive or host is: the tables of
docs/fleet.md and docs/internals/fleet-statistics.md.

From the repository's root:

    python tests/bench/fleet_statistics.py [--fleets 1000] [--seed 1] [--drives 8 24 96 400] [--table flags]

--table limits prints what the constants ALONE and TOGETHER of robust_statistics.py were chosen from.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
import typing as t

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "playbooks", "collections"))

import numpy as np
import pandas

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import host_effects, outliers, robust_statistics

# Independent ones, two of them tails: those that go together would make false flags rarer.
METRICS = (
    "read_iops",
    "write_iops",
    "read_mean_latency_us",
    "write_mean_latency_us",
    "read_p99_9_latency_us",
    "write_p99_9_latency_us",
)
DRIVES_A_HOST = 4
# Low hosts take most of the time: they are looked for in one fleet of so many.
HOSTS_EVERY = 5
# Tests, models, firmwares: a run has many groups of peers.
GROUPS = 16


class Noise(t.NamedTuple):
    """How the figures of good drives spread, by so much (tails by twice that on a log scale).

    kind: normal, lognormal, or t: that of Student's t with 5 degrees of freedom. alike, hosts: the shares of the
    variance that are the drive's speed, and its host's. as_rates: a mean latency is one through a rate.
    """

    kind: str
    spread: float
    alike: float = 0.0
    hosts: float = 0.0
    as_rates: bool = False


NOISES = {
    "normal 1 %": Noise("normal", 0.01),
    "normal 3 %": Noise("normal", 0.03),
    "normal 10 %": Noise("normal", 0.10),
    "normal 3 %, figures go together": Noise("normal", 0.03, alike=0.9),
    "normal 3 %, half of it the host's": Noise("normal", 0.03, hosts=0.5),
    "lognormal 3 %": Noise("lognormal", 0.03),
    "lognormal 10 %": Noise("lognormal", 0.10),
    "lognormal 30 %": Noise("lognormal", 0.30),
    "Student's t, 3 %": Noise("t", 0.03),
    "Student's t, 10 %": Noise("t", 0.10),
    "Student's t, 3 %, figures go together": Noise("t", 0.03, alike=0.9),
    "Student's t, 10 %, figures go together": Noise("t", 0.10, alike=0.9),
    "Student's t, 10 %, half of it the host's": Noise("t", 0.10, hosts=0.5),
    "Student's t, 10 %, of rates": Noise("t", 0.10, as_rates=True),
    "Student's t, 10 %, of rates, figures go together": Noise("t", 0.10, alike=0.9, as_rates=True),
}
# Of good fleets with noise of Student's t: how many may be flagged in all, and by one figure.
FLAGGED, FLAGGED_ALONE = 0.046, 0.036


class Rates(t.NamedTuple):
    """Shares of the fleets with any drive and any host flagged, mean number of flags, and share with a drive flagged
    but for the practical threshold.
    """

    drive: float
    host: float
    flags: float
    by_chance_alone: float


def good(random: np.random.Generator, drives: int, noise: Noise) -> np.ndarray:
    """The figures of one fleet of good drives: a row a metric, a column a drive."""
    own = _noise(random, noise.kind, (len(METRICS), drives))
    speed = _noise(random, noise.kind, (1, drives)) if noise.alike else np.zeros((1, drives))
    of_host = np.zeros((1, drives))
    if noise.hosts:
        hosts_of = np.arange(drives) // DRIVES_A_HOST
        of_host = _noise(random, noise.kind, (1, int(hosts_of[-1]) + 1))[:, hosts_of]
    side = np.where(np.char.endswith(METRICS, "_us"), -1, 1)[:, None]
    spread = np.sqrt(1 - noise.alike - noise.hosts) * own + side * (
        np.sqrt(noise.alike) * speed + np.sqrt(noise.hosts) * of_host
    )
    if noise.kind == "lognormal":
        return 1000 * np.exp(noise.spread * spread)
    figures = 1 + noise.spread * spread[:4]
    if noise.as_rates:
        # Nothing has no speed at all.
        figures[2:] = 1 / np.maximum(1 - noise.spread * spread[2:4], 0.02)
    # Tails spread evenly on a log scale, and wider.
    return np.concatenate([1000 * figures, 1000 * np.exp(2 * noise.spread * spread[4:])])


def _noise(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    return random.standard_t(5, shape) / np.sqrt(5 / 3) if kind == "t" else random.standard_normal(shape)


def table(values: np.ndarray) -> pandas.DataFrame:
    """Figures as the long table."""
    drives = values.shape[1]
    names = np.arange(drives)
    labels = {"host": [f"h{number // DRIVES_A_HOST}" for number in names], "serial": [f"S{number}" for number in names]}
    about = {"run": "r", "model": "M", "firmware": "1", "test": "iops", "cell": "c", "round": None}
    return pandas.DataFrame(
        {
            **{key: np.tile(given, len(METRICS)) for key, given in labels.items()},
            "metric": np.repeat(METRICS, drives),
            "value": values.ravel(),
        }
    ).assign(**about)


def flagged(*groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the figures that are outliers, those that would be without the practical threshold) of a fleet's groups, in the
    order of the long table: what outliers.held says.
    """
    held = [
        robust_statistics.score_leave_one_out(metric, figures)
        for values in groups
        for metric, figures in zip(METRICS, values)
    ]
    z, p, by = (np.concatenate([getattr(each, name) for each in held]) for name in ("z", "p", "by"))
    figures, drives = groups[0].shape
    group = np.repeat(np.arange(len(groups)), drives * figures)
    drive = np.tile(np.arange(drives), figures * len(groups)) + drives * group
    stand = robust_statistics.stand_out(z, p, group, drive)
    return stand & (by > robust_statistics.PRACTICAL), stand


def clean(
    fleets: int,
    drives: int,
    noise: Noise,
    seed: int = 1,
    groups: int = 1,
    figures: int = len(METRICS),
    hosts_too: bool = True,
) -> Rates:
    """Flags in fleets of good drives. groups: of so many drives each; hosts are looked for in the first. figures: of
    METRICS so many, where there are no hosts.
    """
    random = np.random.default_rng(seed)
    drive = host = flags = alone = looked = 0
    for number in range(fleets):
        of_groups = [good(random, drives, noise)[:figures] for _group in range(groups)]
        found, by_chance = flagged(*of_groups)
        drive, flags, alone = drive + found.any(), flags + found.sum(), alone + by_chance.any()
        if hosts_too and number % HOSTS_EVERY == 0:
            looked, host = looked + 1, host + (len(host_effects.effects(outliers.held(table(of_groups[0])))) > 0)
    return Rates(drive / fleets, host / looked if looked else math.nan, flags / fleets, alone / fleets)


def slowed(frame: pandas.DataFrame, which: t.Any, by: float, only: t.Sequence[str] = METRICS[:4]) -> pandas.DataFrame:
    """Drives that are worse by a share in rates and means."""
    worse = which & frame["metric"].isin(only)
    factor = np.where(frame["metric"].str.endswith("_us"), 1 + by, 1 - by)
    return frame.assign(value=np.where(worse, frame["value"] * factor, frame["value"]))


def power(
    fleets: int,
    drives: int,
    noise: Noise,
    by: float,
    seed: int = 1,
    only: t.Sequence[str] = METRICS[:4],
    hosts_too: bool = True,
) -> tuple[float, float]:
    """(share of fleets whose one bad drive is flagged, share whose one bad host is, with nothing else called low)."""
    random = np.random.default_rng(seed)
    drive = host = looked = 0
    for number in range(fleets):
        values = good(random, drives, noise)
        one = slowed(table(values), np.tile(np.arange(drives), len(METRICS)) == 0, by, only)
        drive += bool(flagged(one["value"].to_numpy().reshape(values.shape))[0].reshape(values.shape)[:, 0].any())
        if hosts_too and number % HOSTS_EVERY == 0:
            all_of_it = table(values)
            low = host_effects.effects(outliers.held(slowed(all_of_it, all_of_it["host"] == "h0", by, only)))
            looked, host = looked + 1, host + (set(low["host"]) == {"h0"})
    return drive / fleets, host / max(looked, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drives", type=int, nargs="+", default=[8, 24, 96, 400])
    parser.add_argument("--table", choices=("flags", "power", "limits"))
    asked = parser.parse_args()
    tables = {"flags": flags_table, "power": power_table, "limits": limits_table}
    for name in [asked.table] if asked.table else ("flags", "power"):
        tables[name](asked)


def flags_table(asked: argparse.Namespace) -> None:
    """False flags over fleets of good drives."""
    print(
        "| drives | noise | fleets with a drive flagged | with a host flagged | flags a fleet | without the 5 % "
        "threshold (stated: at most 0.05) |"
    )
    print("|---|---|---|---|---|---|")
    for drives in asked.drives:
        for name, noise in NOISES.items():
            _print_flags(f"{drives}", name, clean(asked.fleets, drives, noise, asked.seed))
    for name in ("normal 3 %", "Student's t, 10 %", "Student's t, 10 %, figures go together"):
        rates = clean(asked.fleets, 24, NOISES[name], asked.seed, groups=GROUPS, hosts_too=False)
        _print_flags(f"{GROUPS} groups of 24", name, rates)
    one = clean(asked.fleets, 24, NOISES["Student's t, 10 %"], asked.seed, figures=1, hosts_too=False)
    _print_flags("24, of one figure", "Student's t, 10 %", one)


def _print_flags(drives: str, noise: str, rates: Rates) -> None:
    host = "" if math.isnan(rates.host) else f"{rates.host:.3f}"
    told = f"{rates.drive:.3f} | {host} | {rates.flags:.3f} | {rates.by_chance_alone:.3f}"
    print(f"| {drives} | {noise} | {told} |", flush=True)


def power_table(asked: argparse.Namespace) -> None:
    """How often one bad drive, or one bad host, is found."""
    effects = (0.05, 0.07, 0.10, 0.15, 0.20, 0.30)
    print("| drives | noise | bad | " + " | ".join(f"{100 * by:.0f} % worse" for by in effects) + " |")
    print("|---|---|---|" + "---|" * len(effects))
    for drives in asked.drives:
        for spread in (0.01, 0.03):
            noise, alike = Noise("normal", spread), Noise("normal", spread, alike=0.9)
            found = [power(asked.fleets, drives, noise, by, asked.seed) for by in effects]
            alone = functools.partial(power, asked.fleets, drives, seed=asked.seed, hosts_too=False)
            rows = {
                "drive": [pair[0] for pair in found],
                "drive, one metric of six": [alone(noise, by, only=METRICS[:1])[0] for by in effects],
                "drive, figures go together": [alone(alike, by)[0] for by in effects],
                "drive, one of figures that go together": [alone(alike, by, only=METRICS[:1])[0] for by in effects],
            }
            rows.update({"host of 4 drives": [pair[1] for pair in found]} if drives > 8 + DRIVES_A_HOST else {})
            for what, shares in rows.items():
                told = " | ".join(f"{share:.2f}" for share in shares)
                print(f"| {drives} | {100 * spread:.0f} % | {what} | {told} |", flush=True)


def limits_table(asked: argparse.Namespace) -> None:
    """How many times as far as the good side goes a good drive of noise of Student's t gets: the limits that flag
    FLAGGED of the fleets, FLAGGED_TOGETHER of them by the figures of a drive together.
    """
    print("| drives | noise | one figure | all figures together |\n|---|---|---|---|")
    for drives in asked.drives:
        for name, noise in NOISES.items():
            if noise.kind == "t":
                random = np.random.default_rng(asked.seed)
                found = np.array([reached(good(random, drives, noise)) for _fleet in range(asked.fleets)])
                alone = np.quantile(found[:, 0], 1 - FLAGGED_ALONE)
                together = np.quantile(np.where(found[:, 0] > alone, np.inf, found[:, 1]), 1 - FLAGGED)
                print(f"| {drives} | {name} | {alone:.2f} | {together:.2f} |", flush=True)


def reached(values: np.ndarray) -> tuple[float, float]:
    """(the farthest figure, the farthest drive by all of its figures) that stands out but for the good side, in times
    of its limit, as a logarithm: what has to be added to `base` and `few` of robust.ALONE and TOGETHER.
    """
    held = [robust_statistics.score_leave_one_out(metric, figures) for metric, figures in zip(METRICS, values)]
    z, p, by = (np.array([getattr(each, name) for each in held]) for name in ("z", "p", "by"))
    stands = (
        robust_statistics.discoveries(p.ravel()).reshape(z.shape)
        & (z > robust_statistics.Z_LIMIT)
        & (by > robust_statistics.PRACTICAL)
    )
    if not stands.any():
        return -np.inf, -np.inf
    one_group = np.zeros(z.shape[1], dtype=int)
    best, good_side, bad_side = robust_statistics.sides(
        z.ravel(), np.tile(np.arange(z.shape[1]), len(METRICS)), z.shape[1]
    )
    alone = robust_statistics.good_limit(best, one_group, robust_statistics.ALONE)[0]
    together = robust_statistics.good_limit(good_side, one_group, robust_statistics.TOGETHER)[0]
    return float(np.log(z[stands].max() / alone)), float(np.log(bad_side[stands.any(axis=0)].max() / together))


if __name__ == "__main__":
    main()
