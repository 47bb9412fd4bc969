# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.run_files import LastFigure, Status
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import queued
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.progress import (
    HostView,
    columns,
    figure,
    lines,
    metric,
    short_name,
    time_left,
)
from ansible_collections.ssdlab.fleet.tests.fixtures.statuses import MEASURING, STATUS

NOTHING = {"metric": None, "value": None, "mean_latency_us": None, "progress": None}
PURGING = {"phase": "purge", "test": "iops", "test_index": 1, "tests": 2, "last": dict(NOTHING, progress=0.421)}
TESTS_ITSELF = {**PURGING, "phase": "self_test", "last": dict(NOTHING, progress=0.6)}
DONE = {"phase": "done", "outcome": "complete"}
REFUSED = {"phase": "done", "outcome": "refused", "message": "mounted on /"}
NOW = datetime.datetime(2026, 11, 23, 14, 2, 11)


def host(name, state="running", drives=(), silent_s=None, problem="", **status):
    entries = [dict(queued(f"{name.upper()}{n}"), **entry) for n, entry in enumerate(drives, 1)]
    return HostView(name, state, base.parse(Status, {**STATUS, "drives": entries, **status}), silent_s, problem)


@pytest.mark.parametrize(
    "seconds, text",
    [
        *[(None, ""), (0, "≤ 0 s"), (39.2, "≤ 40 s"), (90, "≤ 90 s"), (91, "≤ 2 min"), (3540, "≤ 59 min")],
        *[(3541, "≤ 1 h 0 min"), (4300, "≤ 1 h 12 min"), (90000, "≤ 25 h 0 min")],
    ],
)
def test_time_left_is_rounded_up(seconds, text):
    assert time_left(seconds) == text


@pytest.mark.parametrize(
    "last, text",
    [
        (None, ""),
        (NOTHING, ""),
        (dict(NOTHING, progress=0.421), "42 %"),
        (dict(NOTHING, progress=0), "0 %"),
        (dict(NOTHING, metric="write_iops", value=41200.5), "write 41,200 IOPS"),
        (MEASURING["last"], "write 41,200 IOPS, 775.1 µs"),
        (dict(NOTHING, metric="iops", value=0.0), "0 IOPS"),
        (dict(NOTHING, metric="read_mean_latency_us", value=89.12, mean_latency_us=89.12), "read mean 89.12 µs"),
        (dict(NOTHING, metric="write_iops", value=None), ""),
    ],
)
def test_the_last_figure_has_its_unit(last, text):
    assert figure(last and base.parse(LastFigure, last)) == text


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("write_iops", 41200.6, "write 41,201 IOPS"),
        ("bandwidth", 512.3e6, "512.3 MB/s"),
        ("read_p99_9_latency_us", 120.0, "read p99.9 120 µs"),
        ("mean_latency_us", 80.0, "mean 80 µs"),
    ],
)
def test_a_metric_says_direction_and_unit(name, value, text):
    assert metric(name, value) == text


@pytest.mark.parametrize(
    ("round_max", "shown"),
    [
        (25, "round 3 of 25"),
        (3, "round 3 of 3"),
        (2, "round 3 (disturbed ones are measured again; it takes at most 2 others)"),
        (None, "round 3"),
    ],
)
def test_a_round_beyond_the_last_one_says_that_disturbed_ones_are_measured_again(round_max, shown):
    text = lines([host("a", drives=[{**MEASURING, "round_max": round_max}])], NOW)
    assert f"{shown}  " in text[1]


def test_columns_are_aligned_and_the_last_one_is_free():
    rows = [["a", "long cell", "x"], ["bb", "this one ends its row"], ["ccc", "y", "z", "w"]]
    assert columns(rows) == ["  a    long cell  x", "  bb   this one ends its row", "  ccc  y          z  w"]
    assert columns([]) == []


def test_a_small_fleet_is_shown_drive_by_drive():
    hosts = [
        host("a", drives=[MEASURING, PURGING, {}, TESTS_ITSELF, {**TESTS_ITSELF, "last": MEASURING["last"]}]),
        host("b", drives=[DONE, REFUSED], silent_s=95.4, problem="ssh: timed out"),
        host("c", "dead", [MEASURING]),
        HostView("d"),
        HostView("e", "absent"),
    ]
    text = lines(hosts, NOW)
    assert text[0] == (
        "14:02:11  8 drives on 5 hosts: 1 queued, 1 purge, 1 measuring, 2 waiting for a self-test, 1 done, 1 refused, "
        "1 lost, 1 host without an answer, 1 host not asked yet"
    )
    assert [" ".join(line.split()) for line in text[1:]] == [
        "a A1 measuring iops (1 of 2) round 3 of 25 write 41,200 IOPS, 775.1 µs ≤ 1 h 12 min",
        "a A2 purge iops (1 of 2) 42 %",
        "a A3 queued",
        "a A4 waiting for a self-test iops (1 of 2) 40 % left",
        "a A5 waiting for a self-test iops (1 of 2)",
        "b no answer for 1 min 35 s, still trying (ssh: timed out)",
        "b B1 done",
        "b B2 refused: mounted on /",
        (
            "c the host job is gone (killed, or the host was restarted): run the playbook again to restore the host "
            "and continue"
        ),
        "c C1 lost",
        "d not asked yet",
        "e no such run on this host: it was not started",
    ]


