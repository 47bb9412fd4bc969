# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.kernel_names import Names
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_log
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.kernel_faults import faults

SWITCH = "0000:40:01.0"
DRIVES = {
    f"nvme{number}n1": Names(
        frozenset([f"nvme{number}n1", f"nvme{number}", f"0000:4{number}:00.0", f"0000:50:0{number}.0"]),
        ("nvme", SWITCH, "0000:00:03.1", "pci0000:00"),
    )
    for number in range(4)
}
# Right below a root port, and behind USB.
DRIVES["nvme9n1"] = Names(frozenset(["nvme9n1", "nvme9", "0000:90:00.0", "0000:00:09.0"]), ("nvme", "pci0000:00"))
DRIVES["sdu"] = Names(frozenset(["sdu", "9:0:0:0", "1-2"]), ("usb1", SWITCH, "0000:00:03.1", "pci0000:00"))
DRIVES["sda"] = Names(frozenset(["sda", "2:0:0:0", "target2:0:0"]), ("mpt3sas_cm0", "host2", "0000:18:00.0"))
DRIVES["sdb"] = Names(frozenset(["sdb", "2:0:1:0", "target2:0:1"]), ("mpt3sas_cm0", "host2", "0000:18:00.0"))
TIMEOUT = "nvme nvme0: I/O 12 QID 3 timeout, aborting"
RESET = "nvme nvme0: I/O 12 QID 3 timeout, reset controller"
DOWN = "nvme {0}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"
ABORT = "sd 2:0:0:0: attempting task abort! scmd(1)"
DIAG = "mpt3sas_cm0: sending diag reset !!"
POWER_ON = "sd 2:0:0:0: Power-on or device reset occurred"
GONE = "nvme nvme0: Removing after probe failure status: -19"


def seen(*lines):
    """Events of (seconds, text)."""
    return [
        event for time_s, text in lines for event in kernel_log.events(kernel_log.LogRecord(1, float(time_s), text))
    ]


def counts(found):
    return found.timeouts, found.resets, found.link_resets, found.host_resets, found.is_gone


@pytest.mark.parametrize(
    "drive, lines, expected",
    [
        ("nvme0n1", [], (0, 0, 0, 0, False)),
        ("nvme0n1", [(1, TIMEOUT), (1, TIMEOUT), (31, RESET)], (3, 1, 0, 0, False)),
        # Tried again, and told in other words.
        ("nvme0n1", [(31, RESET), (32, DOWN.format("nvme0"))], (1, 1, 0, 0, False)),
        ("nvme0n1", [(31, RESET), (61, RESET)], (2, 2, 0, 0, False)),
        ("nvme0n1", [(31, RESET), (41, GONE)], (1, 1, 0, 0, True)),
        # The I/O was done: only its interrupt was lost.
        ("nvme0n1", [(1, TIMEOUT.replace("aborting", "completion polled"))], (0, 0, 0, 0, False)),
        # Of another drive, and of one that only begins alike.
        ("nvme0n1", [(1, DOWN.format("nvme1")), (1, DOWN.format("nvme01"))], (0, 0, 0, 0, False)),
        ("nvme0n1", [(1, DIAG)], (0, 0, 0, 0, False)),
        # Mostly of the cable, the backplane or the HBA.
        ("sda", [(1, POWER_ON)], (0, 0, 1, 0, False)),
        ("sda", [(1, POWER_ON), (2, POWER_ON), (30, POWER_ON)], (0, 0, 2, 0, False)),
        # What a host adapter's reset does to a drive is not the drive's, before and after.
        ("sda", [(1, DIAG), (9, POWER_ON)], (0, 0, 0, 1, False)),
        # It alone had a fault before: it led to the reset.
        ("sda", [(1, ABORT), (9, DIAG), (10, POWER_ON)], (1, 0, 1, 0, False)),
        ("sda", [(1, ABORT), (62, DIAG), (63, POWER_ON)], (1, 0, 0, 1, False)),
        ("sda", [(1, DIAG), (9, ABORT), (20, DIAG)], (0, 0, 0, 2, False)),
        ("sda", [(1, ABORT), (2, ABORT.replace("2:0:0:0", "2:0:1:0")), (9, DIAG)], (0, 0, 0, 1, False)),
        ("sdb", [(1, ABORT), (9, DIAG), (10, POWER_ON.replace("2:0:0:0", "2:0:1:0"))], (0, 0, 0, 1, False)),
        ("sda", [(1, DIAG), (90, POWER_ON)], (0, 0, 1, 1, False)),
        ("sda", [(1, DIAG), (2, "mpt3sas_cm0: sending message unit reset !!")], (0, 0, 0, 1, False)),
        ("nvme0n1", [(1, f"pcieport {SWITCH}: DPC: containment event, status:0x1 source:0x0")], (0, 0, 0, 1, False)),
        # Of its own slot: the drive's controller is reset, whoever is to blame.
        (
            "nvme0n1",
            [
                (1, "pcieport 0000:50:00.0: DPC: containment event, status:0x1 source:0x0"),
                (1, "nvme nvme0: frozen state error detected, reset controller"),
                (2, "pcieport 0000:50:00.0: AER: Downstream Port link has been reset (0)"),
            ],
            (0, 1, 0, 0, False),
        ),
        ("nvme0n1", [(1, "pcieport 0000:50:00.0: pciehp: Slot(3): Link Down")], (0, 0, 0, 0, True)),
        ("nvme0n1", [(1, "pcieport 0000:00:09.0: DPC: containment event, status:0x1 source:0x0")], (0, 0, 0, 0, False)),
        ("nvme0n1", [(1, f"pcieport {SWITCH}: pciehp: Slot(3): Link Down")], (0, 0, 0, 0, False)),
        ("nvme0n1", [(1, "I/O error, dev nvme0n1, sector 8")], (0, 0, 0, 0, False)),
    ],
)
def test_whose_the_events_are(drive, lines, expected):
    events = seen(*lines)
    assert counts(faults(drive, events, events, DRIVES)) == expected


