# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel logs of drives while they are measured; a file stands for /dev/kmsg."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import kernel_watch
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.kernel_watch import DriveLog, HostLog
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_log_reader
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.kernel_log_reader import KernelLogReader
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, events, measurement
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.health import HealthChange
from ansible_collections.ssdlab.fleet.tests.fixtures import kmsg

HEALTH = HealthChange(media_errors=3, link_degraded=True, drive_gone=False, uncorrected_pcie_errors=1)
ENDED = measurement.TestEnd(None, [], [], [], None, None, HEALTH)
TIMEOUT = "nvme nvme{0}: I/O 12 QID 3 timeout, aborting"
RESET = "nvme nvme{0}: I/O 12 QID 3 timeout, reset controller"
GONE = "nvme nvme{0}: Removing after probe failure status: -19"
SWITCH = "pcieport 0000:00:03.0: DPC: containment event, status:0x1f01 source:0x0000"


class Drive(DriveLog):
    """One NVMe drive below a switch, and what its journal has."""

    def __init__(self, host, log, number, stop):
        self.noted, self.name = [], f"nvme{number}n1"
        controller = f"/sys/devices/pci0000:00/0000:00:03.0/0000:0{number + 1}:00.0/nvme/nvme{number}"
        host.put(controller + "/transport", "pcie\n")
        host.link(host.disk(self.name, f"259:{number}", controller) + "/device", controller)
        super().__init__(log, self._note, stop)

    def _note(self, event, **fields):
        self.noted.append(base.parse(events.EVENTS[event], dict(fields, drive="d")))

    def starts(self, transport="nvme"):
        self.begin_test(self.name, transport, {"test": "wsat", "attempt": 1})

    def done(self):
        self.let_go(self.name)

    def measures(self):
        self.begin([self.name], "0")

    def health(self):
        return self.counted(ENDED).health


@pytest.fixture
def stop():
    return threading.Event()


@pytest.fixture
def drives(fake, stop, monkeypatch):
    monkeypatch.setattr(kernel_watch, "SETTLE_S", 0)
    fake.put("/dev/kmsg", "")
    with KernelLogReader(fake) as reader:
        log = HostLog(fake, reader)
        yield [Drive(fake, log, number, stop) for number in range(3)]


def logs(host, number, *texts, time_s=100.0):
    kmsg.log(host, *(text.format(number) for text in texts), time_s=time_s)


def test_only_what_is_logged_while_it_is_measured_counts(fake, drives):
    drive = drives[0]
    drive.starts()
    logs(fake, 0, RESET)  # its purge
    drive.measures()
    logs(fake, 0, TIMEOUT, RESET, "nvme nvme0: Abort status: 0x0")
    assert drive.end() == ""
    logs(fake, 0, RESET)  # between two tests
    found = drive.health()
    assert (found.io_timeouts, found.controller_resets, found.host_resets, found.drive_gone) == (2, 1, 0, False)
    assert (found.media_errors, found.link_degraded, found.uncorrected_pcie_errors) == (3, True, 1)
    assert found.kernel_message == "nvme nvme0: I/O 12 QID 3 timeout, aborting"
    assert [(each.kind, each.name, each.is_own) for each in drive.noted] == [
        ("timeout", "nvme0", True),
        ("timeout", "nvme0", True),
        ("reset", "nvme0", True),
    ]
    drive.starts()
    assert drive.counted(ENDED) is ENDED  # nothing was measured yet
    drive.measures()
    assert (drive.end(), drive.health().io_timeouts, len(drive.noted)) == ("", 0, 3)


def test_what_we_do_to_a_drive_while_it_is_measured_counts_for_nothing(fake, drives):
    ours, other = drives[:2]
    for drive in (ours, other):
        drive.starts()
        drive.measures()
    logs(fake, 0, TIMEOUT)
    with ours.by_us():
        logs(fake, 0, RESET)
        logs(fake, 1, TIMEOUT, time_s=900.0)
    logs(fake, 0, TIMEOUT)
    assert (ours.end(), other.end()) == ("", "")
    assert (ours.health().io_timeouts, ours.health().controller_resets) == (2, 0)
    assert other.health().io_timeouts == 1
    assert [each.kind for each in ours.noted] == ["timeout", "timeout"]


def test_events_are_noted_with_each_round_once(fake, drives):
    drive = drives[0]
    drive.starts()
    drive.measures()
    for count in (1, 2):
        logs(fake, 0, TIMEOUT)
        drive.note_new()
        drive.note_new()
        assert len(drive.noted) == count
    drive.end()
    assert len(drive.noted) == 2


def test_a_drive_that_is_lost(fake, drives):
    drives[0].starts()
    drives[0].measures()
    logs(fake, 0, RESET, GONE)
    assert (drives[0].end(), drives[0].health().drive_gone) == ("", True)


