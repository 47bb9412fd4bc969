# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ATA security erase: a password before it, none after it, whatever happens in between."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import Interrupted
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata_security, methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError

ERASE = ["ata_security_erase_enhanced", "ata_security_erase"]
READS = ("--Istdout", "--sanitize-status")
PASSWORD = ata_security.PASSWORD


@pytest.fixture
def drive(emulated_drive):
    return emulated_drive("ata")


def disable(drive):
    return ["hdparm", "--user-master", "u", "--security-disable", PASSWORD, drive.media]


def test_the_password_stands_in_the_journal_before_the_drive_has_it_and_is_gone_afterwards(drive):
    seen = []
    note = drive.note

    def journal(event, **fields):
        seen.append((event, drive.state()["security"]["password"]))
        note(event, **fields)

    drive.note = journal
    drive.purge("ata_security_erase")
    assert seen == [("purge_started", None), ("ata_password_set", None), ("ata_password_cleared", None)]
    assert drive.journal[1]["password"] == PASSWORD


@pytest.mark.parametrize(
    "faults, message, cleared",
    [
        ({"set_pass": "abort"}, "did not accept the password: .*ended with 5", True),
        ({"set_pass": "ignore"}, "reports that none is set: nothing was erased", True),
        ({"erase": "abort"}, "the security erase failed: .*ended with 5", True),
        ({"erase": "ignore"}, "its password is still on: the security erase did not take place", True),
        (
            {"erase": "abort", "disable": "abort"},
            (
                "the security erase failed.*may still have the password 'ssdlab-fleet'.*remove it with: hdparm "
                ".*--security-disable"
            ),
            False,
        ),
        ({"serial_after": "OTHER"}, "another drive.*may still have the password", False),
    ],
)
@pytest.mark.parametrize("method", ERASE)
def test_a_security_erase_that_goes_wrong_takes_the_password_off(drive, method, faults, message, cleared):
    drive.change(faults=faults)
    with pytest.raises(PurgeError, match=message):
        drive.purge(method)
    assert drive.events()[1:] == ["ata_password_set"] + ["ata_password_cleared"] * cleared
    assert not cleared or drive.state()["security"]["password"] is None
    assert ata_security.left_behind(drive.journal) is not cleared


def test_a_drive_that_froze_meanwhile_gets_no_password(drive):
    tick = drive.tick

    def freeze(share):
        drive.change(security={"frozen": True})
        tick(share)

    drive.tick = freeze  # between the check and the password
    with pytest.raises(PurgeError, match="did not accept the password"):
        drive.purge("ata_security_erase")
    assert drive.state()["security"]["password"] is None and not ata_security.left_behind(drive.journal)


def test_a_stop_before_the_password_leaves_nothing(drive):
    def stop(_share):
        raise Interrupted()

    drive.tick = stop
    with pytest.raises(Interrupted):
        drive.purge("ata_security_erase")
    assert not drive.changing(*READS) and not ata_security.left_behind(drive.journal)


@pytest.mark.parametrize("error", [Interrupted, lambda: OSError(28, "No space left on device")])
def test_a_stop_or_a_full_disk_in_the_middle_waits_for_the_erase_and_takes_the_password_off(drive, error):
    """Nothing stops a security erase, and a password can't be taken off while it runs."""
    drive.change(faults={"erase": "hang"})
    flag = drive.machine + ".hang"
    open(flag, "w").close()
    ticks = []

    def stop(share):
        ticks.append(share)
        if any("--security-erase" in argv for argv in drive.commands):
            threading.Timer(1.5, os.unlink, [flag]).start()
            raise error()

    drive.tick = stop
    with pytest.raises(type(error())):
        drive.purge("ata_security_erase")
    assert len(ticks) == 2  # not asked again after it said stop
    assert not os.path.exists(flag)
    assert drive.events()[-1] == "ata_password_cleared" and drive.state()["security"]["password"] is None


def left_behind(drive, bios_freezes=False):
    """A job of this run set the password and died with the host."""
    drive.note(ata_security.SET, password=PASSWORD)
    drive.change(security={"password": PASSWORD})
    drive.power_cycle(bios_freezes=bios_freezes)
    assert drive.state()["security"]["locked"]


def recover(drive):
    """As the campaign does it before anything else; whether there was something to do."""
    left = methods.left_behind(drive.journal)
    methods.recover(drive.host, drive.identity, list(drive.journal), drive.note)
    return left


def test_a_password_that_a_dead_job_left_is_taken_off(drive):
    left_behind(drive)
    assert recover(drive) is True
    assert drive.changing(*READS) == [disable(drive)] and drive.state()["security"]["password"] is None
    assert recover(drive) is False
    assert drive.purge("ata_security_erase")["verified"]


def test_a_job_that_died_before_the_drive_had_the_password_leaves_nothing_to_do(drive):
    drive.note(ata_security.SET, password=PASSWORD)
    assert recover(drive) is True
    assert not drive.changing(*READS) and drive.events()[-1] == ata_security.CLEARED


def test_a_password_of_somebody_else_is_never_touched(drive):
    drive.change(security={"password": "theirs", "locked": True})
    assert recover(drive) is False
    assert not drive.commands and drive.state()["security"]["attempts"] == 5


@pytest.mark.parametrize(
    "facts, bios_freezes, message",
    [
        ({}, True, "security is frozen: suspend and resume"),
        ({"attempts": 0}, False, "attempts are used up: power-cycle"),
        ({"password": "theirs"}, False, "Input/output error"),
    ],
)
def test_a_password_that_stays_on_is_told_with_what_to_do(drive, facts, bios_freezes, message):
    left_behind(drive, bios_freezes)
    drive.change(security=facts)
    with pytest.raises(PurgeError, match=message + ".*remove it with: hdparm .*started again"):
        recover(drive)
    assert ata_security.left_behind(drive.journal)


@given(
    st.fixed_dictionaries(
        {name: st.booleans() for name in ("supported", "enabled", "locked", "frozen", "expired", "enhanced")}
    ),
    st.booleans(),
)
def test_only_a_drive_without_any_obstacle_gets_a_password(security, direct):
    found = {"security": security, "direct": direct}
    clean = security["supported"] and direct and not any(security[name] for name in ("enabled", "frozen", "expired"))
    assert (methods.METHODS["ata_security_erase"].supported(found) == "") is clean
    assert (methods.METHODS["ata_security_erase_enhanced"].supported(found) == "") is (clean and security["enhanced"])


@given(st.lists(st.sampled_from([ata_security.SET, ata_security.CLEARED, "purge", "guard"])))
def test_the_last_word_on_the_password_counts(events):
    last = [event for event in events if event in (ata_security.SET, ata_security.CLEARED)][-1:]
    assert ata_security.left_behind([{"event": event} for event in events]) is (last == [ata_security.SET])
