# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.grouped_reasons import DriveReasons, grouped

BUSY = "iops: host busy in {0} of {1} rounds (round {2}: fio waited for {3} % of the time); too few others are left"


def reasons(host, drive, texts, verdict=""):
    return DriveReasons(host, drive, texts, verdict, ("iops", "latency"))


@pytest.mark.parametrize("count", [6, 96])
def test_a_cause_that_many_drives_share_is_told_once(count):
    drives = [reasons(f"h{n % 4}", f"S{n}", [BUSY.format(n, 9, n, n / 7)], "invalid") for n in range(count)]
    found = grouped(drives)
    assert found.shared == [f"[1] {count} drives, the first is S0 on h0: {BUSY.format(0, 9, 0, 0.0)}"]
    assert set(map(tuple, found.own.values())) == {("host busy [1]",)} and len(found.own) == count


def test_what_one_drive_alone_has_stands_beside_it():
    found = grouped([reasons("h1", "S1", ["worn"]), reasons("h1", "S2", ["slow"])])
    assert found.shared == [] and found.own == {("h1", "S1"): ["worn"], ("h1", "S2"): ["slow"]}


def test_names_of_drives_and_hosts_make_no_other_reason():
    texts = ["S1 on h1 was left out: mounted: /dev/a1", "S2 on h2 was left out: mounted: /dev/a2"]
    found = grouped([reasons("h1", "S1", texts[:1]), reasons("h2", "S2", texts[1:])])
    assert found.shared == [f"[1] 2 drives, the first: {texts[0]}"]


def test_reasons_that_are_alike_to_the_letter_name_no_first_one():
    found = grouped([reasons("h", name, ["no criterion applied"]) for name in "ab"])
    assert found.shared == ["[1] 2 drives: no criterion applied"]


def test_one_drive_with_one_kind_twice_shares_it_with_nobody():
    found = grouped([reasons("h", "a", ["limited in 3 of 9 rounds", "limited in 4 of 9 rounds"])])
    assert found.shared == [] and found.own["h", "a"] == ["limited in 3 of 9 rounds", "limited in 4 of 9 rounds"]


def test_another_cell_is_another_reason():
    """Its name has numbers too."""
    texts = {cell: f"iops: {cell} p99_us 900 > 500" for cell in ("rand-4k-r100", "rand-8k-r100")}
    found = grouped([reasons("h", "a", [texts["rand-4k-r100"]]), reasons("h", "b", [texts["rand-8k-r100"]])])
    assert found.shared == [] and found.own["h", "b"] == [texts["rand-8k-r100"]]


def test_other_words_are_another_reason():
    drives = [reasons("h", name, [why]) for name, why in (("a", "mounted on /x"), ("b", "mounted on /y"))]
    assert grouped(drives).shared == []


def test_a_cause_that_each_drive_tells_in_other_words_is_one():
    words = ["fio's threads used 98 % of a CPU each", "the hypervisor took 9 %", "fio waited"]
    texts = [f"iops: host busy in {n} of 9 rounds (round {n}: {why}); too few" for n, why in enumerate(words, start=1)]
    found = grouped([reasons("h1", f"S{n}", [text], "invalid") for n, text in enumerate(texts)])
    assert found.shared == [f"[1] 3 drives, the first is S0 on h1: {texts[0]}"]


def test_the_same_cause_in_another_test_is_another_reason():
    texts = [f"{test}: host busy in 3 of 9 rounds (round 1: fio waited); too few" for test in ("iops", "latency")]
    assert grouped([reasons("h1", f"S{n}", [text], "invalid") for n, text in enumerate(texts)]).shared == []


def test_errors_in_other_words_stay_apart():
    texts = ["iops: the test ended with an error: no space left", "iops: the test ended with an error: bad magic"]
    assert grouped([reasons("h1", f"S{n}", [text], "error") for n, text in enumerate(texts)]).shared == []
