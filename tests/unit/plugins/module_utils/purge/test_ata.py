# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purging a SATA drive: every state of its security and sanitize, through the emulator of hdparm, run as a command. The
ATA security erase: a password before it, none after it, whatever happens in between.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import Interrupted
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata, begun, methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import AtaDrive, AtaSecurity

SANITIZE = ["ata_sanitize_crypto", "ata_sanitize_block"]
ERASE = ["ata_security_erase_enhanced", "ata_security_erase"]
READS = ("--Istdout", "--sanitize-status")


@pytest.fixture
def drive(emulated_drive):
    return emulated_drive("ata")


@pytest.mark.parametrize("method", SANITIZE + ERASE)
def test_a_purge_runs_what_it_announced_and_nothing_else(drive, method):
    announced = drive.offers()[method].commands
    del drive.commands[:]
    record = drive.purge(method)
    assert drive.changing(*READS) == announced == record["commands"]
    assert (record["method"], record["purge_class"], record["verified"]) == (method, "pts", True)
    assert drive.state()["security"]["password"] is None


def test_auto_takes_the_strongest(drive):
    assert drive.purge("auto")["method"] == "ata_sanitize_crypto"
    drive.change(sanitize={"operations": []})
    assert drive.purge("auto")["method"] == "ata_security_erase_enhanced"


@pytest.mark.parametrize(
    "facts, method, reason",
    [
        (
            {"sanitize": {"operations": ["block_erase"]}},
            "ata_sanitize_crypto",
            "lists no crypto_scramble .it lists: block_erase",
        ),
        ({"sanitize": {"operations": []}}, "ata_sanitize_block", "no sanitize at all"),
        ({"sanitize": {"state": "SD1"}}, "ata_sanitize_block", "frozen until the next power cycle; suspend and resume"),
        ({"security": {"password": "x", "locked": True}}, "ata_sanitize_crypto", "locked by a password"),
        ({"security": {"supported": False}}, "ata_security_erase", "no security feature set"),
        ({"security": {"enhanced": False}}, "ata_security_erase_enhanced", "no enhanced"),
        ({"security": {"frozen": True}}, "ata_security_erase", "security is frozen; suspend and resume"),
        ({"security": {"password": "x"}}, "ata_security_erase", "password is set that this collection did not set"),
        (
            {"security": {"password": "x", "locked": True}},
            "ata_security_erase",
            "password is set that this collection did not set",
        ),
        (
            {"security": {"password": "x", "locked": True, "attempts": 0}},
            "ata_security_erase",
            "attempts are used up; power-cycle",
        ),
        ({"faults": {"silent": True}}, "ata_sanitize_crypto", "0 of the 256 words"),
        ({"serial": "OTHER"}, "ata_security_erase", "another drive"),
    ],
)
def test_what_the_drive_cannot_do_is_said_and_not_tried(drive, facts, method, reason):
    drive.change(**facts)
    with pytest.raises(PurgeError, match=reason):
        drive.purge(method)
    assert not drive.changing(*READS) and "purge_started" not in drive.events()


def test_an_enhanced_erase_that_is_not_there_does_not_hinder_the_normal_one(drive):
    drive.change(security={"enhanced": False})
    assert drive.offers()["ata_security_erase"].supported


@pytest.mark.parametrize(
    "place", ["/sys/devices/pci0000:00/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0", "/sys/devices/virtual"]
)
def test_no_security_erase_behind_an_adapter(drive, place):
    """It may cut the long command short, and leave the drive locked; a sanitize is short commands."""
    block = drive.host.disk("sdb", "8:16", place)
    drive.identity = replace(drive.identity, kernel_name=os.path.basename(block))
    offers = drive.offers()
    assert "not on an AHCI port" in offers["ata_security_erase"].reason and offers["ata_sanitize_crypto"].supported


@pytest.mark.parametrize("transport", ["nvme", "usb", "sas", "loop", None])
def test_drives_that_are_not_sata_are_left_alone(drive, transport):
    assert ata.capabilities(drive.host, replace(drive.identity, transport=transport)) is None
    assert not drive.commands


def test_a_host_without_hdparm_is_told(drive, monkeypatch):
    monkeypatch.setattr(drive.host, "run", lambda argv, **_: Result(list(argv), 127, "", "cannot run hdparm"))
    assert "install it" in drive.offers()["ata_sanitize_crypto"].reason


# --- sanitize ---------------------------------------------------------------------------------------------------------