def test_timeouts_of_several_drives_are_a_remark(fake, drives):
    for drive in drives[:2]:
        drive.starts()
        drive.measures()
    logs(fake, 0, TIMEOUT)
    logs(fake, 1, TIMEOUT)
    for drive in drives[:2]:
        assert drive.end() == ""
        assert (drive.health().io_timeouts, drive.health().host_timeouts) == (0, 1)
        (told,) = drive.told()
        assert told.level == "told" and told.message.startswith("1 of its I/Os timed out within a minute of those of")


def test_resets_of_a_link_are_a_remark(fake, stop, monkeypatch):
    monkeypatch.setattr(kernel_watch, "SETTLE_S", 0)
    fake.put("/dev/kmsg", "")
    device = "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0"
    fake.disk("sda", "8:0", device)
    with KernelLogReader(fake) as reader:
        drive = Drive(fake, HostLog(fake, reader), 0, stop)
        drive.name = "sda"
        drive.starts("sata")
        drive.measures()
        kmsg.log(fake, "sd 2:0:0:0: Power-on or device reset occurred", time_s=100)
        assert drive.end() == ""
        assert (drive.health().controller_resets, drive.health().link_resets) == (0, 1)
        (told,) = drive.told()
        assert told.message.startswith("its link or device was reset once: look at cable, backplane and HBA")


def test_a_storm_is_counted_and_noted_in_part(fake, drives):
    drives[0].starts()
    drives[0].measures()
    logs(fake, 0, *[TIMEOUT] * (kernel_watch.MOST_NOTED + 5))
    drives[0].end()
    assert drives[0].health().io_timeouts == kernel_watch.MOST_NOTED + 5
    assert len(drives[0].noted) == kernel_watch.MOST_NOTED


def test_what_the_switch_above_does_is_the_hosts_fault_and_counts_against_no_drive(fake, drives):
    for drive in drives:
        drive.starts()
        drive.measures()
    kmsg.log(fake, SWITCH, time_s=100)
    for number in range(3):
        logs(fake, number, RESET, GONE, time_s=101)
    assert {drive.end() for drive in drives} == {
        "a fault of the host, not of the drive, as the kernel's log says: " + SWITCH
    }
    for drive in drives:
        found = drive.health()
        assert (found.io_timeouts, found.controller_resets, found.drive_gone) == (0, 0, None)
        assert (found.host_resets, found.link_degraded, found.uncorrected_pcie_errors) == (1, None, None)
        assert [each.is_own for each in drive.noted] == [False, True, True, True]


@pytest.mark.parametrize(
    "steps, is_host",
    [
        ([], True),
        (["starts"], False),  # it is purged
        (["starts", "measures"], True),
        (["starts", "measures", "end"], False),  # it is left blank
        (["starts", "measures", "end", "done"], True),
    ],
)
def test_what_befalls_another_drive_counts_but_for_what_we_do_to_it(fake, drives, steps, is_host):
    for step in steps:
        getattr(drives[1], step)()
    drives[0].starts()
    drives[0].measures()
    logs(fake, 0, RESET)
    logs(fake, 1, RESET, time_s=130)
    assert bool(drives[0].end()) == is_host
    assert drives[0].health().controller_resets == (0 if is_host else 1)


@pytest.mark.parametrize("steps, is_host", [(["starts"], False), (["starts", "measures"], True)])
def test_what_our_work_on_a_neighbour_does_above_both_is_nobodys_fault(fake, drives, steps, is_host):
    """And fails nobody: what follows on the drives below is excused all the same."""
    drives[0].starts()
    drives[0].measures()
    for step in steps:
        getattr(drives[1], step)()
    kmsg.log(fake, SWITCH, time_s=100)
    logs(fake, 0, RESET, time_s=110)
    assert bool(drives[0].end()) == is_host
    found = drives[0].health()
    assert (found.controller_resets, found.may_have_waited, found.drive_gone) == (0, True, None)


def test_a_drive_of_the_host_that_is_none_of_the_runs_counts_too(fake, drives):
    """Nobody begins a test of drive 2."""
    drives[0].starts()
    drives[0].measures()
    logs(fake, 0, RESET)
    logs(fake, 2, RESET, time_s=159)
    assert "2 of its drives were reset or lost within a minute, all below 0000:00:03.0" in drives[0].end()