FIGURE = {"test": "iops", "outcome": "steady", "metric": "write_iops", "value": 41200.5}
PASSED = {**DONE, "results": [FIGURE, {"test": "scrub", "outcome": "complete", "metric": None, "value": None}]}
FAILED = {**DONE, "results": [FIGURE], "missed": "iops: write_iops is 41200.5 (min 50000)"}
INVALID = {**DONE, "results": [{**FIGURE, "outcome": "not_steady"}]}
BROKEN = {
    **DONE,
    "outcome": "error",
    "message": "fio failed",
    "results": [{**FIGURE, "outcome": "error", "value": None}],
}


def test_a_drive_that_is_done_shows_its_figures_and_what_its_host_makes_of_them():
    small = lines([host("a", drives=[PASSED, FAILED, INVALID, BROKEN])], NOW)
    assert small[0].endswith("3 done (1 pass so far, 1 fail, 1 invalid), 1 error")
    shown = [
        "a A1 pass so far iops write 41,200 IOPS; scrub",
        "a A2 fail iops write 41,200 IOPS iops: write_iops is 41200.5 (min 50000)",
        "a A3 invalid iops not steady write 41,200 IOPS",
        "a A4 error iops error fio failed",
    ]
    assert [" ".join(line.split()) for line in small[1:]] == shown
    large = lines([host("a", drives=[PASSED, FAILED, INVALID, BROKEN]), *[host(f"h{n}") for n in range(20)]], NOW)
    assert [" ".join(line.split()) for line in large[1:]] == shown[1:]


def test_the_end_stays_where_it_is_while_a_step_takes_its_time():
    fills = {**PURGING, "phase": "precondition", "time_left_s": 7200, "later_s": 0}
    fills["time_left_at"] = "2026-11-21T13:00:00.000Z"
    ends = []
    for minutes in (0, 30, 90):
        updated = f"2026-11-21T{13 + minutes // 60}:{minutes % 60:02}:00.000Z"
        ends += lines([host("a", drives=[fills], updated=updated)], NOW + datetime.timedelta(minutes=minutes))
    assert [line.partition("all by ")[2] for line in ends[::2]] == [
        "16:03 (≤ 2 h 0 min)",
        "16:03 (≤ 1 h 30 min)",
        "16:03 (≤ 30 min)",
    ]
    assert ends[-1].endswith("≤ 30 min")


def test_a_large_fleet_is_shown_by_its_sum_and_what_needs_attention():
    well = [host(f"h{n}", drives=[dict(MEASURING, time_left_s=60 * n), {}]) for n in range(20)]
    wrong = [host("bad", drives=[REFUSED, DONE]), host("gone", "dead", [MEASURING]), host("late", "starting", [{}])]
    wrong += [host("mute", silent_s=30, drives=[MEASURING])]
    text = lines([*well, *wrong, HostView("new"), HostView("newer")], NOW)
    assert text[0] == (
        "14:02:11  45 drives on 26 hosts: 21 queued, 21 measuring, 1 done, 1 refused, 1 lost, 1 host without an "
        "answer, "
        "2 hosts not asked yet; slowest ≤ 1 h 12 min"
    )
    assert [line.split()[0] for line in text[1:]] == ["bad", "gone", "late", "mute"]


@pytest.mark.parametrize("count, shown", [(20, 21), (21, 1)])
def test_twenty_hosts_still_show_every_drive(count, shown):
    assert len(lines([host(f"h{n}", drives=[DONE]) for n in range(count)], NOW)) == shown


def test_a_fleet_full_of_trouble_is_cut():
    text = lines([host(f"h{n}", drives=[REFUSED]) for n in range(300)], NOW)
    assert len(text) == 52 and text[-1] == "  … and 250 more lines like these"


@pytest.mark.parametrize(
    "state, message, words",
    [
        ("failed", "fio is gone", "the host job failed: fio is gone"),
        ("stopped", "", "the run was stopped"),
        ("finished", "", None),
    ],
)
def test_the_end_of_a_host_job_is_told_with_its_message(state, message, words):
    text = lines([host("a", state, [DONE], message=message)], NOW)
    assert (text[1].split(maxsplit=1)[1] == words) if words else len(text) == 2


