# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test did to a drive's health: from what its tools print before and after to the metric, and what fails it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import (
    drive_environment,
    health_change,
    health_metrics,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.attempt import MeasuredSeen
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.health import HealthChange, Wear
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria

FUNCTION, PORT = "0000:01:00.0", "0000:00:01.0"
QUIET = {"correctable": 0, "nonfatal": 0, "fatal": 0}
NVME = {
    "critical_warning": 0,
    "temperature": 313,
    "avail_spare": 100,
    "percent_used": 3,
    "media_errors": "5",
    "unsafe_shutdowns": "7",
    **{f"thm_temp{level}_{what}": 0 for level in (1, 2) for what in ("trans_count", "total_time")},
}


STATISTIC = "Number of Reported Uncorrectable Errors"


def sata(statistic=None, **raw):
    """What smartctl prints of a SATA drive with attributes of these names, and the standard's statistic."""
    told = [] if statistic is None else [{"name": STATISTIC, "value": statistic}]
    rows = [{"id": 200, "name": name, "value": 99, "raw": {"value": count}} for name, count in raw.items()]
    return {
        "smart_status": {"passed": True},
        "temperature": {"current": 40},
        "ata_smart_attributes": {"table": rows},
        "ata_device_statistics": {"pages": [{"table": told}]},
    }


def sas(uncorrected, used_pct=3, **more):
    """What smartctl prints of a SAS drive. more: of further pages."""
    errors = {"read": uncorrected, "write": 0, **more}
    log = {page: {"total_uncorrected_errors": count} for page, count in errors.items()}
    return {
        "temperature": {"current": 40},
        "scsi_percentage_used_endurance_indicator": used_pct,
        "scsi_error_counter_log": log,
    }


class Bed:
    """A drive of one transport, whose tools print what is given."""

    def __init__(self, fake, transport):
        self.fake, self.transport = fake, transport
        self.name = "nvme0n1" if transport == "nvme" else "sda"
        port = fake.pci(PORT, bridge=True, aer=(0, 0, 0))
        self.function = port and fake.pci(
            PORT, FUNCTION, aer=(0, 0, 0), current_link_speed="16.0 GT/s PCIe", current_link_width="4"
        )
        parent = self.function + ("/nvme/nvme0" if transport == "nvme" else "/ata1/host0")
        fake.link(fake.disk(self.name, "259:0", parent) + "/device", parent)

    def look(self, printed):
        """A look at it."""
        command = "nvme smart-log" if self.transport == "nvme" else "smartctl"
        self.fake.answers[command] = (0, json.dumps(printed), "")
        return drive_environment.read_environment(
            self.fake, Identity(transport=self.transport, path="/dev/" + self.name)
        )


def metrics_between(bed, before, after, warned=0, hottest_c=None):
    first, now = bed.look(before), bed.look(after)
    own = FUNCTION if bed.transport == "nvme" else ""
    change = health_change.between(health_change.Looks(first, first, first, now), warned, hottest_c, own, 7200.0)
    return health_metrics.metrics(change, None, None)


def missed(metrics, of=health_metrics.DEFAULT_CRITERIA, io_timeout_s=None, model="M"):
    return criteria.missed_health(criteria.usable(of), model, metrics, io_timeout_s)


