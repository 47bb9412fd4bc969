# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purges of NVMe drives in the guest. Formats are QEMU's own; it lacks sanitize, so tests/emulators/nvme stands in for
that command.

A drive is filled with random data first, and after a purge none of its blocks may be found in its file again.
"""

from __future__ import annotations

import re

import pytest
from hardware import NEIGHBOUR, PLAIN, SLOW, TWO_NAMESPACES, wwn
from lab import STAND_IN_STATE, overwritable, wait_for

BLOCK_BYTES = 4096


def fill(guest, serial, nsid=1):
    """Random data over a whole namespace, as somebody else's: no ledger knows it."""
    node = guest.device(serial, nsid)
    # The end of the drive ends dd.
    guest.run(
        f"dd if=/dev/urandom of={node} bs=1M oflag=direct status=none 2>/dev/null; blockdev --flushbufs {node}; sync",
        timeout_s=600,
    )


def blocks(file):
    """The content of a file's blocks, but those of zeros only."""
    data = file.read_bytes()
    return {data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)} - {bytes(BLOCK_BYTES)}


def purge(lab, purges, selector, space, method, *args, asked_by="name"):
    """Purge one namespace (`space`: a Namespace) and see that nothing of it is left; the journal's record."""
    lab.host["ssd_drives"] = [overwritable(selector)]
    before, old = space.sha256(), blocks(space.file)
    code, output = lab.play("purge", *(["-e", f"purge_method={method}"] if asked_by == "name" else []), *args)
    assert code == 0, output
    record = lab.journal("purge")[-1]
    assert (record["method"], record["verified"], record["purge_class"]) == (method, True, "pts"), record
    lab.guest.run("sync")
    assert len(old) > 100 and not old & blocks(space.file)
    purges(method, asked_by, before, space.sha256(), record["seconds"], record["verified"])
    return record


@pytest.mark.long
def test_format_erases_and_changes_the_lba_size_and_back(lab, guest, stand_in, purges):
    """All three commands are the real nvme's: the emulator adds to id-ctrl what QEMU forgets to say, that ses 2 is
    there.
    """
    stand_in({"serial": PLAIN, "sanicap": 0, "fna": 4})
    (space,) = guest.drives[PLAIN].namespaces
    sizes = []
    for method, lba_bytes, ses in (
        ("nvme_format_user_data", 512, 1),
        ("nvme_format_crypto", 4096, 2),
        ("nvme_format_user_data", 512, 1),
    ):
        fill(guest, PLAIN)
        wanted = [] if lba_bytes == 512 and not sizes else ["-e", f"purge_lba_size_bytes={lba_bytes}"]
        record = purge(lab, purges, {"serial": PLAIN}, space, method, *wanted, asked_by="auto" if ses == 2 else "name")
        node = guest.device(PLAIN)
        assert guest.run(f"blockdev --getss {node}").stdout.strip() == str(lba_bytes)
        assert record["lba_format_after"]["data_bytes"] == lba_bytes
        (command,) = record["commands"]
        assert f"--ses={ses}" in command and command[:2] == ["nvme", "format"]
        assert re.fullmatch("/dev/nvme[0-9]+", command[2])
        sizes.append(record["lba_format_before"]["data_bytes"])
    assert sizes == [512, 512, 4096]


def test_format_of_one_namespace_leaves_the_other_alone(lab, guest, purges):
    for nsid in (1, 2):
        fill(guest, TWO_NAMESPACES, nsid)
    first, second = guest.drives[TWO_NAMESPACES].namespaces
    before = second.sha256()
    record = purge(lab, purges, {"wwn": wwn(TWO_NAMESPACES, 1)}, first, "nvme_format_user_data")
    assert second.sha256() == before
    assert "--namespace-id=1" in record["commands"][0]


@pytest.mark.long
def test_sanitize_by_every_method(lab, guest, stand_in, purges):
    stand_in({"serial": PLAIN, "seconds": 2})
    (space,) = guest.drives[PLAIN].namespaces
    for method, asked_by in (
        ("nvme_sanitize_crypto", "auto"),
        ("nvme_sanitize_block", "name"),
        ("nvme_sanitize_overwrite", "name"),
    ):
        fill(guest, PLAIN)
        purge(lab, purges, {"serial": PLAIN}, space, method, asked_by=asked_by)