def test_the_progress_is_shown(drive):
    drive.purge("ata_sanitize_block")
    assert [share for share in drive.shares if share] == pytest.approx([0.25, 0.5, 0.75], abs=0.01)


@pytest.mark.parametrize(
    "faults, message",
    [
        ({"sanitize": "abort"}, "did not start the sanitize: hdparm .*ended with 5"),
        ({"sanitize": "fail"}, "the purge failed: the last sanitize failed"),
        ({"sanitize": "stuck"}, "purge stuck: no progress for 5 s, at 50"),
        ({"sanitize": "ignore"}, "no purge was started"),
        ({"serial_after": "OTHER"}, "another drive"),
    ],
)
def test_a_sanitize_that_goes_wrong(drive, faults, message):
    drive.change(faults=faults)
    with pytest.raises(PurgeError, match=message):
        drive.purge("ata_sanitize_block", stuck_s=5)


def test_a_sanitize_that_takes_too_long(drive):
    drive.change(sanitize={"step": 1e-9})
    with pytest.raises(PurgeError, match="not done after 5 s"):
        drive.purge("ata_sanitize_block", timeout_s=5)


@pytest.mark.parametrize("method", SANITIZE + ERASE)
def test_a_purge_that_left_the_data_is_not_verified(drive, method):
    drive.change(faults={"erases_nothing": True})
    assert drive.purge(method)["verified"] is False


def test_a_drive_whose_sanitize_failed_may_try_again(drive):
    drive.change(sanitize={"state": "SD3"})
    assert drive.purge("ata_sanitize_block")["verified"]


def test_a_sanitize_that_runs_already_is_waited_for(drive):
    drive.change(sanitize={"state": "SD2", "running": "block_erase", "share": 0.1})
    assert drive.purge("ata_sanitize_crypto")["waited_for_another"] is True
    assert [argv[2] for argv in drive.changing(*READS)] == ["--sanitize-crypto-scramble"]


def test_a_stop_ends_the_wait_and_the_sanitize_goes_on_through_a_power_loss(drive):
    def stop(_share):
        raise Interrupted()

    drive.tick, work = stop, drive.work()
    found = methods.probe(work.host, work.identity)["ata"]
    with pytest.raises(Interrupted):
        drive.purge("ata_sanitize_block")
    drive.power_cycle()
    method = methods.METHODS["ata_sanitize_block"]
    states = [method.progress(work, found).state for _poll in range(4)]
    assert states[0] == "running" and states[-1] == "done"


def test_registers_that_do_not_come_back_are_no_support_and_no_success(drive, monkeypatch):
    """An adapter as in tests/fixtures/commands/hdparm: hdparm says idle or started, and ends with 0."""
    run = drive.host.run

    def lossy(argv, **kwargs):
        result = run(argv, **kwargs)
        return (
            result
            if "--Istdout" in argv
            else result._replace(rc=0, stderr="SG_IO: bad/missing sense data, sb[]:  f0 00\n")
        )

    drive.change(sanitize={"succeeded": True})
    capabilities = methods.probe(drive.host, drive.identity)["ata"]
    monkeypatch.setattr(drive.host, "run", lossy)
    assert "no ATA registers" in drive.offers()["ata_sanitize_block"].reason
    work = drive.work()
    with pytest.raises(PurgeError):
        methods.METHODS["ata_sanitize_block"].run(work, capabilities)


def test_a_start_whose_outcome_is_unknown_does_not_count_on_an_older_success(drive, monkeypatch):
    run = drive.host.run
    drive.change(sanitize={"succeeded": True}, faults={"sanitize": "ignore"})

    def lossy(argv, **kwargs):
        result = run(argv, **kwargs)
        return result._replace(stderr="SG_IO: bad/missing sense data") if "--sanitize-block-erase" in argv else result

    monkeypatch.setattr(drive.host, "run", lossy)
    with pytest.raises(PurgeError, match="did not start the sanitize"):
        drive.purge("ata_sanitize_block")


# --- security erase ---------------------------------------------------------------------------------------------------


def test_a_drive_that_is_silent_for_a_moment_is_asked_again(drive, monkeypatch):
    run, left = drive.host.run, [3]

    def silent(argv, **kwargs):
        result = run(argv, **kwargs)
        if "--Istdout" in argv and any("--security-erase" in done for done in drive.commands) and left[0]:
            left[0] -= 1
            return result._replace(stdout="\n/dev/sda:\n")
        return result

    monkeypatch.setattr(drive.host, "run", silent)
    assert drive.purge("ata_security_erase")["verified"] and drive.now == 5 + 15 + 30