@pytest.mark.parametrize(
    "transport, before, after, metric, value, says",
    [
        ("nvme", NVME, {**NVME, "media_errors": "8"}, "media_errors", 3, "it counted 3 more media errors"),
        ("nvme", NVME, {**NVME, "critical_warning": 4}, "critical_warnings", 1, "it raised 1 critical warning"),
        ("nvme", NVME, {**NVME, "critical_warning": 1}, "critical_warnings", 1, "it raised 1 critical warning"),
        ("nvme", NVME, {**NVME, "critical_warning": 0x1B}, "critical_warnings", 3, "it raised 3 critical warnings"),
        # Of its temperature alone; and what was there before.
        ("nvme", NVME, {**NVME, "critical_warning": 2}, "critical_warnings", 0, ""),
        ("nvme", {**NVME, "critical_warning": 4}, {**NVME, "critical_warning": 4}, "critical_warnings", 0, ""),
        ("nvme", NVME, {**NVME, "unsafe_shutdowns": "9"}, "unsafe_shutdowns", 2, ""),
        ("nvme", NVME, {**NVME, "avail_spare": 88}, "available_spare_pct", 88, ""),
        ("nvme", NVME, {**NVME, "percent_used": 255}, "percentage_used", 255, ""),
        ("nvme", NVME, {**NVME, "thm_temp1_total_time": 20, "thm_temp2_total_time": 5}, "throttled_s", 25, ""),
        ("nvme", NVME, {**NVME, "temperature": 350}, "highest_temperature_c", 77, ""),
        # A count that fell was reset: nobody knows.
        ("nvme", NVME, {**NVME, "media_errors": "0"}, "media_errors", None, ""),
        ("nvme", NVME, {"temperature": 313}, "media_errors", None, ""),
        ("sata", sata(Reported_Uncorrect=1), sata(Reported_Uncorrect=2), "media_errors", 1, "it counted 1 more media"),
        ("sata", sata(Uncor_Read_Error_Ct=0), sata(Uncor_Read_Error_Ct=1), "media_errors", 1, "it counted 1 more"),
        ("sata", sata(Current_Pending_ECC_Cnt=0), sata(Current_Pending_ECC_Cnt=1), "media_errors", None, ""),
        ("sata", sata(Host_Reads_GiB=0), sata(Host_Reads_GiB=99), "media_errors", None, ""),
        ("sata", sata(UDMA_CRC_Error_Count=3), sata(UDMA_CRC_Error_Count=9), "interface_crc_errors", 6, ""),
        ("sata", sata(Unexpect_Power_Loss_Ct=3), sata(Unexpect_Power_Loss_Ct=4), "unsafe_shutdowns", 1, ""),
        ("sata", sata(), sata(Percent_Lifetime_Used=42), "percentage_used", 42, ""),
        ("sata", sata(), sata(), "highest_temperature_c", 40, ""),
        ("sata", sata(), sata(), "critical_warnings", None, ""),
        # How those of several places count together, test_life_counts.py has.
        ("sata", sata(0, Reported_Uncorrect=0), sata(9, Reported_Uncorrect=0), "media_errors", 9, "it counted 9 more"),
        ("sas", sas(0), sas(2), "media_errors", 2, "it counted 2 more media errors"),
        ("sas", sas(1, verify=7), sas(2, verify=9), "media_errors", 3, "it counted 3 more media errors"),
        ("sas", sas(0), sas(0, used_pct=12), "percentage_used", 12, ""),
        ("sas", sas(0), sas(0), "interface_crc_errors", None, ""),
    ],
)
def test_a_counter_of_each_transport_is_a_metric_and_fails_the_drive(
    fake, transport, before, after, metric, value, says
):
    found = metrics_between(Bed(fake, transport), before, after)
    assert found[metric] == value
    texts = missed(found)
    assert [text.startswith(says) for text in texts] == [True] * bool(says)
    # A site's own limit fails it too.
    limit = {"metric": metric, **({"min": 89} if metric == health_metrics.SPARE else {"max": (value or 0) - 1})}
    assert bool(missed(found, [limit])) == (value is not None)


@pytest.mark.parametrize("transport, printed", [("nvme", NVME), ("sata", sata(Reported_Uncorrect=1)), ("sas", sas(1))])
def test_a_drive_that_holds_still_misses_nothing_and_all_metrics_are_there(fake, transport, printed):
    found = metrics_between(Bed(fake, transport), printed, printed)
    assert list(found) == list(health_metrics.TABLE) and missed(found) == []


@pytest.mark.parametrize(
    "transport, whole, part",
    [("sas", sas(0, verify=7), sas(0)), ("sata", sata(7, Reported_Uncorrect=0), sata(Reported_Uncorrect=0))],
)
def test_a_place_that_one_look_missed_brings_no_new_errors_when_it_is_back(fake, transport, whole, part):
    bed = Bed(fake, transport)
    first, second, third = bed.look(whole), bed.look(part), bed.look(whole)
    last = health_change.with_last_known(second, first)
    changes = [
        health_change.between(health_change.Looks(first, one, one, other), 0, None, "", 60.0)
        for one, other in ((first, second), (last, third))
    ]
    assert [change.media_errors for change in changes] == [0, 0]


@pytest.mark.parametrize("before, now, uncorrected, per_hour", [(0, 4, 4, 0.0), (4, 2, None, None)])
def test_pci_express_errors_are_unknown_where_their_counters_were_reset(fake, before, now, uncorrected, per_hour):
    look = Bed(fake, "nvme").look(NVME)
    first, last = (replace(look, aer={FUNCTION: {**QUIET, "nonfatal": count}}) for count in (before, now))
    found = health_change.between(health_change.Looks(first, first, first, last), 0, None, FUNCTION, 3600.0)
    assert (found.uncorrected_pcie_errors, found.corrected_pcie_errors_per_h) == (uncorrected, per_hour)


# (power-on hours, result) of entries of a log.
FAILED, PASSED, ABORTED = (7, 7), (7, 0), (7, 1)


