# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import sampler
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import samples

FIRST = samples.sample(aer={"a": {"correctable": 1, "nonfatal": 0, "fatal": 0}})
NOTHING = replace(
    FIRST,
    temperature_c=None,
    critical_warning=None,
    warning_temp_min=None,
    critical_temp_min=None,
    throttle_counts=None,
    throttle_s=None,
    link_speed_gts=None,
    link_width=None,
    aer={},
)


@pytest.mark.parametrize(
    "change, disturbs, told",
    [
        ({}, [], []),
        ({"temperature_c": 69, "media_errors": 1}, [], []),
        (
            {"throttle_counts": {"t1": 4, "t2": 0}},
            ["it was throttled by thermal management 1: 1 more transitions, 0 s more"],
            ["it was throttled by thermal management 1: 1 more transitions, 0 s more"],
        ),
        (
            {"throttle_s": {"t1": 100, "t2": 7}},
            ["it was throttled by thermal management 2: 0 more transitions, 7 s more"],
            ["it was throttled by thermal management 2: 0 more transitions, 7 s more"],
        ),
        ({"warning_temp_min": 6}, [], ["it was above its warning temperature for 1 min more"]),
        (
            {"critical_warning": 0x06},
            [],
            ["it warns: its reliability is degraded", "it warns: the temperature is beyond a threshold"],
        ),
        ({"link_width": 2}, ["its link fell from 16 GT/s x4 to 16 GT/s x2"], []),
        ({"link_speed_gts": 2.5}, ["its link fell from 16 GT/s x4 to 2.5 GT/s x4"], []),
        ({"link_speed_gts": None, "link_width": None}, ["its link of 16 GT/s x4 can no longer be seen"], []),
        ({"link_speed_gts": 32.0}, [], []),
        ({"link_width": 8}, [], []),
        (
            {"aer": {"a": {"correctable": 4, "nonfatal": 0, "fatal": 0}}},
            [],
            ["PCI Express errors rose by 3 correctable at a"],
        ),
        (
            {"aer": {"a": {"correctable": 1, "nonfatal": 2, "fatal": 0}}},
            ["PCI Express errors rose by 2 nonfatal at a"],
            ["PCI Express errors rose by 2 nonfatal at a"],
        ),
        ({"aer": {"a": FIRST.aer["a"], "b": {"correctable": 9, "nonfatal": 0, "fatal": 0}}}, [], []),
        (vars(NOTHING), ["its link of 16 GT/s x4 can no longer be seen"], []),
    ],
)
def test_what_disturbs_the_rounds_between_two_samples_and_what_is_told(change, disturbs, told):
    now = replace(FIRST, **change)
    assert list(sampler.disturbed(FIRST, FIRST, now).values()) == disturbs
    assert list(sampler.remarks(FIRST, now).values()) == told
    # What is over, or was told, disturbs no longer; a link does until it is back.
    again = list(sampler.disturbed(FIRST, now, now).values())
    assert again == [text for text in disturbs if "link" in text]
    back = [text for text in sampler.disturbed(FIRST, now, FIRST).values() if "were reset" not in text]
    assert back == again


def test_counters_that_were_reset_between_two_samples_disturb_as_nobody_knows_what_is_new():
    before = replace(FIRST, aer={"a": {"correctable": 9, "nonfatal": 4, "fatal": 0}})
    now = replace(FIRST, aer={"a": {"correctable": 9, "nonfatal": 2, "fatal": 0}})
    (text,) = sampler.disturbed(before, before, now).values()
    assert text.startswith("the counters of PCI Express errors at a fell")
    assert sampler.disturbed(before, now, now) == {}


def test_what_was_never_known_is_not_compared():
    for now in (NOTHING, replace(FIRST, critical_warning=0)):
        assert sampler.disturbed(NOTHING, NOTHING, now) == sampler.remarks(NOTHING, now) == {}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (0x04, 0x04, []),
        (0x04, 0x05, ["it warns: the spare is below its threshold"]),
        (0x02, 0x02, ["it warns: the temperature is beyond a threshold"]),
    ],
)
def test_a_warning_that_preflight_let_pass_is_not_told_again_but_heat_is(before, after, told):
    one, other = (replace(FIRST, critical_warning=bits) for bits in (before, after))
    assert sampler.lasting(one, other) == sampler.disturbed(one, one, other) == {}
    assert list(sampler.remarks(one, other).values()) == told