@pytest.mark.parametrize(
    "minutes, size, given, expected",
    [
        (2, 0, None, 2 * 60 + 3600 + 300),
        (None, 4 * 10**12, None, 131057),
        (508, 4 * 10**12, None, 129257),
        (65532, 0, None, 65532 * 60 + 3900),
        (2, 0, 77, 77),
    ],
)
def test_the_timeout_is_longer_than_hdparms_own(minutes, size, given, expected):
    security = AtaSecurity(True, False, False, False, False, True, minutes, minutes)
    found = AtaDrive("", size, [], None, "", security, True)
    for method in ERASE:
        assert methods.METHODS[method].timeout_s(found, PlannedPurge(method, timeout_s=given)) == expected


@given(st.text(max_size=200), st.text(max_size=200), st.integers(-15, 255))
def test_whatever_hdparm_says_is_a_refusal_or_a_purge_error(stdout, stderr, rc):
    class Garbage(Host):
        def run(self, argv, timeout_s=60, stdin=None, **_more):
            return Result(list(argv), rc, stdout, stderr)

    identity = Identity(transport="sata", path="/dev/sda", kernel_name="sda", size_bytes=1)
    with pytest.raises(PurgeError):
        ata.capabilities(Garbage("/nowhere"), identity)


PASSWORD = ata.PASSWORD


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
    assert begun.has_our_password(drive.journal) is not cleared


def test_a_drive_that_froze_meanwhile_gets_no_password(drive):
    tick = drive.tick

    def freeze(share):
        drive.change(security={"frozen": True})
        tick(share)

    drive.tick = freeze  # between the check and the password
    with pytest.raises(PurgeError, match="did not accept the password"):
        drive.purge("ata_security_erase")
    assert drive.state()["security"]["password"] is None and not begun.has_our_password(drive.journal)


def test_a_stop_before_the_password_leaves_nothing(drive):
    def stop(_share):
        raise Interrupted()

    drive.tick = stop
    with pytest.raises(Interrupted):
        drive.purge("ata_security_erase")
    assert not drive.changing(*READS) and not begun.has_our_password(drive.journal)


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
    drive.note(begun.PASSWORD_SET, password=PASSWORD)
    drive.change(security={"password": PASSWORD})
    drive.power_cycle(bios_freezes=bios_freezes)
    assert drive.state()["security"]["locked"]


def recover(drive):
    """As the campaign does it before anything else; whether there was something to do."""
    left = begun.has_our_password(drive.journal)
    if left:
        ata.recover(drive.work())
    return left


def test_a_password_that_a_dead_job_left_is_taken_off(drive):
    left_behind(drive)
    assert recover(drive) is True
    assert drive.changing(*READS) == [disable(drive)] and drive.state()["security"]["password"] is None
    assert recover(drive) is False
    assert drive.purge("ata_security_erase")["verified"]


def test_a_job_that_died_before_the_drive_had_the_password_leaves_nothing_to_do(drive):
    drive.note(begun.PASSWORD_SET, password=PASSWORD)
    assert recover(drive) is True
    assert not drive.changing(*READS) and drive.events()[-1] == begun.PASSWORD_CLEARED


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
    assert begun.has_our_password(drive.journal)


@given(
    st.fixed_dictionaries(
        {name: st.booleans() for name in ("supported", "enabled", "locked", "frozen", "expired", "enhanced")}
    ),
    st.booleans(),
)
def test_only_a_drive_without_any_obstacle_gets_a_password(security, direct):
    state = AtaSecurity(**security, erase_min=None, enhanced_erase_min=None)
    found = AtaDrive("/dev/sda", None, [], None, "", state, direct)
    clean = security["supported"] and direct and not any(security[name] for name in ("enabled", "frozen", "expired"))
    assert (methods.METHODS["ata_security_erase"].supported(found) == "") is clean
    assert (methods.METHODS["ata_security_erase_enhanced"].supported(found) == "") is (clean and security["enhanced"])


@given(st.lists(st.sampled_from([begun.PASSWORD_SET, begun.PASSWORD_CLEARED, "purge", "guard"])))
def test_the_last_word_on_the_password_counts(events):
    last = [event for event in events if event in (begun.PASSWORD_SET, begun.PASSWORD_CLEARED)][-1:]
    assert begun.has_our_password([{"event": event} for event in events]) is (last == [begun.PASSWORD_SET])
