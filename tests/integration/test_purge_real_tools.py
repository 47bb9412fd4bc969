# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real hdparm and sg3_utils, where they are installed, open a drive that we hold, and take our argument lists."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata, methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import ScsiDrive

REAL = "/usr/sbin:/usr/bin:/sbin:/bin"
# Exit codes of a tool that did not understand its options (sg3_utils(8): 1 syntax, 31 contradiction), or was kept out
# by our hold (50 + EBUSY, EBUSY).
MISUNDERSTOOD, KEPT_OUT = (1, 31), (66, 16)


def needs_real(*tools):
    for tool in tools:
        if shutil.which(tool, path=REAL) is None:
            pytest.skip("no " + tool)


@pytest.fixture
def exclusive(loop_drive):
    """A loop device that this process holds exclusively, as the host job does."""
    path = loop_drive().path
    handle = os.open(path, os.O_RDWR | os.O_EXCL | os.O_DIRECT)
    yield path
    os.close(handle)


def real(argv):
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": REAL, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    "method",
    [*(method.name for method in ata.METHODS), *(name for name in methods.METHODS if name.startswith("scsi_"))],
)
def test_the_real_tools_take_our_argument_lists_and_open_what_we_hold(exclusive, method):
    needs_real("hdparm", "sg_sanitize", "sg_format")
    found = ScsiDrive(exclusive, None, 512, 3, [])  # as an AtaDrive it has a path
    for argv in methods.METHODS[method].commands(found, PlannedPurge(method, passes=2)):
        done = real(argv)
        assert done.returncode not in (*MISUNDERSTOOD, *KEPT_OUT), done
        assert "busy" not in done.stderr.lower() and "usage" not in (done.stdout + done.stderr).lower()
        assert "VERY DANGEROUS" not in done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ["hdparm", "--Istdout"],
        ["hdparm", "--sanitize-status"],
        ["hdparm", "--user-master", "u", "--security-disable", "ssdlab-fleet"],
        ["sg_opcodes", "--opcode=0x48,0x3", "--hex"],
        ["sg_opcodes", "--opcode=0x04", "--hex"],
        ["sg_requests", "--hex"],
        ["sg_turs"],
    ],
)
def test_the_real_tools_take_our_questions_and_open_what_we_hold(exclusive, argv):
    needs_real(argv[0])
    done = real([*argv, exclusive])
    assert done.returncode not in (*MISUNDERSTOOD, *KEPT_OUT), done
    assert "busy" not in done.stderr.lower() and "usage" not in (done.stdout + done.stderr).lower()


def test_a_real_hdparm_without_an_answer_is_an_error_though_it_ends_with_0(exclusive):
    needs_real("hdparm")
    assert real(["hdparm", "--Istdout", exclusive]).returncode == 0
    with pytest.raises(PurgeError, match="0 of the 256 words"):
        ata.capabilities(Host(), Identity(transport="sata", path=exclusive, kernel_name=os.path.basename(exclusive)))


def test_an_exclusive_opener_would_have_been_kept_out(exclusive):
    assert real(["blkdiscard", exclusive]).returncode != 0
