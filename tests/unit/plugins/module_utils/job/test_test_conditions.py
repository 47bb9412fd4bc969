# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A campaign's conditions: one baseline, a look after each test, and the vendor's settings with every result."""

from __future__ import annotations

import json

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import hidden_capacity
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import test_conditions
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, measurement
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import rssdm_settings
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

JOB = "[global]\nrefill_buffers=1\n[c]\nrw=randwrite\n"
TEST = planned.spec(cells=[{"job": JOB}])


class Quiet:
    """A sampler that took its samples, and found these things since it was asked, and those of the whole test."""

    unseen_s = 30.0
    hottest_c = None
    warned = 0

    def __init__(self, found=None, of_all=None):
        self._found = found or {}
        self.of_all = of_all or {}

    def since_last(self):
        found, self._found = self._found, {}
        return found


@pytest.fixture
def micron(emulated, tmp_path):
    """A P420m on its bus, and the conditions of its campaign: micron(wanted)."""
    host = emulated(rssdm=[emulator.p420m(0, "S1")])
    host.block("rssda", "252:0", "04:00.0")
    identity = Identity(transport="pcie", kernel_name="rssda", path="/dev/rssda", serial="S1")
    host.noted = []

    def make(wanted=None, history=()):
        def note(event, **fields):
            host.noted.append(dict(fields, event=event))

        made = test_conditions.Conditions(host, lambda: identity, wanted or {}, note, str(tmp_path / "state"))
        made.begin(history)
        made.begin_test()
        made.begin_measurement()
        return made

    make.host, make.state = host, str(tmp_path / "state")
    return make


def health_after(made, end="end_test"):
    """Play a test; its health."""
    made.begin_test()
    made.end_test(TEST, Quiet()) if end == "end_test" else made.end_failed_test(Quiet())
    return made.health


def counts(health):
    return health.media_errors, health.critical_warning, health.unsafe_shutdowns


def test_errors_of_a_test_whose_look_failed_are_those_of_the_next(nvme):
    made = nvme()
    nvme.tell(media_errors=None)
    assert counts(health_after(made)) == (None, None, None)
    nvme.tell(media_errors=5, critical_warning=4, unsafe_shutdowns=2)
    assert counts(health_after(made)) == (2, 4, 1)
    assert counts(health_after(made)) == (0, 0, 0)


def test_errors_between_two_jobs_are_those_of_the_next_test(nvme):
    made = nvme()
    nvme.tell(media_errors=4)
    assert counts(health_after(made)) == (1, 0, 0)
    journal = [*nvme.noted, {"event": "test_finished", "health": base.to_json(made.health)}]
    nvme.tell(media_errors=9, critical_warning=4, unsafe_shutdowns=2)
    assert counts(health_after(nvme(journal))) == (5, 4, 1)
    # Of a baseline that told nothing; and with no look since.
    journal[0]["world"] = {**journal[0]["world"], "media_errors": None}
    assert counts(health_after(nvme(journal))) == (5, 4, 1)
    assert counts(health_after(nvme(journal[:1]))) == (0, 4, 1)


@pytest.mark.parametrize("refused, new", [(False, 4), (True, 1)])
def test_errors_until_erased_blocks_were_refused_are_not_held_against_the_drive(nvme, refused, new):
    made = nvme()
    made.begin_test()
    nvme.tell(media_errors=6, unsafe_shutdowns=2)
    if refused:
        made.after_refused_reads()
    made.begin_measurement()
    nvme.tell(media_errors=7, unsafe_shutdowns=2)
    made.end_test(TEST, Quiet())
    assert counts(made.health) == (new, 0, 1)
    texts = [item.message for item in made.found if item.cause == "media_errors"]
    excuse = "it counted media errors (3 to 6) until it refused erased blocks: not held against it"
    assert (excuse in texts) == refused and any(f"{new} more media errors" in text for text in texts)
    # Nor in the run's next job.
    journal = [*nvme.noted, {"event": "test_finished", "health": base.to_json(made.health)}]
    assert counts(health_after(nvme(journal))) == (0, 0, 0)


def test_a_self_test_that_fails_between_two_jobs_is_of_the_next_test(nvme, fake):
    def tell(*results):
        reports = [{"Self test code": 2, "Self test result": result, "Power on hours": 7} for result in results]
        fake.nvme_says("self-test-log", {"Current Device Self-Test Operation": 0, "List of Valid Reports": reports})

    fake.nvme_says("id-ctrl", {"oacs": 0x10})
    tell(7)
    made = nvme()
    health_after(made)
    assert made.health.failed_self_tests == 0
    journal = [*nvme.noted, {"event": "test_finished", "health": base.to_json(made.health)}]
    tell(7, 7)
    again = nvme(journal)
    health_after(again)
    assert again.health.failed_self_tests == 1


def levels(made):
    return {(item.cause, item.level) for item in made.found}


def test_the_settings_go_with_every_result_and_agree(micron):
    made = micron({"interrupt_coalescing": "0xD200F"})
    assert made.end_test(TEST, Quiet()) == []
    end = made.end(None, [], [])
    assert end.vendor_settings.settings["interrupt_coalescing"] == "0xD200F"
    assert not [item for item in end.conditions if item.level == "disturbs"]
    (baseline,) = micron.host.noted
    assert baseline["event"] == "baseline" and baseline["vendor_settings"]["settings"]["power_limiting"] is False


def test_another_setting_than_wanted_disturbs_and_one_that_waits_is_told(micron):
    rssdm_settings.apply(micron.host, "S1", rssdm_settings.requested({"power_limiting": True}), micron.state)
    made = micron({"queue_depth": 256})
    assert made.end_test(TEST, Quiet()) == ["its interrupt coalescing is 0xD200F, the inventory wants 0xD801F"]
    assert {("vendor_settings", "disturbs"), ("vendor_settings", "told")} <= levels(made)


