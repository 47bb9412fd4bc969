# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purges of an emulated drive (tests/emulators/nvme) through the whole step: choose, sentinels, command,
wait, verify.
"""

from __future__ import annotations

import dataclasses
import time
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, nvme
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.purge.nvme_bed import FORMATS, SANITIZES


@pytest.mark.parametrize(
    "method, action", [("nvme_sanitize_crypto", 4), ("nvme_sanitize_block", 2), ("nvme_sanitize_overwrite", 3)]
)
def test_a_sanitize_is_watched_to_its_end_and_verified(bed, method, action):
    drive_ = bed(seconds=0.4)
    record = drive_.purge(method)
    assert record["verified"] and record["purge_class"] == "pts" and record["seconds"] >= 0.4
    assert record["verification"] == {"sentinels": 300, "survived": 0, "unreadable": 0}
    assert (
        drive_.erasing()
        == record["commands"]
        == [["nvme", "sanitize", "/dev/nvme0", f"--sanact={action}", *(["--owpass=1"] if action == 3 else [])]]
    )
    assert any(share for share in drive_.ticks) and drive_.held.checks == 1 and drive_.held.lent == []
    (started,) = drive_.notes
    assert (
        started["event"] == "purge_started"
        and started["method"] == method
        and started["commands"] == record["commands"]
    )
    assert bool(drive_.media.read_bytes().strip(b"\0")) is (action == 4)


@pytest.mark.parametrize("method, ses", [("nvme_format_crypto", 2), ("nvme_format_user_data", 1)])
def test_a_format_keeps_the_lba_format_and_is_verified(bed, method, ses):
    drive_ = bed()
    record = drive_.purge(method, timeout_s=700)
    assert record["verified"] and drive_.held.lent == []
    assert drive_.erasing() == [
        ["nvme", "format", "/dev/nvme0", "--namespace-id=1", "--lbaf=0", f"--ses={ses}", "--timeout=700000"]
    ]
    assert (
        record["lba_format_before"]
        == record["lba_format_after"]
        == {"index": 0, "data_bytes": 512, "metadata_bytes": 0, "performance": 2}
    )


def test_a_format_sets_the_lba_format_and_the_drive_is_opened_anew(bed):
    drive_ = bed()
    sysfs = "/sys/block/nvme3n1/queue/logical_block_size"
    run = drive_.run

    def kernel(argv, *more, **named):
        result = run(argv, *more, **named)
        if argv[1] == "format":
            drive_.host.put(sysfs, "4096\n")
        return result

    drive_.host.run = kernel
    record = drive_.purge("nvme_format_user_data", lba_size_bytes=4096)
    assert "--lbaf=1" in record["commands"][0] and record["verified"]
    assert (record["lba_format_before"]["data_bytes"], record["lba_format_after"]["data_bytes"]) == (512, 4096)
    assert drive_.held.lent == [("logical_block_size_bytes", "physical_block_size_bytes")]


def test_a_kernel_that_does_not_see_the_new_block_size_is_an_error(bed, monkeypatch):
    monkeypatch.setattr(nvme, "RESCAN_S", 0.1)
    with pytest.raises(PurgeError, match="does not take the new LBA size of 4096"):
        bed().purge("nvme_format_user_data", lba_size_bytes=4096)


def test_a_drive_that_comes_back_in_another_lba_format_is_an_error(bed, monkeypatch):
    drive_ = bed()
    monkeypatch.setattr(nvme, "wanted_format", lambda found, options: nvme.LbaFormat(0, 512, 0, 0))
    run = drive_.run

    def disturb(argv, *more, **named):
        result = run(argv, *more, **named)
        if argv[1] == "format":
            facts = drive_.facts()
            facts["namespaces"]["1"].update(lbaf=1)
            drive_.write(facts)
        return result

    drive_.host.run = disturb
    with pytest.raises(PurgeError, match="came back with LBA format 1, not 0"):
        drive_.purge("nvme_format_user_data")


def test_metadata_and_protection_are_kept(bed):
    drive_ = bed()
    found = dataclasses.replace(nvme.capabilities(drive_.host, drive_.identity()), flbas=0x10, dps=0x9)
    (argv,) = methods.METHODS["nvme_format_user_data"].commands(found, PlannedPurge("auto"))
    assert argv[-3:] == ["--ms=1", "--pi=1", "--pil=1"]


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_drive_that_erases_nothing_is_not_verified(bed, method):
    record = bed(mode="nothing").purge(method)
    assert record["verified"] is False and record["verification"]["survived"] == 300


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_no_force_is_given_and_ses_is_never_0(bed, method):
    (argv,) = bed().offers()[method].commands
    assert not [word for word in argv if "force" in word or word in ("--ses=0", "-f", "--ause", "--no-dealloc")]
    assert argv[2] == "/dev/nvme0"


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_command_that_fails_is_told_in_its_words(bed, method):
    with pytest.raises(PurgeError, match=r"ended with 1: NVMe status: Invalid F"):
        bed(mode="refuses").purge(method)


@pytest.mark.parametrize(
    "mode, options, message",
    [
        ("failed", {}, "the drive says that the purge failed"),
        ("stuck", {"stuck_s": 1}, "purge stuck: no progress for 1 s, at 37.*purge_stuck_s"),
        ("stuck", {"timeout_s": 1}, "purge stuck: not done after 1 s.*purge_timeout_s"),
    ],
)
def test_a_sanitize_that_fails_or_stands_still_is_an_error(bed, mode, options, message):
    with pytest.raises(PurgeError, match=message):
        bed(mode=mode).purge("nvme_sanitize_block", **options)


def test_a_sanitize_log_that_is_garbage_ends_in_an_error_before_anything_is_sent(bed):
    drive_ = bed(mode="silent")
    with pytest.raises(PurgeError, match="does not report its sanitize status"):
        drive_.purge("nvme_sanitize_block")
    assert drive_.erasing() == []


def test_a_sanitize_that_we_did_not_start_is_left_alone(bed):
    drive_ = bed(sanitize={"status": 2, "started": time.time(), "seconds": 60, "action": 2})
    with pytest.raises(PurgeError, match="this run did not start") as caught:
        drive_.purge("nvme_sanitize_block")
    assert caught.value.code == "sanitize_running" and drive_.erasing() == []


@pytest.mark.parametrize(
    "facts, chosen",
    [
        ({}, "nvme_sanitize_crypto"),
        ({"sanicap": 6}, "nvme_sanitize_block"),
        ({"sanicap": 4}, "nvme_format_crypto"),
        ({"sanicap": 4, "fna": 0}, "nvme_format_user_data"),
        ({"sanicap": 4, "oacs": 0}, "nvme_sanitize_overwrite"),
        ({"sanicap": 0, "oacs": 0}, "deallocate"),
    ],
)
def test_auto_takes_the_strongest_that_the_drive_reports(bed, facts, chosen):
    drive_ = bed(**facts)
    assert methods.choose("auto", list(drive_.offers().values())).method == chosen


@pytest.mark.parametrize("size, index", [(None, 0), (512, 0), (4096, 2)])
def test_of_a_wanted_lba_size_the_fastest_format_without_metadata_is_taken(size, index):
    formats = [(0, 512, 0, 3), (1, 4096, 8, 0), (2, 4096, 0, 0), (3, 4096, 0, 2), (4, 512, 0, 0)]
    found = types.SimpleNamespace(lba_format=0, lba_formats=[nvme.LbaFormat(*item) for item in formats])
    assert nvme.wanted_format(found, PlannedPurge("auto", lba_size_bytes=size)).index == index


def test_an_lba_size_that_the_drive_lacks_is_unsupported_with_what_it_has(bed):
    offered = bed().offers(lba_size_bytes=8192)
    assert (
        "it has: 512, 4096" in offered["nvme_format_crypto"].reason
        and "cannot change" in offered["nvme_sanitize_crypto"].reason
    )
    assert not any(offer.supported for offer in offered.values())