FAULT = "mpt3sas_cm0: fault_state(0x5854)!"
NEIGHBOUR = ABORT.replace("2:0:0:0", "2:0:1:0")


@pytest.mark.parametrize(
    "drive, lines, waited",
    [
        ("sda", [], False),
        # The kernel stops all I/O of a SCSI host while it deals with one of its drives.
        ("sdb", [(1, ABORT)], True),
        ("sda", [(1, ABORT)], False),
        ("sda", [(1, ABORT), (30, NEIGHBOUR), (55, ABORT)], True),
        ("sda", [(1, ABORT), (62, NEIGHBOUR)], True),
        ("nvme0n1", [(1, ABORT)], False),
        # What the drive led to it waited for by itself.
        ("sda", [(1, ABORT), (9, DIAG)], False),
        ("sdb", [(1, ABORT), (9, DIAG)], True),
        ("sda", [(1, DIAG)], True),
        ("nvme1n1", [(1, RESET)], False),
        ("nvme1n1", [(1, f"pcieport {SWITCH}: DPC: containment event, status:0x1 source:0x0")], True),
    ],
)
def test_who_may_have_waited_for_the_host(drive, lines, waited):
    events = seen(*lines)
    assert faults(drive, events, events, DRIVES).may_have_waited == waited


def test_an_adapter_that_says_that_it_failed_was_led_to_by_nobody():
    events = seen((1, ABORT), (9, FAULT), (10, DIAG), (11, POWER_ON))
    found = faults("sda", events, events, DRIVES)
    assert (found.reason, found.led_to) == (
        "a fault of the host, not of the drive, as the kernel's log says: " + FAULT,
        [],
    )


def test_what_may_be_our_doing_excuses_and_is_nobodys_fault():
    down = seen((1, f"pcieport {SWITCH}: DPC: containment event, status:0x1 source:0x0"))
    events = seen((2, RESET))
    found = faults("nvme0n1", events, events, DRIVES, down)
    assert (counts(found), found.reason, found.may_have_waited) == ((0, 0, 0, 1, False), "", True)
    assert faults("nvme9n1", [], [], DRIVES, down).may_have_waited is False


@pytest.mark.parametrize(
    "others, is_host",
    [
        ([(1 + 60, DOWN.format("nvme1"))], True),
        ([(1 + 61, DOWN.format("nvme1"))], False),
        ([(-59, DOWN.format("nvme1"))], True),
        ([(50, DOWN.format("nvme1")), (100, DOWN.format("nvme2"))], True),
        # Another kind.
        ([(1, "nvme nvme1: I/O 12 QID 3 timeout, aborting")], False),
        ([(1, "critical medium error, dev nvme1n1, sector 8")], False),
        # Nothing is above both.
        ([(1, DOWN.format("nvme9"))], False),
        ([(1, DOWN.format("nvme10"))], False),
    ],
)
def test_what_several_drives_have_within_a_minute_is_the_hosts(others, is_host):
    measured = seen((1, DOWN.format("nvme0")))
    found = faults("nvme0n1", measured, [*measured, *seen(*others)], DRIVES)
    assert counts(found) == ((0, 0, 0, 1, False) if is_host else (0, 1, 0, 0, False))
    assert bool(found.reason) == is_host