@pytest.fixture
def nvme(fake):
    """A drive on PCI Express whose log can be changed."""
    path = fake.pci("0000:00:01.0", bridge=True, aer=(0, 0, 0)) and fake.pci(
        "0000:00:01.0", "0000:01:00.0", aer=(0, 0, 0), current_link_speed="16.0 GT/s PCIe", current_link_width="4"
    )
    block = fake.disk("nvme0n1", "259:0", path + "/nvme/nvme0")
    fake.link(block + "/device", path + "/nvme/nvme0")
    throttled = {
        "thm_temp1_trans_count": 0,
        "thm_temp2_trans_count": 0,
        "thm_temp1_total_time": 0,
        "thm_temp2_total_time": 0,
    }
    fake.told = {"critical_warning": 0, "temperature": 313, **throttled}

    def say(**values):
        fake.told.update(values)
        fake.answers["nvme smart-log"] = (0, json.dumps(fake.told), "")

    fake.say, fake.function = say, path
    say()
    return fake


def watch(host, interval_s=0.01, transport="nvme", io_cpus=None, note=None):
    records = []
    made = sampler.Sampler(
        host,
        lambda: Identity(transport=transport, path="/dev/nvme0n1"),
        note or (lambda event, **fields: records.append(fields)),
        interval_s,
        lambda: io_cpus,
    )
    return made, records


def until(true, seconds=60):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_one_sample_before_one_after_and_one_each_interval(nvme):
    made, records = watch(nvme)
    with made:
        until(lambda: len(records) >= 4)
    assert made.of_all == {} and records[0]["temperature_c"] == made.hottest_c == 40 and records[0]["link_width"] == 4
    assert set(records[0]["aer"]) == {"0000:00:01.0", "0000:01:00.0"} and records[0]["seconds"] < 5
    ended = len(records)
    time.sleep(0.05)
    assert len(records) == ended and not [thread for thread in threading.enumerate() if thread is made._thread]


@pytest.mark.parametrize("interval_s", [0, 0.01])
def test_what_comes_and_goes_is_of_the_time_in_which_it_did(nvme, interval_s):
    made, records = watch(nvme, interval_s)

    def look():
        if interval_s:
            seen = len(records)
            until(lambda: len(records) > seen + 1)
        else:
            made._look()

    with made:
        assert made.since_last() == {}
        nvme.put(nvme.function + "/current_link_width", "1\n")
        nvme.say(critical_warning=4, thm_temp1_trans_count=1, temperature=350)
        look()
        nvme.put(nvme.function + "/current_link_width", "4\n")
        nvme.say(critical_warning=0, temperature=313)
        assert list(made.since_last().values()) == [
            "it was throttled by thermal management 1: 1 more transitions, 0 s more",
            "its link fell from 16 GT/s x4 to 16 GT/s x1",
        ]
        assert made.since_last() == {}
        nvme.say(thm_temp1_trans_count=3)
        assert list(made.since_last().values()) == [
            "it was throttled by thermal management 1: 2 more transitions, 0 s more"
        ]
    assert list(made.of_all.values()) == ["it warns: its reliability is degraded"] and made.hottest_c == 77
    assert made.warned == 4


def test_minutes_above_the_critical_temperature_disturb_all_of_it(nvme):
    """A minute that is counted may have begun a round before."""
    nvme.say(critical_comp_time=0)
    made, _records = watch(nvme, interval_s=0)
    with made:
        nvme.say(critical_comp_time=2)
        assert made.since_last() == {}
    assert list(made.of_all.values()) == ["it was above its critical temperature for 2 min more"]