@pytest.mark.long
def test_sanitize_that_fails_or_stands_still_is_an_error(lab, guest, stand_in):
    stand_in({"serial": PLAIN, "seconds": 1, "mode": "failed"}, {"serial": NEIGHBOUR, "seconds": 30, "mode": "stuck"})
    lab.host["ssd_drives"] = [overwritable({"serial": PLAIN}), overwritable({"serial": NEIGHBOUR})]
    code, output = lab.play(
        "purge", "-e", "purge_method=nvme_sanitize_block", "-e", "purge_stuck_s=20", "-e", "ssd_parallel_drives=2"
    )
    assert code != 0, output
    messages = {record["drive"]: record["message"] for record in lab.journal("drive_finished")}
    assert "Sanitize Command Failed" in messages[PLAIN], messages
    assert "stuck" in messages[NEIGHBOUR], messages
    assert not lab.journal("purge")


def lose_power(lab, guest, begun, drives=None):
    """Start a purge, lose power once it has begun, and boot with the drives in this order of slots."""
    process = lab.start("purge")
    try:
        wait_for("purge", lambda: process.poll() is not None or begun())
        assert process.poll() is None, process.communicate()[0]
        guest.run("sync")  # what the emulated drive knows does not get lost
        guest.stop()
    finally:
        lab.kill(process)
    guest.start(drives)


@pytest.mark.long
def test_sanitize_that_a_power_loss_cut_off_is_waited_for(lab, guest, stand_in):
    """It goes on in the drive by itself. The next play watches it to its end, and starts no other."""
    stand_in({"serial": PLAIN, "seconds": 99999})
    fill(guest, PLAIN)
    lab.host["ssd_drives"] = [overwritable({"serial": PLAIN})]
    lab.vars.update(purge_method="nvme_sanitize_block", ssd_run_id="cut-off")
    (space,) = guest.drives[PLAIN].namespaces
    old = blocks(space.file)
    lose_power(lab, guest, lambda: '"status": 2' in guest.run(f"cat {STAND_IN_STATE}").stdout)
    process = lab.start("purge")
    try:
        wait_for("second job", lambda: process.poll() is not None or len(lab.journal("job_started")) == 2)
        assert not lab.journal("purge")
        guest.run(f"flock {STAND_IN_STATE}.lock sed -i s/99999/1/ {STAND_IN_STATE}")
        output, _none = process.communicate()
    finally:
        lab.kill(process)
    assert process.returncode == 0, output
    (record,) = lab.journal("purge")
    assert record["verified"] and record["resumed"]
    assert len(lab.journal("purge_started")) == 1
    guest.run("sync")
    assert not old & blocks(space.file)


@pytest.mark.long
def test_names_that_swap_at_a_reboot_in_the_middle_of_a_purge(lab, guest):
    """After the power loss another drive has the name that the run began with. The run goes on with its own."""
    name = guest.device(SLOW)
    fill(guest, PLAIN)
    lab.host["ssd_drives"] = [{"serial": SLOW}]
    lab.vars.update(purge_method="overwrite", ssd_run_id="swapped")
    drives = list(guest.drives.values())
    others = {drive.key: drive.sha256() for drive in drives if drive.key != SLOW}
    (space,) = guest.drives[SLOW].namespaces
    lose_power(lab, guest, lambda: space.file.stat().st_blocks * 512 > space.size_bytes // 8, drives[::-1])
    assert guest.device(SLOW) != name and guest.run(f"test -b {name}").returncode == 0
    code, output = lab.play("purge")
    assert code == 0, output
    (record,) = lab.journal("purge")
    assert record["verified"] and record["method"] == "overwrite"
    guest.run("sync")
    assert {key: guest.drives[key].sha256() for key in others} == others
    guest.stop()
    guest.start(drives)
