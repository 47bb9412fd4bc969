# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What discovery, the guard, the choice of a purge, placement and tuning do on the machines of tests/machines.

A line that begins with "Wrong:" names a known fault: the assertion beside it records what happens until it is fixed.
"""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import InterruptCores, NumaBinding, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import irq, settings, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.placement import CpuPlacement, CpuRequest
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import drive_list
from ansible_collections.ssdlab.fleet.tests.fixtures import machine_trees

NVME_PURGES = ["nvme_format_crypto", "nvme_format_user_data", "overwrite"]
ATA_PURGES = ["ata_sanitize_block", "ata_security_erase_enhanced", "ata_security_erase", "overwrite"]


def examine(host, *entries):
    """Examine the drives of these entries, or discover all without one."""
    given = {"drives": entries, "discover": not entries, "state_dir": None, "look": "sample", "look_s": 0.02}
    return drive_facts.module_result(host, given)["drives"]


def decided(drive):
    """The transport of a drive, the codes of its refusals, the purge methods that it supports."""
    return (
        drive["identity"]["transport"],
        [refusal["code"] for refusal in drive["refusals"]],
        [purge["method"] for purge in drive["purge"] if purge["supported"]],
    )


@pytest.mark.parametrize(
    "machine, expected",
    [
        ("vmd", {"nvme0n1": ("nvme", [], NVME_PURGES)}),
        # Wrong: a zoned drive takes neither random writes nor an overwrite from its start, and is offered all the same.
        ("zoned-namespace", {"nvme0n2": ("nvme", [], NVME_PURGES)}),
        # Wrong: a hard disk is offered as if it were an SSD.
        ("hard-disk", {"sda": ("sata", [], ATA_PURGES)}),
        # Wrong: a SATA and a SAS drive are refused, as only a SAS transport class in their paths says what they are.
        ("megaraid-jbod", {"sda": (None, ["transport"], []), "sdb": (None, ["transport"], [])}),
        # Wrong: two mirrored drives count as one SSD, as only one vendor's name for such a device is known.
        ("boot-mirror-nvme", {"nvme0n1": ("nvme", [], NVME_PURGES)}),
        ("boot-mirror-sata", {"sda": ("sata", [], ATA_PURGES)}),
    ],
)
def test_each_drive_is_decided(fake, machine, expected):
    machine_trees.build(fake, machine)
    assert {drive["identity"]["kernel_name"]: decided(drive) for drive in examine(fake)} == expected


@pytest.mark.parametrize(
    "model, refusals", [("SAMSUNG MZQL21T9HCJR-00A07", []), ("Dell BOSS-N1", ["raid_volume"])], ids=["SSD", "BOSS"]
)
def test_of_boot_mirrors_one_vendors_name_is_known(fake, model, refusals):
    machine_trees.build(fake, "boot-mirror-nvme")
    fake.put("/sys/class/nvme/nvme0/model", model)
    (drive,) = examine(fake)
    assert [refusal["code"] for refusal in drive["refusals"]] == refusals


def test_an_allowed_transport_skips_the_questions_behind_it(fake):
    """Wrong: nobody asks for ATA security, sanitize state, reservations and Opal, and overwrite is the only purge."""
    machine_trees.build(fake, "megaraid-jbod")
    found = examine(fake, *({"serial": serial, "allow": ["transport"]} for serial in ("SN-SATA-1", "SN-SAS-1")))
    assert [decided(drive) for drive in found] == [(None, [], ["overwrite"])] * 2
    assert [[code["code"] for code in drive["overridden"]] for drive in found] == [["transport"]] * 2
    assert {command[0] for command in fake.commands} == {"wipefs", "blkid"}


def test_a_hard_disk_is_listed_like_an_ssd(fake):
    """Wrong: the list to copy into an inventory does not say that it rotates."""
    machine_trees.build(fake, "hard-disk")
    (drive,) = examine(fake)
    text = drive_list.render({"rack1-07": {"drives": [drive]}})
    assert '        - serial: "SN-HDD-1"  # EXAMPLE HDD 4TB, 33.55 MB, sata, /dev/sda\n' in text
    assert drive["identity"]["rotational"] is True


def test_drives_beside_each_other_get_cores_of_different_speed(fake):
    """Wrong: one gets fast cores alone, another slow ones alone, and nothing says so."""
    machine_trees.build(fake, "hybrid-cpu")
    places = CpuPlacement(cpus.topology(fake), [CpuRequest(name, 0) for name in "abc"], parallel=3)
    fast = set(cpus.read_list(fake, "/sys/devices/cpu_core/cpus"))
    taken = [places.take(name) for name in "abc"]
    assert [place.cpus for place in taken] == ["0-7", "8-13", "14-17"]
    assert [len(fast.intersection(cpus.parse(place.cpus))) for place in taken] == [8, 4, 0]
    assert [place.note for place in taken] == ["", "", ""]


@pytest.mark.parametrize(
    "code, message",
    [
        (errno.ENOSPC, "No space left on device: no interrupt vector is free on the CPUs 14-15"),
        # Both CPUs are on.
        (errno.EINVAL, "Invalid argument: it can't be moved"),
    ],
)
def test_an_admin_vector_that_cannot_be_moved(fake, tmp_path, monkeypatch, code, message):
    """No measured command uses it, so it disturbs nothing."""
    machine_trees.build(fake, "vmd")
    write = fake.write
    # The kernel places the vectors of the I/O queues itself.
    refused = {irq.path(60): code, irq.path(61): errno.EPERM, irq.path(62): errno.EPERM}

    def refuse(path, text):
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        write(path, text)

    monkeypatch.setattr(fake, "write", refuse)
    tune = Tune(interrupts=InterruptCores("auto"), numa=NumaBinding([]))
    plan = tuning_plan.TuningPlan(tune, [tuning_plan.DriveToTune("SN1", parse({"serial": "SN1"}))], 1)
    found = tuning_plan.targets(fake, plan.drives)
    wanted = tuning_plan.expand(fake, plan.tune, found, tuning_plan.Places(fake, plan, found))
    applied = settings.apply(fake, wanted, str(tmp_path / "tuning.json"))
    assert [(item.path, item.outcome) for item in applied] == [
        (irq.path(60), "failed"),
        (irq.path(61), "managed"),
        (irq.path(62), "managed"),
    ]
    assert applied[0].message == "/proc/irq/60/smp_affinity_list: " + message
    (drift,) = tuned_host.drifted_settings(fake, applied, "nvme0n1")
    assert drift.text.startswith("/proc/irq/60/smp_affinity_list is 0-15, tuned to 14-15")
    assert not drift.bears and not drift.was_made