def test_a_drive_that_is_reset_again_and_again_is_excused_once_for_another_drive():
    events = seen(*((50 * count, DOWN.format("nvme0")) for count in range(144)), (3600, DOWN.format("nvme1")))
    found = faults("nvme0n1", events, events, DRIVES)
    assert (found.resets, found.host_resets) == (141, 3)
    assert found.reason.endswith(": 2 of its drives were reset or lost within a minute, all below " + SWITCH)


def test_usb_excuses_no_drive():
    gone = "usb 1-2: USB disconnect, device number 4"
    events = seen((1, GONE), (2, gone))
    assert (faults("nvme0n1", events, events, DRIVES).is_gone, faults("sdu", events, events, DRIVES).is_gone) == (
        True,
        False,
    )


def test_namespaces_of_one_controller_do_not_excuse_each_other():
    second = Names(frozenset(["nvme0n2", *DRIVES["nvme0n1"].own - {"nvme0n1"}]), DRIVES["nvme0n1"].above)
    events = seen((1, DOWN.format("nvme0")))
    assert faults("nvme0n1", events, events, {**DRIVES, "nvme0n2": second}).resets == 1


def test_a_drive_that_led_to_the_reset_of_its_adapter_is_to_blame_alone():
    neighbour = POWER_ON.replace("2:0:0:0", "2:0:1:0")
    events = seen((1, ABORT), (9, DIAG), (10, POWER_ON), (10, neighbour))
    sick, other = (faults(drive, events, events, DRIVES) for drive in ("sda", "sdb"))
    assert (sick.reason, sick.timeouts, sick.host_resets, [event.text for event in sick.led_to]) == ("", 1, 0, [DIAG])
    assert other.reason == "a fault of the host, not of the drive, as the kernel's log says: " + DIAG


def test_timeouts_of_several_drives_alone_end_no_test():
    events = seen((1, TIMEOUT), (1, TIMEOUT), (2, TIMEOUT.replace("nvme0", "nvme1")))
    found = faults("nvme0n1", events, events, DRIVES)
    assert (counts(found), found.host_timeouts, found.reason) == ((0, 0, 0, 0, False), 2, "")
    # A reset of one of them is its own, that of both the host's.
    one = faults("nvme0n1", [*events, *seen((31, RESET))], events, DRIVES)
    assert (one.resets, one.reason, one.first_message) == (1, "", RESET)
    both = seen((31, RESET), (32, RESET.replace("nvme0", "nvme1")))
    found = faults("nvme0n1", [*events, *both], [*events, *both], DRIVES)
    assert (found.resets, bool(found.reason)) == (0, True)


def test_the_reason_is_the_same_for_all_and_names_what_they_share():
    events = seen(*((number, DOWN.format(f"nvme{number}")) for number in range(4)))
    reasons = {faults(f"nvme{number}n1", events, events, DRIVES).reason for number in range(4)}
    assert reasons == {
        "a fault of the host, not of the drive: 4 of its drives were reset or lost within a minute, "
        "all below 0000:40:01.0"
    }
    events = seen((1, DIAG), (2, POWER_ON), (2, POWER_ON.replace("2:0:0:0", "2:0:1:0")))
    reasons = {faults(drive, events, events, DRIVES).reason for drive in ("sda", "sdb")}
    assert reasons == {"a fault of the host, not of the drive, as the kernel's log says: " + DIAG}


LINES = st.sampled_from([TIMEOUT, RESET, DOWN.format("nvme0"), DOWN.format("nvme1"), GONE, DIAG, POWER_ON])


@given(st.lists(st.tuples(st.integers(0, 300), LINES), max_size=12))
def test_every_event_about_a_drive_is_either_its_own_or_the_hosts(lines):
    events = seen(*sorted(lines))
    for drive, names in DRIVES.items():
        found = faults(drive, events, events, DRIVES)
        about = [event for event in events if event.name in names.own or event.name in names.above]
        assert sorted(found.own + found.of_host + found.led_to) == sorted(about)
        assert bool(found.reason) == any(event.kind != kernel_log.TIMEOUT for event in found.of_host)
