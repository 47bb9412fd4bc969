# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Case 105 of docs/wrong-drives.md: a drive that cannot give one of its blocks."""

from __future__ import annotations

import pytest
import simulated_ssd as simulator
from wrong_drive import MIB, run

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check

FIGURES = {"fresh_iops": 50_000, "steady_iops": 50_000, "read_iops": 50_000}


@pytest.mark.case(105)
@pytest.mark.parametrize(
    "place, code",
    [
        (8 * MIB + (300 << 10), "unsigned_data"),
        (0, "probe_failed"),
        (4 << 10, "probe_failed"),
        (512 << 10, "probe_failed"),
        (3 * MIB, "probe_failed"),
        (12 * MIB, "probe_failed"),
    ],
)
def test_case_105_a_block_that_cannot_be_read(tmp_path, place, code):
    """It counts as data, where it can't hide what tells that the drive belongs to a volume of several."""
    lies = simulator.model_plugin(16 * MIB, **FIGURES, lies=f"read-error:{place}")
    with simulator.simulated_ssd(tmp_path / "drives", "disputed", lies) as record:
        # Such a drive loses what was written.
        run("dd", "if=/dev/zero", f"of={record['device']}", "bs=1M", "count=16", "oflag=direct")
        found, lifted = (
            guard_check.inspect(Host(), [parse({"backing_file": record["backing_file"], **options})])[0]
            for options in ({}, {"ssd_overwrite_data": True, "allow": ["signature", "partition_table"]})
        )
    assert [refusal["code"] for refusal in found["refusals"]] == [code], found
    assert lifted["eligible"] == (code == "unsigned_data"), lifted
    wanted = "the drive cannot read all of the" if code == "unsigned_data" else "empty it by hand"
    assert wanted in found["refusals"][0]["message"]