@pytest.mark.parametrize(
    ("before", "now", "failed"),
    [
        ([], [], 0),
        ([], [FAILED], 1),
        ([], [PASSED, ABORTED], 0),
        ([FAILED], [FAILED], 0),
        ([PASSED], [FAILED, FAILED, PASSED], 2),
        # The log keeps the newest alone.
        ([(hours, 7) for hours in range(20)], [(hours, 7) for hours in range(1, 21)], 1),
        (None, [FAILED], None),
        ([FAILED], None, None),
    ],
)
def test_a_self_test_that_the_drive_fails_meanwhile_fails_it(fake, before, now, failed):
    def look(entries):
        names = ("Power on hours", "Self test result")
        reports = [{"Self test code": 2, **dict(zip(names, entry))} for entry in entries or ()]
        log = json.dumps({"Current Device Self-Test Operation": 0, "List of Valid Reports": reports})
        fake.answers["nvme self-test-log"] = (1, "", "timed out") if entries is None else (0, log, "")
        return bed.look(NVME)

    bed = Bed(fake, "nvme")
    fake.nvme_says("id-ctrl", {"oacs": 0x10})
    first, last = look(before), look(now)
    change = health_change.between(health_change.Looks(first, first, first, last), 0, None, FUNCTION, 60.0)
    found = health_metrics.metrics(change, None, None)
    assert found["failed_self_tests"] == failed
    said = f"it failed {failed} self-test{'s' * (failed != 1)} (failed_self_tests, max 0)"
    assert missed(found) == [said] * bool(failed)
    # What a look does not tell, the next one is compared with all the same.
    again = health_change.with_last_known(last, first).failed_self_tests
    assert again == (first if now is None else last).failed_self_tests


def test_warnings_and_heat_that_came_and_went_are_of_samples(fake):
    found = metrics_between(Bed(fake, "nvme"), NVME, NVME, warned=0x04, hottest_c=71)
    assert (found["critical_warnings"], found["highest_temperature_c"]) == (1, 71)


@pytest.mark.parametrize(
    "transport, errors, uncorrected, per_hour",
    [
        ("nvme", {FUNCTION: (4, 0, 0)}, 0, 2.0),
        ("nvme", {FUNCTION: (0, 1, 1)}, 2, 0.0),
        # Of the slot; and of an HBA.
        ("nvme", {PORT: (4, 1, 1)}, 0, 0.0),
        ("sata", {FUNCTION: (4, 1, 1)}, None, None),
    ],
)
def test_only_pci_express_errors_of_its_own_function_count(fake, transport, errors, uncorrected, per_hour):
    bed = Bed(fake, transport)
    printed = NVME if transport == "nvme" else sata()
    first = bed.look(printed)
    for address, counts in errors.items():
        path = bed.function if address == FUNCTION else bed.function.rpartition("/")[0]
        for name, total, count in zip(("correctable", "nonfatal", "fatal"), ("COR", "NONFATAL", "FATAL"), counts):
            fake.put(f"{path}/aer_dev_{name}", f"Receiver Error {count}\nTOTAL_ERR_{total} {count}\n")
    own = FUNCTION if transport == "nvme" else ""
    looks = health_change.Looks(first, first, first, bed.look(printed))
    found = health_metrics.metrics(health_change.between(looks, 0, None, own, 7200.0), None, None)
    assert (found["uncorrected_pcie_errors"], found["corrected_pcie_errors_per_h"]) == (uncorrected, per_hour)
    assert bool(missed(found)) == bool(uncorrected)


@pytest.mark.parametrize(
    "transport, change, degraded",
    [
        ("nvme", {"link_width": 2}, True),
        ("nvme", {"link_speed_gts": 32.0}, False),
        ("sata", {"link_rate_gbit_s": 3.0}, True),
        # That of the HBA is not its own.
        ("sata", {"link_width": 2}, False),
    ],
)
def test_its_own_link_that_stays_down_fails_it(fake, transport, change, degraded):
    first = Bed(fake, transport).look(NVME if transport == "nvme" else sata())
    first = replace(first, link_rate_gbit_s=None if transport == "nvme" else 6.0)
    looks = health_change.Looks(first, first, first, replace(first, **change))
    own = FUNCTION if transport == "nvme" else ""
    found = health_metrics.metrics(health_change.between(looks, 0, None, own, 60.0), None, None)
    assert found["link_degraded"] == degraded
    assert missed(found) == ["its link fell and stayed down (link_degraded, max 0)"] * degraded


@pytest.mark.parametrize(
    "given, says",
    [
        ({"drive_gone": True}, "the kernel lost it, or has given it up (drive_gone, max 0)"),
        ({"controller_resets": 2}, "its controller was reset 2 times (controller_resets, max 0)"),
        ({"controller_resets": 1}, "its controller was reset once (controller_resets, max 0)"),
        ({"media_errors": 1}, "it counted 1 more media error (media_errors, max 0)"),
        ({"link_resets": 3}, ""),
        ({"drive_gone": False, "controller_resets": 0}, ""),
        ({"io_timeouts": 1, "throttled_s": 900, "interface_crc_errors": 1}, ""),
        ({}, ""),
    ],
)
def test_what_the_kernel_did_to_the_drive(given, says):
    assert missed(health_metrics.metrics(HealthChange(**given), None, None)) == [says] * bool(says)


