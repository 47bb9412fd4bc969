# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purging a SAS drive: sanitize and format through the emulators of sg3_utils, run as commands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import Interrupted
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, scsi
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import ScsiDrive

METHODS = ["scsi_sanitize_crypto", "scsi_sanitize_block", "scsi_sanitize_overwrite", "scsi_format_unit"]
READS = ("sg_opcodes", "sg_requests", "sg_turs")
DISK = "/sys/block/sda/device"


@pytest.fixture
def drive(emulated_drive):
    return emulated_drive("scsi")


@pytest.mark.parametrize("descriptor", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_purge_runs_what_it_announced_and_nothing_else(drive, method, descriptor):
    drive.change(descriptor=descriptor)
    announced = drive.offers()[method].commands
    del drive.commands[:]
    record = drive.purge(method)
    assert drive.changing(*READS) == announced == record["commands"]
    assert (record["method"], record["purge_class"], record["verified"]) == (method, "pts", True)
    assert [share for share in drive.shares if share] == pytest.approx([0.25, 0.5, 0.75])


def test_auto_takes_the_strongest(drive):
    for method, name in zip(METHODS, ["crypto", "block", "overwrite", "format"]):
        assert drive.purge("auto")["method"] == method
        drive.change(commands=[command for command in drive.state()["commands"] if command != name])
    with pytest.raises(PurgeError, match="none of those that purge"):
        drive.purge("scsi_format_unit")


@pytest.mark.parametrize(
    "facts, method, reason",
    [
        (
            {"commands": ["format", "block"]},
            "scsi_sanitize_crypto",
            "does not have SANITIZE, cryptographic erase; it has: SANITIZE, block erase, FORMAT UNIT",
        ),
        ({"faults": {"silent": True}}, "scsi_sanitize_block", "could not be asked.*ended with 72"),
    ],
)
def test_what_the_drive_cannot_do_is_said_and_not_tried(drive, facts, method, reason):
    drive.change(**facts)
    with pytest.raises(PurgeError, match=reason):
        drive.purge(method)
    assert not drive.changing(*READS) and "purge_started" not in drive.events()


@pytest.mark.parametrize("transport", ["nvme", "sata", "iscsi", "fc"])
def test_drives_that_are_not_sas_are_left_alone(drive, transport):
    assert scsi.capabilities(drive.host, replace(drive.identity, transport=transport)) is None
    assert not drive.commands


@pytest.mark.parametrize("transport", ["usb", None])
def test_a_disk_behind_another_path_is_asked(drive, transport):
    found = scsi.capabilities(drive.host, replace(drive.identity, transport=transport))
    assert found and found.commands == METHODS


@pytest.mark.parametrize("method", METHODS)
def test_a_command_that_the_drive_does_not_tell_of_is_tried_when_named(drive, method):
    drive.change(faults={"no_rsoc": True})
    record = drive.purge(method)
    assert (record["method"], record["verified"]) == (method, True)


def test_a_named_command_that_the_drive_turns_out_not_to_have(drive):
    drive.change(faults={"no_rsoc": True}, commands=["format"])
    with pytest.raises(PurgeError, match="did not start SANITIZE, block erase"):
        drive.purge("scsi_sanitize_block")


def test_a_host_without_sg3_utils_is_told(drive, monkeypatch):
    monkeypatch.setattr(drive.host, "run", lambda argv, **_: Result(list(argv), 127, "", "cannot run sg_opcodes"))
    assert "install sg3-utils" in drive.offers()["scsi_sanitize_crypto"].reason


START = ["--quick", "--early", "--timeout=300"]


@pytest.mark.parametrize(
    "method, options, protection, argv",
    [
        ("scsi_sanitize_crypto", {}, "0", ["sg_sanitize", "--crypto", *START]),
        ("scsi_sanitize_block", {}, "0", ["sg_sanitize", "--block", *START]),
        ("scsi_sanitize_overwrite", {}, "0", ["sg_sanitize", "--overwrite", "--zero", "--count=1", *START]),
        ("scsi_sanitize_overwrite", {"passes": 3}, "0", ["sg_sanitize", "--overwrite", "--zero", "--count=3", *START]),
        (
            "scsi_sanitize_overwrite",
            {"passes": 99},
            "0",
            ["sg_sanitize", "--overwrite", "--zero", "--count=31", *START],
        ),
        ("scsi_format_unit", {}, "0", ["sg_format", "--format", "--size=512", *START]),
        ("scsi_format_unit", {"lba_size_bytes": 4096}, "0", ["sg_format", "--format", "--size=4096", *START]),
        ("scsi_format_unit", {}, "1", ["sg_format", "--format", "--size=512", "--fmtpinfo=2", *START]),
        ("scsi_format_unit", {}, "2", ["sg_format", "--format", "--size=512", "--fmtpinfo=3", *START]),
        ("scsi_format_unit", {}, "3", ["sg_format", "--format", "--size=512", "--fmtpinfo=3", "--pfu=1", *START]),
    ],
)
def test_the_argument_lists(drive, method, options, protection, argv):
    drive.host.put(drive.host.realpath(DISK) + "/scsi_disk/0:0:0:0/protection_type", protection + "\n")
    assert drive.offers(**options)[method].commands == [[*argv, drive.media]]


@pytest.mark.parametrize("protection", ["", "7", "none"])
def test_no_format_where_the_protection_type_is_unknown(drive, protection):
    drive.host.put(drive.host.realpath(DISK) + "/scsi_disk/0:0:0:0/protection_type", protection)
    offers = drive.offers()
    assert "protection type is unknown" in offers["scsi_format_unit"].reason and offers["scsi_sanitize_block"].supported


def test_only_a_format_changes_the_block_size_and_the_kernel_reads_it_anew(drive):
    drive.host.put(drive.host.realpath(DISK) + "/rescan", "")
    offers = drive.offers(lba_size_bytes=4096)
    assert [name for name, offer in offers.items() if offer.supported] == ["scsi_format_unit"]
    drive.purge("scsi_format_unit", lba_size_bytes=4096)
    assert drive.state()["block_bytes"] == 4096 and drive.host.read(DISK + "/rescan") == "1"
    assert drive.commands[-1][0] == "lend" and "logical_block_size_bytes" in drive.commands[-1]


def test_a_format_that_keeps_the_block_size_lends_nothing(drive):
    drive.purge("scsi_format_unit", lba_size_bytes=512)
    assert drive.state()["block_bytes"] == 512 and not any(argv[0] == "lend" for argv in drive.commands)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "facts, message",
    [
        ({"keys": ["0000000000000001"]}, "did not start .*ended with 24: another host holds a reservation"),
        ({"faults": {"start": 7}}, "did not start .*write-protected or locked"),
        ({"faults": {"start": 33}}, "did not start .*ended with 33: the drive gave no answer in time"),
        ({"faults": {"fail": True}}, "the purge failed: the last (sanitize|format) failed"),
        ({"faults": {"stuck": True}}, "purge stuck: no progress for 5 s, at 50"),
    ],
)
def test_a_purge_that_goes_wrong(drive, method, facts, message):
    drive.change(**facts)
    with pytest.raises(PurgeError, match=message):
        drive.purge(method, stuck_s=5)


