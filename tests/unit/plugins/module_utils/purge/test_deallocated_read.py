# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive promises of deallocated blocks, by its family, and what a purge makes of that."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, purge_step, scsi
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import Verification

PAGE = "/sys/block/sda/device/vpd_pgb2"
# SBC-4, 6.6.4: PAGE CODE B2h, PAGE LENGTH 4, then a threshold exponent and the byte with LBPRZ (4:2).
HEADER = b"\x00\xb2\x00\x04\x01"


@pytest.mark.parametrize(
    ("page", "reads"),
    [
        (HEADER + b"\x84\x02\x00", "zeros"),
        (HEADER + b"\x8c\x02\x00", "zeros"),
        # 010b is the initialization pattern that the drive has for it.
        (HEADER + b"\x88\x02\x00", None),
        (HEADER + b"\x80\x02\x00", None),
        (b"\x00\xb2", None),
        (None, None),
    ],
)
def test_a_sas_drive_tells_by_a_page_that_newer_kernels_show(emulated_drive, page, reads):
    drive = emulated_drive("scsi")
    if page is not None:
        drive.host.put(PAGE, page)
    assert scsi.capabilities(drive.host, drive.identity).deallocated_read == reads


@pytest.mark.parametrize(("trim", "reads"), [(["TRIM", "DRAT", "RZAT"], "zeros"), (["TRIM"], None)])
@pytest.mark.parametrize(
    ("method", "holds"), [("deallocate", True), ("overwrite", False), ("ata_sanitize_block", False)]
)
def test_a_promise_is_of_methods_that_deallocate(emulated_drive, trim, reads, method, holds):
    drive = emulated_drive("ata", trim=trim)
    found = methods.probe(drive.host, drive.identity)
    assert methods.promise(method, found) == (reads if holds else None)


def test_a_family_that_gave_no_answer_promises_nothing(emulated_drive):
    drive = emulated_drive("ata", trim=["TRIM", "DRAT", "RZAT"], faults={"silent": True})
    found = methods.probe(drive.host, drive.identity)
    assert methods.promise("deallocate", found) is None


@pytest.mark.parametrize(
    ("survived", "promise", "unlike", "text"),
    [
        (0, None, None, ""),
        (3, None, None, ""),
        (0, "zeros", 0, ""),
        (3, "zeros", 3, "it promises zeros for deallocated blocks, and returned old data in 3 of 32"),
        (0, "ones", 2, "it promises ones for deallocated blocks, and returned something else in 2 of 32"),
        (
            3,
            "zeros",
            5,
            "it promises zeros for deallocated blocks, and returned old data in 3 of 32 and something else in 2 of 32",
        ),
    ],
)
def test_a_broken_promise_has_its_own_words(survived, promise, unlike, text):
    assert purge_step.broken_promise(Verification(32, survived, 0, promise, unlike)) == text
