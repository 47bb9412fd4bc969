# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of shipped plans, scaled by the keys that docs/workloads.md names, and played from the playbook to the report
on a simulated drive whose true figures are known (scripts/simulator/model.py).
"""

from __future__ import annotations

import html
import math
import re
import time

import simulated_ssd as simulator
import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_library import SHIPPED_DIR
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

MIB = 1 << 20
SIZE = 16 * MIB
# For a suite of many fills.
SMALL_DRIVE = 8 * MIB
# So few I/Os a second that a machine without a free CPU keeps up.
WRITES, READS = 100, 300
WRITE_BANDWIDTH, READ_BANDWIDTH = 8 * MIB, 16 * MIB
DRIVE = {
    "size_bytes": SIZE,
    "fresh_iops": WRITES,
    "steady_iops": WRITES,
    "read_iops": READS,
    "write_bandwidth": WRITE_BANDWIDTH,
    "read_bandwidth": READ_BANDWIDTH,
    "noise_pct": 0,
}
# A window as soon as there can be one; a busy machine gets a few more rounds.
SOON = {"window": 3, "sample_every": 1, "min_capacity_multiple": 0, "confirm_windows": 0, "settle_s": 0}
ROUNDS = {"max": 12, "capacity_multiple": None, "time_limit_s": None}
SETTLED = {"steady_state": SOON, "rounds": ROUNDS}
ONCE = {**ROUNDS, "max": 1}
LOAD = {"threads": 1, "queue_depth": 4}
# Two fills in place of hours of small writes: the drive is as worn.
WORN = {"passes": 2}


def written(name, kind="plans"):
    """A shipped plan, or test, as it is written."""
    return yaml.safe_load((SHIPPED_DIR / kind / f"{name}.yml").read_text(encoding="utf-8"))


def names(plan):
    """What the tests of a shipped plan are called as bases, in its order."""
    return [each if isinstance(each, str) else each.get("name", each.get("base")) for each in written(plan)]


def scaled(plan, test, /, **keys):
    """A test of a shipped plan with other values, as a site writes it."""
    return {"base": f"{plan}/{test}", **keys}


def load(block_size, read_pct, access="random", runtime_s=1, **keys):
    """A cell of a second under a small load."""
    return {"access": access, "block_size": block_size, "read_pct": read_pct, **LOAD, "runtime_s": runtime_s, **keys}


SMALL_WRITES = load("4KiB", 0)


class Played:
    """What a run says of its only drive. tests: of summary.json, by name; seconds: how long the play took."""

    def __init__(self, site, seconds):
        self.summary, self.seconds = site.summary(), seconds
        documents.validate(self.summary, "summary")
        self.tests = {test["test"]: test for test in self.summary["drives"][0]["tests"]}
        pages = sorted((site.results).glob("*/report/**/*.html"))
        text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
        sections = re.findall(r'<section class="test">.*?</section>', text, re.DOTALL)
        self._sections = {re.search(r"<code>([^<]+)</code>", one)[1]: html.unescape(one) for one in sections}

    def cells(self, name):
        """The figures of each cell of a test, streams too, in the page's table: {cell: {iops, mb_s, mean_us}}."""
        rows = re.findall(r'scope="row">((?:seq|rand|jobs)-[^<]+)</th>((?:<td>[^<]*</td>){4})', self.page(name))
        figures = {cell: re.findall(r"<td>([^<]*)</td>", texts) for cell, texts in rows}
        return {cell: dict(zip(("iops", "mb_s", "mean_us"), map(number, texts))) for cell, texts in figures.items()}

    def page(self, name):
        """The section of a test on the drive's page, as HTML."""
        return self._sections[name]

    def table(self, name, caption):
        """The texts of a table of a test, row by row, by the beginning of its caption."""
        figures = re.findall(r"<figcaption>(.*?)</figcaption>(.*?)</figure>", self.page(name), re.DOTALL)
        (one,) = [body for said, body in figures if said.startswith(caption)]
        rows = re.findall(r"<tr>(.*?)</tr>", one.partition("<tbody>")[2], re.DOTALL)
        return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]

    def metric(self, test, name):
        return self.tests[test]["metrics"].get(name)

    def untold(self, name, *texts):
        """What a page lacks: that the test is not one of its source, and these texts."""
        page = self.page(name)
        told = re.search(r"changed in ([a-z, ]+): not a result of that source", page)
        return [f"{name}: the page lacks {text!r}" for text in texts if text not in page] + (
            [] if told else [f"{name}: the page does not say that it departs from its source"]
        )

    def bad(self):
        """Of each test that did not pass: its name, verdict and reasons."""
        return [
            (name, test["verdict"], test["reasons"]) for name, test in self.tests.items() if test["verdict"] != "pass"
        ]


def number(text):
    """What a table of the page shows, None for a dash."""
    return None if text == "–" else float(text.replace(",", ""))


def play(site, folder, tests, figures, **variables):
    """Qualify a new simulated drive by these tests."""
    folder.mkdir()
    began = time.monotonic()
    with simulator.simulated_ssd(folder / "drives", "ssd", simulator.model_plugin(**{**DRIVE, **figures})) as made:
        site.hosts = {"server": {"ssd_drives": [{"backing_file": made["backing_file"]}]}}
        site.results = folder / "results"
        given = {"ssd_plan": tests, "ssd_criteria": [], "ssd_results_dir": str(site.results), "ssd_look_s": 1}
        site.vars.update({**given, **variables})
        code, output = site.play("qualify")
    assert code in (0, 2) and "could not be planned" not in output, output[-4000:]
    assert list(site.results.glob("*/report/summary.json")), output[-4000:]
    return Played(site, time.monotonic() - began)


def wrong_when_played(site, folder, tests, figures, problems_of, **variables):
    """Return what is wrong with these tests once they are played: those that did not pass, or what `problems_of`
    finds.
    """
    played = play(site, folder / "played", tests, figures, **variables)
    print(f"{len(played.tests)} tests in {played.seconds:.0f} s")
    return played.bad() or problems_of(played)


def unlike(pairs):
    """Of {what: (seen, true)} those that differ."""
    return [(name, seen, true) for name, (seen, true) in pairs.items() if seen != true]


def slowed(passes, cost, scattered, active=1.0):
    """The share of its rate that a stream keeps over scattered data, which it gathers as it goes, in the time that
    takes `passes` of the drive otherwise: to write the share x of the drive takes x + cost * scattered * (x - x^2 / 2a)
    of the time of a pass (scripts/simulator/model.py). active: a, the share of the drive that it goes over, at most
    once.
    """
    more = cost * scattered
    written_share = active * (1 + more - math.sqrt((1 + more) ** 2 - 2 * more * passes / active)) / more
    return written_share / passes
