# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only a drive with NVMe's own features shows: a volatile write cache that a test switches off, the drive's count
of what was written to it, and queues that are polled.
"""

from __future__ import annotations

import json

import pytest
from hardware import PLAIN
from lab import SHORT_TEST

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.wear import UNIT_BYTES

CACHE_ON, CACHE_OFF = "1", "0"
ONE_ROUND = {**SHORT_TEST, "steady_state": False, "rounds": {"max": 1}}
# The driver takes the number when it probes a drive, so one drive is probed again; others may be in use.
POLL_QUEUES = """
driver=/sys/bus/pci/drivers/nvme
echo {count} > /sys/module/nvme/parameters/poll_queues && echo {address} > $driver/unbind || exit
echo {address} > $driver/bind
until ls -d $driver/{address}/nvme/nvme*/nvme*n* > /dev/null 2>&1; do sleep 0.2; done
udevadm settle --timeout=120
"""


def cache_of(guest, serial):
    """The drive's feature 6, as it says itself."""
    said = guest.run(f"nvme get-feature {guest.device(serial)} --feature-id=6").stdout
    return said.rpartition(":")[2].strip()[-1]


def qualified(lab, test, *args):
    """A run of one test on the plain drive that has to pass: the test's record in the results."""
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    lab.vars.update(ssd_plan=[test], purge_method="deallocate")
    lab.clear_commands()
    code, output = lab.play("qualify", *args)
    assert code == 0 and lab.summary()["verdicts"]["pass"] == 1, output
    (file,) = lab.results.glob("*/results.jsonl")
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    (record,) = [record for record in records if record["kind"] == "test"]
    assert record["outcome"] == "complete" and not record["reasons"], record
    return record


@pytest.mark.long
def test_a_cache_is_off_for_the_test_and_the_drive_counts_what_it_wrote(lab, guest):
    assert cache_of(guest, PLAIN) == CACHE_ON
    record = qualified(lab, {**ONE_ROUND, "write_cache": "off"})
    assert cache_of(guest, PLAIN) == CACHE_ON
    features = [argv for argv in lab.commands() if argv[:2] in (["nvme", "set-feature"], ["nvme", "get-feature"])]
    # Off and on again; looked at after the one, before the other, and by the test both before and after it.
    values = [argv[-1] for argv in features if argv[1] == "set-feature"]
    assert values == [f"--value={CACHE_OFF}", f"--value={CACHE_ON}"], features
    off, on = (index for index, argv in enumerate(features) if argv[1] == "set-feature")
    assert on - off > 2, features
    (fill,), (cell,) = lab.journal("precondition"), lab.journal("cell")
    written = fill["kernel_bytes_written"] + cell["seen"]["kernel_bytes"]["write"]
    print(json.dumps(record["wear"]), written)
    # The drive counts in units that it rounds up, before the test and after it.
    assert written >= fill["bytes_written"] > 0 and written - UNIT_BYTES < record["wear"]["host_bytes"] < 2 * written
    # QEMU's drive has no log of what its flash took.
    assert record["wear"]["media_bytes"] is None and record["wear"]["write_amplification"] is None


@pytest.mark.long
def test_a_drive_is_measured_by_polling_its_queues(lab, guest):
    guest.blank(PLAIN)
    name = guest.device(PLAIN).rpartition("/")[2]
    address = guest.run(f"basename $(readlink -f /sys/block/{name}/device/device)").stdout.strip()
    guest.run(POLL_QUEUES.format(count=1, address=address), timeout_s=300)
    try:
        name = guest.device(PLAIN).rpartition("/")[2]
        assert guest.run(f"cat /sys/block/{name}/queue/io_poll").stdout.strip() == "1"
        record = qualified(lab, ONE_ROUND, "-e", "workload_ioengine=io_uring_polled")
    finally:
        guest.run(POLL_QUEUES.format(count=0, address=address), timeout_s=300)
    jobs = guest.run(f"cat {lab.state}/runs/*/raw/{PLAIN}/*.fio").stdout
    assert "ioengine=io_uring" in jobs and "hipri=1" in jobs, jobs
    # 20 writes a second leave its threads idle, so that they poll is no doubt about the host.
    assert record["validity"] == [], record["validity"]