@pytest.mark.parametrize(
    "drive, others, name",
    [
        ("22123A4F5B6C", ["X"], "22123A4F5B6C"),
        ("/dev/shm/ssd1.img", ["/dev/shm/ssd2.img"], "ssd1.img"),
        ("/a/ssd1.img", ["/b/ssd1.img"], "/a/ssd1.img"),
        ("/a/", [], "/a/"),
    ],
)
def test_a_path_is_shortened_where_that_is_clear(drive, others, name):
    assert short_name(drive, [drive, *others]) == name


@pytest.mark.parametrize(
    "seconds, within_s, shown", [(300, 120, True), (119, 120, False), (300, None, False), (-5, 120, False)]
)
def test_a_drive_that_says_nothing_for_too_long_is_told_by_the_hosts_own_clock(seconds, within_s, shown):
    said = datetime.datetime(2026, 11, 21, 13, 0, 0)
    drive = {**MEASURING, "updated": f"{said.isoformat()}.000Z", "news_within_s": within_s}
    heard = (said + datetime.timedelta(seconds=seconds)).isoformat() + ".000Z"
    text = "\n".join(lines([host("a", drives=[drive], updated=heard)], NOW))
    assert ("no news for 5 min 0 s" in text) is shown
    broken = host("a", drives=[dict(drive, updated="yesterday")], updated=heard)
    assert "no news" not in "\n".join(lines([broken], NOW))


@pytest.mark.parametrize("more", [1, 30])
def test_one_host_with_a_thousand_drives_pushes_nobody_away(more):
    """In a small fleet, where every drive is shown, and in a large one, where what needs attention is."""
    flood = host(
        "flood",
        drives=[dict(queued(f"X{number}"), phase="done", outcome="error", message="no") for number in range(1000)],
    )
    honest = [
        host(f"honest{number}", drives=[dict(queued("A1"), phase="done", outcome="error", message="worn")])
        for number in range(more)
    ]
    text = lines([flood, *honest], NOW)
    assert all(any(line.split()[0] == one.host for line in text) for one in honest) and len(text) < 140
    assert sum("flood" in line for line in text) <= 129 and any("more like these" in line for line in text)


@pytest.mark.parametrize(
    ("drives", "parallel", "text"),
    [
        # One after the other: 1 h 20 min and the 2 h of the one that waits.
        ([dict(MEASURING, time_left_s=4300, later_s=500), {"later_s": 7200}], 1, "; all by 17:23 (≤ 3 h 20 min)"),
        # Side by side at most the half of both, and what is left of the longest.
        ([dict(MEASURING, time_left_s=4000, later_s=0), {"later_s": 8000}], 2, "; all by 16:49 (≤ 2 h 47 min)"),
        ([dict(MEASURING, time_left_s=100, later_s=86400)], 1, "; all by Tue 14:04 (≤ 24 h 2 min)"),
        ([dict(MEASURING, time_left_s=0, later_s=864000)], 1, "; all by Thu 03 Dec 14:03 (≤ 240 h 0 min)"),
        ([DONE, dict(MEASURING, time_left_s=60, later_s=0)], 1, "; all by 14:04 (≤ 60 s)"),
        ([dict(MEASURING, later_s=None)], 1, ""),
        ([dict(MEASURING, time_left_s=None, later_s=60)], 1, ""),
        ([dict(MEASURING, later_s=1e300)], 1, ""),
        ([DONE], 1, ""),
    ],
)
def test_the_end_of_the_whole_run_is_told_as_a_clock_time(drives, parallel, text):
    said = lines([host("a", drives=drives, parallel_drives=parallel)], NOW)[0]
    assert said.endswith(text) and ("all by" in said) == bool(text)


def test_the_reads_before_are_part_of_what_is_left_and_what_they_found_is_told():
    def found(drives, left_s, why, state="running"):
        calibration = {"left_s": left_s, "why": why}
        waits = [{"later_s": 600}, {"later_s": 600}]
        return lines([host("a", state, waits, parallel_drives=drives, calibration=calibration)], NOW)

    said = found(1, 3000, "")
    # Drives may have to follow one another: nobody knows yet.
    assert said[0].endswith("(≤ 1 h 10 min)") and "how many drives to measure at the same time (≤ 50 min)" in said[1]
    said = found(2, 0, "all drives together keep their speed")
    assert said[0].endswith("(≤ 15 min)")
    assert "measures 2 drives at the same time: all drives together keep their speed" in said[1]
    assert found(2, 1e300, "all drives together keep their speed")
    assert "at the same time" not in "".join(found(2, 0, "all drives together keep their speed", "finished"))