def test_what_a_look_that_failed_did_not_tell_the_next_one_does(nvme):
    """The drive that throttles is also the one that gives no answer in time."""
    made, _records = watch(nvme, interval_s=0)
    with made:
        before, nvme.answers["nvme smart-log"] = dict(nvme.answers), (1, "", "Device or resource busy")
        nvme.answers["smartctl"] = (127, "", "")
        nvme.told.update(thm_temp1_trans_count=5, thm_temp1_total_time=300)
        assert made.since_last() == {}
        nvme.answers.update(before)
        nvme.say()
        assert list(made.since_last().values()) == [
            "it was throttled by thermal management 1: 5 more transitions, 300 s more"
        ]


def test_a_link_is_compared_with_what_it_was_before_the_drives_first_test(nvme):
    baseline = samples.sample(link_width=8)
    identity = Identity(transport="nvme", path="/dev/nvme0n1")
    made = sampler.Sampler(
        nvme, lambda: identity, lambda event, **fields: None, 0, lambda: None, baseline=lambda: baseline
    )
    with made:
        assert list(made.since_last().values()) == ["its link fell from 16 GT/s x8 to 16 GT/s x4"]


@pytest.mark.parametrize("transport", ["nvme", "sata"])
def test_a_health_that_can_no_longer_be_read_at_the_end_makes_the_test_invalid(nvme, transport):
    """A look in between that fails does not: what it missed, the counters of the last one tell."""
    nvme.answers["smartctl"] = (0, json.dumps({"smart_status": {"passed": True}}), "")
    made, records = watch(nvme, transport=transport)
    with made:
        before, nvme.answers["nvme smart-log"], nvme.answers["smartctl"] = (
            dict(nvme.answers),
            (1, "", "Device or resource busy"),
            (127, "", ""),
        )
        seen = len(records)
        until(lambda: len(records) > seen + 1)
        nvme.answers.update(before)
    assert made.of_all == {}
    made, records = watch(nvme, transport=transport)
    with made:
        nvme.answers["nvme smart-log"], nvme.answers["smartctl"] = (1, "", "Device or resource busy"), (127, "", "")
    assert made.of_all["unread"].startswith(
        "its health could not be read at the end, so it is unknown whether it was throttled: "
    )


def test_a_health_that_could_never_be_read_is_not_missed():
    assert (
        sampler.unread(
            replace(NOTHING, error="smartctl is not installed"), replace(NOTHING, error="smartctl is not installed")
        )
        == {}
    )
    assert sampler.unread(None, replace(FIRST, error="x")) == sampler.unread(FIRST, FIRST) == {}


def test_counters_that_only_nvme_cli_tells_are_missed_at_the_end_too(nvme):
    made, _records = watch(nvme, interval_s=60)
    with made:
        nvme.answers["nvme smart-log"] = (1, "", "Device or resource busy")
        nvme.answers["smartctl"] = (
            0,
            json.dumps(
                {"nvme_smart_health_information_log": {"critical_warning": 0}, "smart_status": {"passed": True}}
            ),
            "",
        )
    assert made.of_all == {
        "unread": "its health could not be read at the end, so it is unknown whether it was throttled: it no longer "
        "reports its counters"
    }


def test_without_an_interval_it_is_looked_at_only_where_it_is_asked(nvme):
    made, records = watch(nvme, interval_s=0)
    with made:
        assert made.since_last() == {}
    assert len(records) == len(nvme.commands) == 3 and made.of_all == {}


def test_sata_is_asked_for_its_health_only_before_and_after(nvme):
    made, records = watch(nvme, transport="sata")
    with made:
        until(lambda: len(records) >= 5)
        made.since_last()
    assert [command[0] for command in nvme.commands] == ["smartctl", "smartctl"]
    assert records[1]["error"] == "" and records[1]["link_width"] == 4


def test_a_p420m_that_shuts_down_for_heat_is_seen_without_a_command_to_it(fake):
    fake.put("/sys/block/rssda/status", "online\n")
    identity = Identity(transport="pcie", path="/dev/rssda", kernel_name="rssda")
    first = sampler.take_sample(fake, identity, [], ask=False)
    fake.put("/sys/block/rssda/status", "thermal_shutdown\n")
    assert list(sampler.remarks(first, sampler.take_sample(fake, identity, [], ask=False)).values()) == [
        "it warns: the temperature is beyond a threshold"
    ]
    assert fake.commands == []