@pytest.mark.parametrize(
    "own, waits, is_host",
    [([RESET], [60.0], True), ([], [], False), (["I/O error, dev nvme{0}n1, sector 8"], [], False)],
    ids=["a reset", "nothing", "an I/O error"],
)
def test_after_a_fault_the_end_waits_for_those_of_others(fake, own, waits, is_host):
    """The drive that ends first can't know that the others follow."""
    waited = []

    class Stop(threading.Event):
        def wait(self, timeout=None):
            waited.append(timeout)
            logs(fake, 2, RESET, time_s=150)

    fake.put("/dev/kmsg", "")
    with KernelLogReader(fake) as reader:
        log = HostLog(fake, reader)
        drive, _other = Drive(fake, log, 0, Stop()), Drive(fake, log, 2, Stop())
        drive.starts()
        drive.measures()
        logs(fake, 0, *own)
        assert bool(drive.end()) == is_host
        assert bool(drive.end()) == is_host
    assert waited == waits


def test_another_drive_of_an_array_ends_its_test_and_counts_not_against_the_one_that_carries_it(fake, drives):
    lead = drives[0]
    lead.starts()
    lead.measures()
    lead.begin(["nvme0n1", "nvme1n1"], "0")
    logs(fake, 0, TIMEOUT)
    logs(fake, 1, RESET, time_s=300)
    message = f"a fault of nvme1n1, another drive of the array, as the kernel's log says: {RESET.format(1)}"
    assert (lead.end(), lead.end()) == (message, message)
    assert (lead.health().io_timeouts, lead.health().controller_resets, lead.health().drive_gone) == (1, 0, False)
    assert lead.health().kernel_message == TIMEOUT.format(0)
    # It is the other drive's own.
    found = lead.counted_of("nvme1n1", HealthChange(media_errors=2, drive_gone=False))
    assert (found.media_errors, found.io_timeouts, found.controller_resets, found.drive_gone) == (2, 1, 1, False)
    assert found.kernel_message == RESET.format(1)
    assert lead.counted_of("nvme2n1", None) is None
    assert [each.name for each in lead.noted] == ["nvme0", "nvme1", "nvme1"]


def test_a_drive_of_software_is_not_in_the_log(drives):
    drives[0].starts("loop")
    drives[0].measures()
    assert (drives[0].end(), drives[0].counted(ENDED), drives[0].told()) == ("", ENDED, [])


def test_a_log_that_cannot_be_read_is_unknown(fake, stop):
    with KernelLogReader(fake) as reader:
        drive = Drive(fake, HostLog(fake, reader), 0, stop)
        drive.starts()
        assert (drive.end(), drive.told()) == ("", [])  # nothing was measured
        drive.measures()
        assert (drive.end(), drive.counted(ENDED)) == ("", ENDED)
        (told,) = drive.told()
        assert (told.cause, told.level) == ("kernel_log", "told")
        assert told.message == (
            "controller_resets, link_resets and io_timeouts are unknown and not judged: /dev/kmsg cannot be read: No "
            "such file or directory; give a container /dev/kmsg and CAP_SYSLOG"
        )
        drive.starts()
        drive.measures()
        assert (drive.end(), drive.told()) == ("", [])  # once for each drive
    drive = Drive(fake, None, 1, stop)
    drive.starts()
    drive.measures()
    drive.note_new()
    assert (drive.end(), drive.counted(ENDED), drive.told()) == ("", ENDED, [])


def test_lost_records_are_told(fake, drives, monkeypatch):
    monkeypatch.setattr(kernel_log_reader, "MOST_EVENTS", 2)
    drives[0].starts()
    drives[0].measures()
    assert drives[0].told() == []
    logs(fake, 0, *[TIMEOUT] * 3)
    drives[0].end()
    (told,) = drives[0].told()
    assert (told.level, drives[0].health().io_timeouts) == ("told", 2)
    assert (drives[0].health().controller_resets, drives[0].health().host_resets) == (None, None)
    assert not drives[0].health().may_have_waited  # it has faults of its own
    assert told.message == (
        "records of the kernel's log were lost: there may be more timeouts and resets than were counted"
    )
    drives[0].starts()
    drives[0].measures()
    assert (drives[0].end(), drives[0].health().io_timeouts, drives[0].told()) == ("", 0, [])  # none since
    assert drives[0].health().may_have_waited is False


def test_lost_records_may_have_told_why_an_io_waited(fake, drives, monkeypatch):
    monkeypatch.setattr(kernel_log_reader, "MOST_EVENTS", 2)
    drives[0].starts()
    drives[0].measures()
    logs(fake, 1, *[TIMEOUT] * 3)
    drives[0].end()
    assert drives[0].health().may_have_waited


def test_a_drive_that_is_lost_after_a_fault_of_the_host_is_lost(fake, drives):
    drives[0].starts()
    drives[0].measures()
    kmsg.log(fake, SWITCH, time_s=100)
    logs(fake, 0, GONE, time_s=5000)
    assert (bool(drives[0].end()), drives[0].health().drive_gone) == (True, True)