def test_a_reason_quotes_the_kernels_log():
    line = "nvme nvme0: I/O 12 QID 3 timeout, reset controller"
    held_to = criteria.usable(health_metrics.DEFAULT_CRITERIA)
    found = criteria.missed_health(held_to, "M", {"controller_resets": 1, "media_errors": 2}, None, line)
    assert found == [
        "it counted 2 more media errors (media_errors, max 0)",
        f'its controller was reset once, the kernel\'s log says "{line}" (controller_resets, max 0)',
    ]


def test_what_it_wrote_to_its_flash_is_of_its_wear():
    found = health_metrics.metrics(HealthChange(), Wear(10, 25, 2.5, 1), None)
    assert found["write_amplification"] == 2.5 and health_metrics.metrics(None, None, 99.0) == {}


QUIET_CELL = {"run_s": 60.0, "elapsed_s": 60.5, "longest_stop_s": 0.0, "suspended_s": 0.0}
REST = {
    "fio_bytes": {},
    "kernel_bytes": None,
    "merged_share": None,
    "mean_latency_s": None,
    "queued": None,
    "in_flight": None,
    "limits": {"nr_requests": None, "hw_queues": None, "device_depth": None},
}


@pytest.mark.parametrize(
    "seen, timeout_s, fails",
    [
        ({"longest_s": 0.02}, None, False),
        ({"longest_s": 29.9}, None, False),
        ({"longest_s": 31.2}, None, True),
        # A cloud's weeks, and a site's seconds.
        ({"longest_s": 31.2}, 4294967.295, True),
        ({"longest_s": 11.0}, 10.0, True),
        ({"longest_s": 11.0}, 30.0, False),
        # The guest was paused; by its own clock, by fio's, or it slept.
        ({"longest_s": 35.2, "longest_stop_s": 35.0}, None, False),
        ({"longest_s": 35.2, "elapsed_s": 25.4}, None, False),
        ({"longest_s": 35.2, "suspended_s": 35.0}, None, False),
        # A short pause excuses no time-out.
        ({"longest_s": 61.0, "longest_stop_s": 2.0}, None, True),
        # Of three figures that tell of stops the longest counts, not their sum.
        ({"longest_s": 35.2, "longest_stop_s": 5.0, "suspended_s": 4.0, "elapsed_s": 57.0}, None, True),
        # Clocks that differ by less than they can tell, and one that was set back, make no I/O longer.
        ({"longest_s": 30.0, "suspended_s": -0.001}, None, False),
        # Nobody saw whether the machine ran.
        ({"longest_s": 35.2, "longest_stop_s": None}, None, False),
    ],
)
def test_an_io_that_takes_longer_than_the_kernel_waits_fails_the_drive_and_no_paused_machine_does(
    seen, timeout_s, fails
):
    cell = base.parse(MeasuredSeen, {**REST, **QUIET_CELL, **seen})
    longest_s = health_metrics.longest_io_s(cell, 0)
    found = missed(health_metrics.metrics(HealthChange(), None, longest_s), io_timeout_s=timeout_s)
    assert bool(found) == fails and all(text.startswith("an I/O took ") for text in found)


def test_a_ramp_is_time_that_fio_ran_too():
    cell = base.parse(MeasuredSeen, {**REST, **QUIET_CELL, "longest_s": 35.0, "elapsed_s": 90.5})
    assert health_metrics.longest_io_s(cell, 30) == 35.0
    cell = replace(cell, elapsed_s=60.0)
    assert health_metrics.longest_io_s(cell, 30) == 5.0


@pytest.mark.parametrize(
    "criterion, fails",
    [
        ({"metric": "throttled_pct", "max": 30}, True),
        ({"metric": "throttled_pct", "max": 40}, False),
        ({"metric": "available_spare_pct", "min": "50"}, True),
        ({"metric": "available_spare_pct", "min": 50, "model": "OTHER*"}, False),
        ({"metric": "percentage_used", "max": 1}, False),
    ],
)
def test_a_sites_own_list(criterion, fails):
    figures = {"throttled_pct": 34.0, "available_spare_pct": 12.0, "percentage_used": None}
    assert bool(missed(figures, [criterion])) == fails


@pytest.mark.parametrize(
    "given, longest_s",
    [
        ({}, 31.0),
        ({"may_have_waited": False}, 31.0),
        ({"may_have_waited": True}, None),
    ],
)
def test_an_io_that_waited_for_the_host_says_nothing_of_the_drive(given, longest_s):
    found = health_metrics.metrics(HealthChange(**given), None, 31.0)
    assert found["longest_io_s"] == longest_s
