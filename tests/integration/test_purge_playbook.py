# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""purge.yml as users run it, at a loop device: what plan mode prints, and what is refused before anything is erased."""

from __future__ import annotations

import json

import pytest
from command_log import destructive

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import COMMAND_LOG


@pytest.fixture
def drive(site, loop_drive):
    made = loop_drive()
    site.hosts = {"rack1-07": {"ssd_drives": [made.selector]}}
    return made


def commands(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_plan_mode_prints_the_method_why_and_the_exact_argument_list(site, drive, tmp_path):
    before = drive.digest()
    code, output = site.play(
        "purge", "-e", "ssd_mode=plan", "-e", "purge_timeout_s=77", env={COMMAND_LOG: str(tmp_path / "log")}
    )
    assert code == 0, output
    assert (
        "purge by deallocate (auto: the strongest that the drive offers), not a PTS purge (not_pts), "
        "given up after 1 min 17 s"
    ) in output
    assert f"ioctl BLKDISCARD {drive.path} 0 {64 << 20}" in output
    assert drive.digest() == before and not [argv for argv in commands(tmp_path / "log") if destructive(argv)]


@pytest.mark.parametrize(
    "extra, said",
    [
        (
            ["purge_method=nvme_format_crypto"],
            (
                "drive {0}: purge_unsupported: this purge cannot be used: purge_method nvme_format_crypto is not for "
                "this kind of drive"
            ),
        ),
        (
            ["purge_lba_size_bytes=4096"],
            "drive {0}: purge_unsupported: this purge cannot be used: no purge method can be used: not deallocate, "
            "overwrite: ",
        ),
        (["purge_method=nvme_format_cripto", "purge_stuck_s=never"], "did you mean nvme_format_crypto?"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_erased(site, drive, tmp_path, extra, said):
    before = drive.digest()
    code, output = site.play(
        "purge", *(word for item in extra for word in ("-e", item)), env={COMMAND_LOG: str(tmp_path / "log")}
    )
    assert code != 0 and said.format(f"{drive.file} ({drive.path})") in output, output
    assert drive.digest() == before and not [argv for argv in commands(tmp_path / "log") if destructive(argv)]
    assert site.run_folders() == []
