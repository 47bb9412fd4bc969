# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import headline, reason_matching

# Names that a test, a drive, a host or a cell may have: the words by which reasons are told apart, alone and joined.
WORDS = sorted({word for kind in reason_matching.KINDS for word in re.findall(r"[a-z_]+", kind.says.lower())})
JOINED = sorted({"-".join(re.findall(r"[a-z]+", kind.says.lower()))[:40] for kind in reason_matching.KINDS})
NAMES = [*WORDS, *JOINED]

# What the judge and hosts say, and the cause of it, whatever things are called. D: drive, H: host, T: test.
REASONS = [
    ("invalid", "T: host busy in 31 of 60 rounds (round 1, T: fio waited); too few others are left", "host busy"),
    ("invalid", "T: interrupted after 3 rounds: the run was stopped", "stopped"),
    ("invalid", "T: interrupted after 3 rounds: the host job failed with OSError: /T/D", "host job failed"),
    ("invalid", "T: steady state was not attained after 9 rounds: range 31 % > 20 %", "not steady"),
    (
        "invalid",
        "T: write_iops has no figure (criterion T write_iops min 5); check why the test gave none",
        "no figure",
    ),
    (
        "invalid",
        "T: too few peers: 3 like it, 8 are needed (criterion T write_iops min_of_median 0.9)",
        "too few peers",
    ),
    ("invalid", "T: the fleet was not compared (criterion T write_iops min_of_median 0.9)", "fleet not compared"),
    ("invalid", "T: the baseline H has no valid T write_iops of this drive (criterion T)", "no baseline"),
    ("invalid", "T: not measured: in test T before it another process discarded 7 MiB", "the test before failed"),
    (
        "invalid",
        "T: not measured: the test before it, T, did not complete its purge and fill, so what the drive holds is "
        "unknown",
        "the test before failed",
    ),
    (
        "invalid",
        "T: it builds on the drive state that test T leaves, and that test is invalid",
        "the test before failed",
    ),
    ("invalid", "T: no array was made: its member D was refused: opened (x)", "no array"),
    ("invalid", "the campaign of D on H was interrupted: stopped by stop.yml", "stopped"),
    (
        "invalid",
        "its record has the model D, but preflight saw T; check which drive was measured",
        "another drive was measured",
    ),
    (
        "invalid",
        "T: read_p99_latency_us is unknown: host busy in 4 of 9 rounds (round 1, T: x); the 7 I/Os of the others are "
        "too few, 9 are needed for 10 beyond it (criterion T)",
        "host busy",
    ),
    (
        "invalid",
        "T: read_p99_latency_us is unknown: 7 I/Os in the window are too few, 9 are needed for 10 beyond it "
        "(criterion T)",
        "too few I/Os for a percentile",
    ),
    ("error", "T: the test ended with an error after 3 rounds: fio ended with exit code 1: T", "fio failed"),
    ("error", "T: the test ended with an error: D cannot be opened exclusively: T", "a test failed"),
    ("error", "the campaign of D on H ended with an error: T: fio ended with exit code 1", "fio failed"),
    ("error", "the campaign of D on H ended with an error: OSError: no space", "the campaign failed"),
    ("error", "the campaign of D on H ended with an error: the drive hangs: fio waits for it", "the drive hangs"),
    ("error", "T: the test ended with an error: the drive did no I/O for 600 s: it hangs", "the drive hangs"),
    ("error", "T: the test ended with an error: no answer in 60 s from D", "the drive hangs"),
    ("error", "T: the test ended with an error: refused: opened (D is open)", "refused by the guard (opened)"),
    ("error", "criterion T write_iops min 5 names no test of this drive's plan (T)", "criterion without a test"),
    ("error", "criterion T write_iops min 5 has no figure to compare with: T gave no x", "criterion without a figure"),
    ("error", "criterion T write_iops: min is not a number", "criterion can't be applied"),
    ("not_tested", "D on H was left out: mounted: it is mounted: /T", "left out (mounted)"),
    ("not_tested", "D on H was left out: drive pci-0:1:H: mounted: it is mounted: /T", "left out (mounted)"),
    ("not_tested", "D on H was left out: the host is unreachable: ssh H", "host unreachable"),
    ("not_tested", "D on H was refused on H: opened (it is open in T)", "refused (opened)"),
    ("not_tested", "T: not measured: D was refused on H: opened (it is open in T)", "refused (opened)"),
    ("not_tested", "nothing was collected from H: run collect.yml with this ssd_run_id", "not collected"),
    ("not_tested", "H had not finished when its results were collected; run watch.yml", "not finished"),
    ("not_tested", "H was unreachable: timed out", "host unreachable"),
    ("not_tested", "the run failed on H: ssdlab.fleet.preflight: D", "host failed"),
    ("not_tested", "H reported no result for D", "no result"),
    ("not_tested", "T: not measured: H reported no result for D", "no result"),
    ("not_tested", "the campaign of D on H was interrupted: T", "stopped"),
    (
        "not_tested",
        "criterion T write_iops min 5 was not judged: ssd_time_budget left out T",
        "left out by the time budget",
    ),
    ("not_tested", "T: the test has not finished (outcome 'x')", "not finished"),
]


def named(reason, name):
    """A reason of a drive of which every name is this one."""
    return re.sub(r"\b[THD]\b", name, reason)


@pytest.mark.parametrize(("verdict", "reason", "cause"), REASONS, ids=[reason[:60] for _v, reason, _c in REASONS])
def test_no_name_makes_another_cause(verdict, reason, cause):
    wrong = {
        name: told
        for name in ["S1", *NAMES]
        for judged in [{"verdict": verdict, "reasons": [named(reason, name)], "tests": [{"test": name}]}]
        if (told := headline.causes(judged)) != [cause]
    }
    assert wrong == {}


@pytest.mark.parametrize("name", NAMES)
def test_no_test_s_name_makes_another_cause_of_a_failed_drive(name):
    for reason, cause in (
        ("write_iops 352 < 500 (criterion {0} write_iops min 500)", "write IOPS below its limit"),
        ("it counted 3 more media errors (media_errors, max 0)", "media errors"),
        ("2 blocks of 4,096 bytes not read back as written (2 stale)", "wrong blocks"),
    ):
        told = f"{name}: {reason.format(name)}"
        assert headline.causes({"verdict": "fail", "reasons": [told], "tests": [{"test": name}]}) == [cause]
