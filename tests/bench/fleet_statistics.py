# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a fleet of good drives is flagged, and how surely a bad drive or host is: the tables of docs/fleet.md.

From the repository's root:

    python tests/bench/fleet_statistics.py [--fleets 1000] [--seed 1] [--drives 8 24 96 400] [--table flags]

--table limits prints what the constants BEYOND_GOOD and BEYOND_GOOD_TOGETHER of robust.py were chosen from.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import typing as t

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "playbooks", "collections"))

import numpy as np
import pandas

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.fleet import hosts, outliers, robust

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
# (distribution, spread, how much of it all figures of a drive have in common)
NOISES = {
    "normal 1 %": ("normal", 0.01, 0.0),
    "normal 3 %": ("normal", 0.03, 0.0),
    "normal 10 %": ("normal", 0.10, 0.0),
    "lognormal 3 %": ("lognormal", 0.03, 0.0),
    "lognormal 10 %": ("lognormal", 0.10, 0.0),
    "lognormal 30 %": ("lognormal", 0.30, 0.0),
    "Student's t, 5 d.f., 3 %": ("t", 0.03, 0.0),
    "Student's t, 5 d.f., 10 %": ("t", 0.10, 0.0),
    "Student's t, 3 %, figures go together": ("t", 0.03, 0.9),
    "Student's t, 10 %, figures go together": ("t", 0.10, 0.9),
}
# Of good fleets with noise of Student's t: how many may be flagged in all, and by a drive's figures together.
FLAGGED, FLAGGED_TOGETHER = 0.05, 0.04


class Rates(t.NamedTuple):
    """Shares of the fleets with any drive and any host flagged, mean number of flags, and share with a drive flagged
    but for the practical threshold.
    """

    drive: float
    host: float
    flags: float
    by_chance_alone: float


def good(random: np.random.Generator, drives: int, kind: str, noise: float, alike: float = 0.0) -> np.ndarray:
    """The figures of one fleet of good drives: a row a metric, a column a drive. alike: the share of the variance that
    is the drive's speed, which all of its figures tell.
    """
    own = _noise(random, kind, (len(METRICS), drives))
    speed = _noise(random, kind, (1, drives)) if alike else np.zeros((1, drives))
    side = np.where(np.char.endswith(METRICS, "_us"), -1, 1)[:, None]
    spread = np.sqrt(1 - alike) * own + np.sqrt(alike) * side * speed
    if kind == "lognormal":
        return 1000 * np.exp(noise * spread)
    # Tails spread evenly on a log scale, and wider.
    return np.concatenate([1000 * (1 + noise * spread[:4]), 1000 * np.exp(2 * noise * spread[4:])])


