# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lets a drive with data through: an override in its entry, for that drive and code alone, and that a run of ours
left the data.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from wrong_drive import MIB, run

# --- overrides ----------------------------------------------------------------


@pytest.fixture(scope="module")
def overriding(make_bench):
    """Drives with content, most of them with an override in their entry that does not fit."""
    bench = make_bench()
    for name, given in (
        ("table allowed", {"allow": ["partition_table"]}),
        ("table", {}),
        ("signature with a table allowed", {"allow": ["partition_table"]}),
        ("mounted allowed", {"allow": ["mounted"]}),
        ("data allowed", {"allow": ["unsigned_data"]}),
        ("data to overwrite", {"ssd_overwrite_data": True}),
        ("data", {}),
        ("signature to overwrite", {"ssd_overwrite_data": True}),
        ("shared allowed", {"allow": ["shared_filesystem"]}),
    ):
        disk = bench.disk(name)
        disk.entry.update(given)
        if "table" in name.split()[:1]:
            run("sgdisk", "-n", "1:0:0", disk.path)
        elif name.startswith("data"):
            disk.write(MIB, os.urandom(MIB))
        else:
            run("mkfs.ext4", "-q", disk.path)
    return bench


@pytest.fixture(scope="module")
def overridden(overriding):
    """Preflight over all of them."""
    return overriding.play()


def test_an_override_is_one_for_its_drive_and_its_code(overridden):
    assert {name: overridden.codes(name) for name in ("table allowed", "data to overwrite")} == {
        "table allowed": set(),
        "data to overwrite": set(),
    }
    overridden.refused("table", "partition_table")
    overridden.refused("data", "unsigned_data")
    overridden.refused("signature with a table allowed", "signature")
    overridden.refused("signature to overwrite", "signature")


@pytest.mark.parametrize("code", ["mounted", "shared_filesystem", "unsigned_data"])
def test_what_cannot_be_overridden_is_told(overridden, code):
    overridden.told("rack1-07", f"its option allow names '{code}'")


def test_data_is_given_up_by_its_drive_alone(overriding):
    outcome = overriding.play("-e", '{"ssd_overwrite_data": true}', entries=[overriding.disks["data"].entry])
    outcome.refused("data", "unsigned_data")


def test_an_override_lets_the_drive_through_and_is_kept_in_the_results(overriding, overridden):
    """Also: a backing file with a name that a shell would run is only a name. Last, for it erases what it may."""
    canary = Path(overriding.folder, "canary")
    hostile = overriding.disk("hostile")
    name = Path(overriding.folder, "x; cd ${HOME%%root}; touch canary; $(touch canary) `touch canary`.img")
    run("losetup", "--detach", hostile.path)
    os.rename(hostile.file, name)
    hostile.file, hostile.entry = str(name), {"backing_file": str(name)}
    run("losetup", hostile.path, hostile.file)
    overriding.callback(hostile.detach, hostile.path, hostile.file)
    through = ("table allowed", "data to overwrite", "hostile")
    outcome = overriding.play(playbook="purge", entries=[overriding.disks[name].entry for name in through])
    assert outcome.code == 0, outcome.output
    assert outcome.changed == sorted(
        ("table allowed", "data to overwrite")
    )  # the hostile one was blank before, and is again
    kept = {
        record["drive"]: [item["code"] for item in record["overridden"]]
        for record in outcome.results()
        if record["kind"] == "drive"
    }
    assert kept == dict(
        zip((overriding.disks[name].label for name in through), (["partition_table"], ["unsigned_data"], []))
    )
    assert not canary.exists() and not Path("canary").exists()


# --- several nights -----------------------------------------------------------


@pytest.fixture
def night(make_bench):
    """A drive that a run has filled with random data and let go of."""
    bench = make_bench()
    for name in ("written through the device", "written behind it"):
        bench.disk(name)
    outcome = bench.play(playbook="precondition")
    assert outcome.code == 0 and outcome.changed == sorted(bench.disks), outcome.output
    return bench


def test_our_own_data_is_erased_again_and_nobody_elses(night):
    """One sector written by somebody else since is enough: through the device anywhere, behind it where
    it was sampled.
    """
    with open(night.disks["written through the device"].path, "r+b", buffering=0) as device:
        device.seek(20 * MIB)
        device.write(b"somebody's data".ljust(512))
        os.fsync(device)
    night.disks["written behind it"].write(0, b"somebody's data".ljust(4096))
    outcome = night.play()
    assert outcome.codes("spare") == set()
    outcome.refused("written through the device", "unsigned_data")
    outcome.refused("written behind it", "unsigned_data")
    again = night.play(playbook="purge", entries=[night.spare.entry])
    assert again.code == 0 and again.changed == ["spare"], again.output