def test_the_samples_keep_off_the_cpus_of_the_io(nvme):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    seen = []
    run = nvme.run
    nvme.run = lambda *arguments, **more: (
        seen.append((threading.current_thread(), sorted(os.sched_getaffinity(0)))),
        run(*arguments, **more),
    )[1]
    made, records = watch(nvme, io_cpus=str(cpus[0]))
    with made:
        until(lambda: len(records) >= 3)
    assert [affinity for thread, affinity in seen if thread is made._thread][0] == cpus[1:]
    assert sorted(os.sched_getaffinity(0)) == cpus
    # Where the I/O has them all, there is nowhere to keep off to.
    made, records = watch(nvme, io_cpus=",".join(map(str, cpus)))
    seen.clear()
    with made:
        until(lambda: len(records) >= 3)
    assert {tuple(affinity) for _thread, affinity in seen} == {tuple(cpus)}


@pytest.mark.parametrize("interval_s", [0, 0.01])
def test_samples_that_end_early_are_told(nvme, interval_s):
    count = []

    def note(_event, **_fields):
        count.append(1)
        if len(count) == 2:
            raise OSError("No space left on device")

    made, _records = watch(nvme, interval_s, note=note)
    with made:
        if interval_s:
            until(lambda: len(count) >= 2)
            made._thread.join(5)
        else:
            made.since_last()
    assert made.of_all == {
        "samples": "samples ended early (OSError: No space left on device): whether it was throttled is unknown"
    }


def test_a_look_that_was_asked_for_and_hangs_holds_nobody_up(nvme, monkeypatch):
    monkeypatch.setattr(sampler, "JOIN_S", 0.05)
    free, stuck, noted = threading.Event(), threading.Event(), []

    def note(_event, **_fields):
        if noted:
            stuck.set()
            free.wait(60)
        noted.append(1)

    made, _records = watch(nvme, interval_s=0, note=note)
    asking = threading.Thread(target=made.since_last)
    try:
        with made:
            asking.start()
            assert stuck.wait(60)
        assert "another look does not end" in made.of_all["samples"]
    finally:
        free.set()
        asking.join()


def test_a_look_that_hangs_is_told_and_holds_nobody_up(nvme, monkeypatch):
    monkeypatch.setattr(sampler, "JOIN_S", 0.05)
    free, stuck = threading.Event(), threading.Event()
    first = []

    def note(_event, **_fields):
        if first:
            stuck.set()
            free.wait(60)
        first.append(1)

    made, _records = watch(nvme, note=note)
    try:
        with made:
            assert stuck.wait(60)
        assert list(made.of_all) == ["samples"]
    finally:
        free.set()


@pytest.mark.parametrize(
    "after, says",
    [
        (6.0, []),
        (12.0, []),
        (3.0, ["its link fell from 6 to 3 Gb/s"]),
        (None, ["its link of 6 Gb/s can no longer be seen"]),
    ],
)
def test_a_serial_link(after, says):
    first = replace(FIRST, link_speed_gts=None, link_width=None, link_rate_gbit_s=6.0)
    now = replace(first, link_rate_gbit_s=after)
    assert list(sampler.disturbed(first, first, now).values()) == says == list(sampler.lasting(first, now).values())


@pytest.mark.parametrize("interval_s", [0, 100_000])
def test_how_long_nobody_looked_is_kept(nvme, interval_s):
    """ssd_sample_interval_s may leave out all samples but the first and the last."""
    times = iter((0.0, 0.0, 5000.0))
    identity = Identity(transport="nvme", path="/dev/nvme0n1")
    made = sampler.Sampler(
        nvme, lambda: identity, lambda event, **fields: None, interval_s, lambda: None, clock=lambda: next(times)
    )
    with made:
        pass
    assert made.unseen_s == 5000.0