def test_a_drive_that_is_never_ready_again(drive):
    drive.change(faults={"never_ready": True})
    with pytest.raises(PurgeError, match="its last answer: sg_turs .*the drive is not ready"):
        drive.purge("scsi_sanitize_block", stuck_s=3)


def test_a_purge_that_takes_too_long(drive):
    drive.change(step=1e-9)
    with pytest.raises(PurgeError, match="not done after 5 s"):
        drive.purge("scsi_sanitize_block", timeout_s=5)


@pytest.mark.parametrize("faults", [{"erases_nothing": True}, {"ignore": True}])
@pytest.mark.parametrize("method", METHODS)
def test_a_purge_that_left_the_data_is_not_verified(drive, method, faults):
    drive.change(faults=faults)
    assert drive.purge(method)["verified"] is False


def test_unit_attentions_are_passed_over(drive):
    drive.change(attentions=1)
    assert drive.offers()["scsi_sanitize_crypto"].supported
    drive.change(attentions=2)
    assert drive.purge("scsi_sanitize_crypto")["verified"]


def test_a_sanitize_that_runs_already_is_waited_for(drive):
    drive.change(operation="sanitize", running="block")
    assert drive.purge("scsi_sanitize_crypto")["waited_for_another"] is True
    assert [argv[:2] for argv in drive.changing(*READS)] == [["sg_sanitize", "--crypto"]]


@pytest.mark.parametrize(
    "method, states",
    [
        ("scsi_sanitize_block", ["running", "running", "running", "done"]),
        ("scsi_format_unit", ["failed", "failed", "failed", "failed"]),
    ],
)
def test_after_a_stop_and_a_power_loss_a_sanitize_goes_on_and_a_format_has_failed(drive, method, states):
    def stop(_share):
        raise Interrupted()

    drive.tick, work = stop, drive.work()
    found = methods.probe(work.host, work.identity)["scsi"]
    with pytest.raises(Interrupted):
        drive.purge(method)
    drive.change(share=0.0)
    drive.power_cycle()
    drive.change(attentions=0)
    assert [methods.METHODS[method].progress(work, found).state for _poll in range(4)] == states
    drive.tick = lambda share: None
    assert drive.purge(method)["verified"]


@given(st.integers(1, 10**14), st.one_of(st.none(), st.integers(0, 99)), st.one_of(st.none(), st.integers(1, 10**6)))
def test_what_writes_all_of_the_medium_has_time_for_each_pass(size, passes, given_s):
    found, options = ScsiDrive("", size, 512, 0, []), PlannedPurge("auto", passes=passes, timeout_s=given_s)
    limits = {name: methods.METHODS[name].timeout_s(found, options) for name in METHODS}
    assert limits["scsi_sanitize_overwrite"] == (given_s or round(1800 + size * max(1, min(31, passes or 1)) / 50e6))
    assert limits["scsi_sanitize_crypto"] == (given_s or round(1800 + size / 50e6))


@given(st.text(max_size=200), st.text(max_size=100), st.integers(-15, 255))
def test_whatever_the_tools_say_is_a_refusal(stdout, stderr, rc):
    class Garbage(Host):
        def run(self, argv, timeout_s=60, stdin=None, **_more):
            return Result(list(argv), rc, stdout, stderr)

    with pytest.raises(PurgeError):
        scsi.capabilities(
            Garbage("/nowhere"), Identity(transport="sas", path="/dev/sda", kernel_name="sda", size_bytes=1)
        )