@pytest.mark.parametrize("test", [TEST, planned.spec(integrity={"passes": 1})], ids=["measures", "reads back"])
def test_errors_count_for_the_test_that_they_rose_in_alone(micron, test):
    made = micron()
    with micron.host.state() as machine:
        machine["rssdm"]["drives"][0]["smart"] = {"Reported Uncorrectable Errors": 4}
    assert made.end_test(test, Quiet()) == [] and ("media_errors", "told") in levels(made)
    assert made.end(None, [], []).health.media_errors == 4
    made.begin_test()
    assert made.end("interrupted", [], []).health is None
    made.begin_measurement()
    assert made.end_test(TEST, Quiet()) == [] and ("media_errors", "told") not in levels(made)
    assert made.end(None, [], []).health.media_errors == 0


def test_errors_of_the_purge_count_too(micron):
    made = micron()
    made.end_test(TEST, Quiet())
    made.begin_test()
    with micron.host.state() as machine:
        machine["rssdm"]["drives"][0]["smart"] = {"Reported Uncorrectable Errors": 1}
    made.begin_measurement()
    made.end_test(TEST, Quiet())
    assert ("media_errors", "told") in levels(made) and made.health.media_errors == 1


@pytest.mark.parametrize("is_measured", [False, True])
def test_what_a_test_without_figures_did_to_the_drive_counts_too(micron, is_measured):
    made = micron()
    made.end_test(TEST, Quiet())
    made.begin_test()
    if is_measured:
        made.begin_measurement()
    with micron.host.state() as machine:
        machine["rssdm"]["drives"][0]["smart"] = {"Reported Uncorrectable Errors": 2}
    made.end_failed_test(Quiet())
    assert made.end("error", ["fio failed"], []).health.media_errors == 2
    assert made.health.drive_gone is False and made.found == []


@pytest.mark.parametrize("state, gone", [("online", False), ("dead", True), ("offline", True), (None, False)])
def test_a_drive_that_the_kernel_has_given_up_is_gone(micron, state, gone):
    made = micron()
    if state:
        micron.host.put("/sys/devices/pci0000:00/0000:04:00.0/state", state + "\n")
    micron.host.put("/sys/block/rssda/queue/io_timeout", "30000\n")
    made.end_failed_test(Quiet())
    assert (made.health.drive_gone, made.health.io_timeout_s) == (gone, 30.0)


def test_what_the_sampler_saw_disturbs_the_time_in_which_it_did():
    seen = {
        "throttled t1": "it was throttled",
        "0000:01:00.0": "errors rose",
    }
    watch = Quiet(seen)
    assert [(item.cause, item.level) for item in test_conditions.causes_since_last(watch)] == [
        ("throttled", "disturbs"),
        ("pcie_errors", "disturbs"),
    ]
    assert test_conditions.causes_since_last(watch) == []


@pytest.mark.parametrize(
    ("kind", "level"), [("samples", "unknown"), ("unread", "disturbs"), ("its reliability is degraded", "told")]
)
def test_what_the_drive_warned_of_or_nobody_could_know_is_of_the_whole_test(micron, kind, level):
    made = micron()
    assert made.end_test(TEST, Quiet(of_all={kind: "why"})) == ["why"] * (level == "disturbs")
    assert ("samples" if kind == "samples" else "health", level) in levels(made)


def test_a_step_that_measures_nothing_is_held_to_nothing_but_the_drives_health(micron):
    made = micron({"queue_depth": 256})
    with micron.host.state() as machine:
        machine["rssdm"]["drives"][0]["smart"] = {"Reported Uncorrectable Errors": 2}
    assert made.end_test(planned.spec(), Quiet()) == []
    end = made.end("invalid", ["x"], ["y", "y"])
    assert end == measurement.TestEnd("invalid", ["x"], ["y"], [], None, None, end.health)
    assert end.health.media_errors == 2


def test_a_resumed_run_goes_by_its_first_baseline(micron):
    micron()
    (first,) = micron.host.noted
    kept = dict(first, world=dict(first["world"], link_speed_gts=5.0, link_width=8))
    made = micron(history=[json.loads(json.dumps(kept))])
    assert len(micron.host.noted) == 1
    assert made.end_test(TEST, Quiet()) == [made.slower_link()] == ["its link of 5 GT/s x8 can no longer be seen"]


@pytest.mark.parametrize("total, shown, told", [(100, 100, 0), (1000, 995, 0), (1000, 800, 1), (None, None, 0)])
def test_hidden_capacity_is_a_remark(total, shown, told):
    found = test_conditions.hidden(hidden_capacity.Hidden(total, shown, "this namespace (tnvmcap)"))
    assert [item.level for item in found] == ["told"] * told
    assert all("20.0% of its 1000 bytes are hidden" in item.message for item in found)


@pytest.mark.parametrize(("after", "disturbed"), [("write back", False), ("write through", True), ("?", False)])
def test_a_drive_that_switched_its_own_cache_disturbs_the_test(micron, after, disturbed):
    """queue/write_cache says what the kernel believes since it made the queue."""
    own = "/sys/devices/pci0000:00/0000:04:00.0/scsi_disk/0:0:0:0/cache_type"
    micron.host.put(own, "write back\n")
    made = micron()
    micron.host.put(own, after + "\n")
    assert bool(made.end_test(TEST, Quiet())) == disturbed
    assert (("write_cache", "disturbs") in levels(made)) == disturbed