def _noise(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    return random.standard_t(5, shape) / np.sqrt(5 / 3) if kind == "t" else random.standard_normal(shape)


def fleet(random: np.random.Generator, drives: int, kind: str, noise: float) -> pandas.DataFrame:
    """The long table of one fleet of good drives."""
    return table(good(random, drives, kind, noise))


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


def flagged(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the figures that are outliers, those that would be without the practical threshold), in the order of the long
    table: what outliers.held says.
    """
    held = [robust.hold(metric, figures) for metric, figures in zip(METRICS, values)]
    z, p, by = (np.concatenate([getattr(each, name) for each in held]) for name in ("z", "p", "by"))
    stand = robust.stand_out(z, p, np.zeros(len(z), dtype=int), np.tile(np.arange(values.shape[1]), len(METRICS)))
    return stand & (by > robust.PRACTICAL), stand


def clean(fleets: int, drives: int, kind: str, noise: float, seed: int = 1, alike: float = 0.0) -> Rates:
    """Flags in fleets of good drives."""
    random = np.random.default_rng(seed)
    drive = host = flags = alone = looked = 0
    for number in range(fleets):
        values = good(random, drives, kind, noise, alike)
        found, by_chance = flagged(values)
        drive, flags, alone = drive + found.any(), flags + found.sum(), alone + by_chance.any()
        if number % HOSTS_EVERY == 0:
            looked, host = looked + 1, host + (len(hosts.effects(outliers.held(table(values)))) > 0)
    return Rates(drive / fleets, host / looked, flags / fleets, alone / fleets)


def slowed(frame: pandas.DataFrame, which: t.Any, by: float, only: t.Sequence[str] = METRICS[:4]) -> pandas.DataFrame:
    """Drives that are worse by a share in rates and means."""
    worse = which & frame["metric"].isin(only)
    factor = np.where(frame["metric"].str.endswith("_us"), 1 + by, 1 - by)
    return frame.assign(value=np.where(worse, frame["value"] * factor, frame["value"]))


def power(
    fleets: int,
    drives: int,
    noise: float,
    by: float,
    seed: int = 1,
    only: t.Sequence[str] = METRICS[:4],
    kind: str = "normal",
    alike: float = 0.0,
    hosts_too: bool = True,
) -> tuple[float, float]:
    """(share of fleets whose one bad drive is flagged, share whose one bad host is, with nothing else called low)."""
    random = np.random.default_rng(seed)
    drive = host = looked = 0
    for number in range(fleets):
        values = good(random, drives, kind, noise, alike)
        one = slowed(table(values), np.tile(np.arange(drives), len(METRICS)) == 0, by, only)
        drive += bool(flagged(one["value"].to_numpy().reshape(values.shape))[0].reshape(values.shape)[:, 0].any())
        if hosts_too and number % HOSTS_EVERY == 0:
            all_of_it = table(values)
            low = hosts.effects(outliers.held(slowed(all_of_it, all_of_it["host"] == "h0", by, only)))
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
        for name, (kind, noise, alike) in NOISES.items():
            rates = clean(asked.fleets, drives, kind, noise, asked.seed, alike)
            print(
                (
                    f"| {drives} | {name} | {rates.drive:.3f} | {rates.host:.3f} | {rates.flags:.3f} | "
                    f"{rates.by_chance_alone:.3f} |"
                ),
                flush=True,
            )


def power_table(asked: argparse.Namespace) -> None:
    """How often one bad drive, or one bad host, is found."""
    effects = (0.05, 0.07, 0.10, 0.15, 0.20, 0.30)
    print("| drives | noise | bad | " + " | ".join(f"{100 * by:.0f} % worse" for by in effects) + " |")
    print("|---|---|---|" + "---|" * len(effects))
    for drives in asked.drives:
        for noise in (0.01, 0.03):
            found = [power(asked.fleets, drives, noise, by, asked.seed) for by in effects]
            alone = functools.partial(power, asked.fleets, drives, noise, seed=asked.seed, hosts_too=False)
            one = [alone(by, only=METRICS[:1])[0] for by in effects]
            alike = [alone(by, alike=0.9)[0] for by in effects]
            rows = {"drive": [pair[0] for pair in found], "drive, figures go together": alike}
            rows["drive, one metric of six"] = one
            rows.update({"host of 4 drives": [pair[1] for pair in found]} if drives > 8 + DRIVES_A_HOST else {})
            for what, shares in rows.items():
                print(
                    f"| {drives} | {100 * noise:.0f} % | {what} | "
                    + " | ".join(f"{share:.2f}" for share in shares)
                    + " |",
                    flush=True,
                )


def limits_table(asked: argparse.Namespace) -> None:
    """How many times as far as the good side goes a good drive of noise of Student's t gets: the limits that flag
    FLAGGED of the fleets, FLAGGED_TOGETHER of them by the figures of a drive together.
    """
    print("| drives | noise | one figure | all figures together |\n|---|---|---|---|")
    for drives in asked.drives:
        for name, noise in NOISES.items():
            if noise[0] == "t":
                random = np.random.default_rng(asked.seed)
                found = np.array([reached(good(random, drives, *noise)) for _fleet in range(asked.fleets)])
                together = np.quantile(found[:, 1], 1 - FLAGGED_TOGETHER)
                alone = np.quantile(np.where(found[:, 1] > together, np.inf, found[:, 0]), 1 - FLAGGED)
                print(f"| {drives} | {name} | {alone:.2f} | {together:.2f} |", flush=True)


def reached(values: np.ndarray) -> tuple[float, float]:
    """(the farthest figure, the farthest drive by all of its figures) that stands out but for the good side, in times
    of what that reaches.
    """
    held = [robust.hold(metric, figures) for metric, figures in zip(METRICS, values)]
    z, p, by = (np.array([getattr(each, name) for each in held]) for name in ("z", "p", "by"))
    stands = robust.discoveries(p.ravel()).reshape(z.shape) & (z > robust.Z_LIMIT) & (by > robust.PRACTICAL)
    if not stands.any():
        return 0.0, 0.0
    one_group = np.zeros(z.shape[1], dtype=int)
    best, good_side, bad_side = robust.sides(z.ravel(), np.tile(np.arange(z.shape[1]), len(METRICS)), z.shape[1])
    alone, together = (robust.good_limit(side, one_group, (1.0, 0.0))[0] for side in (best, good_side))
    return float(z[stands].max() / alone), float(bad_side[stands.any(axis=0)].max() / together)


if __name__ == "__main__":
    main()
