# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result, kernel_counters
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import QueueLimits
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

STAT = "100 1 800 5 200 2 1600 6 0 7 11 3 0 64 1 0 0"
PROC_STAT = """cpu  30 0 30 300 30 0 0 30 0 0
cpu0 10 0 10 100 10 0 0 10 0 0
cpu1 10 0 10 100 10 0 0 10 5 0
cpu10 10 0 10 100 10 0 0 10 0 0
intr 1
"""
NO_LAT = {"mean": 0, "max": 0, "min": 0, "stddev": 0}
LAT = {"mean": 1e6, "max": 2_000_000, "min": 1, "stddev": 0}
JOB = {
    "jobname": "c",
    "usr_cpu": 10.0,
    "sys_cpu": 5.5,
    "read": {"io_bytes": 0, "runtime": 0, "total_ios": 0, "iops": 0, "bw_bytes": 0, "lat_ns": NO_LAT},
    "write": {
        "io_bytes": 800 * 512,
        "runtime": 1000,
        "total_ios": 4000,
        "iops": 4000,
        "bw_bytes": 800 * 512,
        "lat_ns": LAT,
    },
}
RESULT = fio_result.parse({"jobs": [JOB]})


def server(root, files):
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Host(str(root))


@pytest.mark.parametrize(
    "text, fields", [(STAT, 17), ("1 " * 11, 11), ("1 " * 10, None), ("", None), ("a " * 17, None)]
)
def test_counters(text, fields):
    got = kernel_counters.counters(text)
    assert (got and len(got)) == fields


@pytest.mark.parametrize("cpus, ticks", [([0, 1], (280, 220, 20)), ([10], (140, 110, 10)), ([0, 7], None), ([], None)])
def test_ticks_of_the_cpus_that_fio_was_given(cpus, ticks):
    found = kernel_counters.cpu_ticks(PROC_STAT, cpus)
    assert (found and (found.all, found.idle, sum(stolen for _all, stolen in found.stolen))) == ticks


@pytest.mark.parametrize(("threads", "share"), [(1, 0.3), (2, 0.15), (4, 0.075), (9, 0.075)])
def test_idle_cpus_lose_nothing_to_a_hypervisor(tmp_path, threads, share):
    """30 % of the one CPU of four that a thread is on are 7.5 % of all."""
    eyes = kernel_counters.Witness(server(tmp_path, {"/sys/block/sdx/stat": STAT}), "sdx", "0-3")
    rows = ["cpu{0} 0 0 0 {1} 0 0 0 {2} 0 0"] * 4
    looks = []
    for idle, stolen in ((100, 10), (170, 40)):
        told = [row.format(n, idle if n == 1 else 100 + idle, stolen if n == 1 else 10) for n, row in enumerate(rows)]
        ticks = kernel_counters.cpu_ticks("\n".join(told), range(4))
        looks.append(eyes.look()._replace(cpu=ticks))
    seen = kernel_counters.evidence(planned.cell(threads=threads), RESULT, *looks, None, eyes)
    assert seen.cpu_steal == share


def clocks(times, walls, boots):
    told = {"monotonic": lambda: next(times), "time": lambda: next(walls), "clock_gettime": lambda _clock: next(boots)}
    return types.SimpleNamespace(CLOCK_BOOTTIME=7, **told)


def test_two_looks_make_the_evidence(tmp_path, monkeypatch):
    files = {
        "/sys/block/sdx/stat": STAT,
        "/sys/block/sdx/queue/nr_requests": "64\n",
        "/sys/block/sdx/queue/iostats": "1\n",
        "/sys/block/sdx/mq/0/tags": "",
        "/sys/block/sdx/device/queue_depth": "32\n",
        "/proc/stat": PROC_STAT,
    }
    host = server(tmp_path, files)
    times, walls, boots = iter([10.0, 12.0]), iter([1000.0, 1005.0]), iter([20.0, 22.5])
    monkeypatch.setattr(kernel_counters, "time", clocks(times, walls, boots))
    eyes = kernel_counters.Witness(host, "sdx", "0-1")
    before = eyes.look()
    server(
        tmp_path,
        {
            "/sys/block/sdx/stat": "100 1 800 5 1000 2 2400 4006 0 7 11 3 0 64 1 0 900",
            "/proc/stat": PROC_STAT.replace(" 100 ", " 150 "),
        },
    )
    after = eyes.look()
    seen = kernel_counters.evidence(planned.cell(ramp_s=1), RESULT, before, after, {"read": 0, "write": 1}, eyes)
    assert seen.kernel_bytes == {"read": 0, "write": 800 * 512, "discard": 0}
    assert (seen.queued, seen.in_flight, seen.fio_cpu) == (4.0, 2.0, 0.155)
    assert (seen.cpu_idle, seen.cpu_steal, seen.elapsed_s) == (1.0, 0.0, 2.0)
    assert seen.limits == QueueLimits(nr_requests=64, hw_queues=1, device_depth=32)
    assert (after.wall_s - before.wall_s, after.boot_s - before.boot_s, seen.throttled_s) == (5.0, 2.5, None)


def test_milliseconds_in_the_queue_that_began_again_are_no_empty_queue(tmp_path):
    """The kernel tells them in 32 bits (block/genhd.c, part_stat_show): a good drive's round was called disturbed."""
    most = 2**32
    host = server(
        tmp_path, {"/sys/block/sdx/stat": f"100 1 800 5 200 2 1600 {most - 9} 6 7 {most - 1000} 3 0 64 1 0 0"}
    )
    eyes = kernel_counters.Witness(host, "sdx", "0")
    before = eyes.look()
    after = before._replace(stat=kernel_counters.counters("100 1 800 5 1000 2 2400 3991 6 9 3000 3 0 64 1 0 0"))
    seen = kernel_counters.evidence(planned.cell(), RESULT, before, after, None, eyes)
    assert (seen.in_flight, seen.kernel_bytes["write"]) == (4.0, 800 * 512)
    assert kernel_counters.between(before.stat, after.stat) == {"write": 800 * 512, "discard": 0}


def test_nothing_is_counted_with_iostats_off(tmp_path):
    host = server(tmp_path, {"/sys/block/sdx/stat": STAT, "/sys/block/sdx/queue/iostats": "0\n"})
    eyes = kernel_counters.Witness(host, "sdx", "0")
    look = eyes.look()
    assert look.stat is None and look.cpu is None
    seen = kernel_counters.evidence(planned.cell(), RESULT, look, look, None, eyes)
    assert seen.kernel_bytes is None and seen.in_flight is None and seen.cpu_idle is None


def test_other_namespaces_of_the_controller_are_seen(tmp_path):
    """A path of the namespace itself (multipath) is none, nor is another controller's."""
    for name, home in (
        ("nvme0n1", "nvme0"),
        ("nvme0n2", "nvme0"),
        ("nvme0c0n1", "nvme0"),
        ("nvme1n1", "nvme1"),
        ("sda", "sda"),
    ):
        (tmp_path / "sys/devices" / home).mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/block" / name).mkdir(parents=True)
        (tmp_path / "sys/block" / name / "device").symlink_to("../../devices/" + home)
        (tmp_path / "sys/block" / name / "stat").write_text(STAT)
    host = Host(str(tmp_path))
    assert [kernel_counters.sibling_namespaces(host, name) for name in ("nvme0n1", "nvme1n1", "sda")] == [
        ["nvme0n2"],
        [],
        [],
    ]
    eyes = kernel_counters.Witness(host, "nvme0n1", "0")
    before = eyes.look()
    (tmp_path / "sys/block/nvme0n2/stat").write_text("100 1 800 5 1000 2 3600 6 0 7 11 3 0 64 1 0 0")
    assert kernel_counters.evidence(planned.cell(), RESULT, before, eyes.look(), None, eyes).beside_bytes == 2000 * 512
    assert kernel_counters.Witness(host, "nvme1n1", "0").look().beside is None


def stat(writes=0, discards=0, fields=17):
    """Counters of a drive that has written and discarded so many sectors."""
    return [9, 1, 800, 5, 20, 2, 1600 + writes, 6, 0, 7, 11, 3, 0, 64 + discards, 1, 0, 0][:fields]


@pytest.mark.parametrize(
    "settled, now, told",
    [
        (stat(), stat(), {"write": 0, "discard": 0}),
        (stat(), stat(8, 16), {"write": 4096, "discard": 8192}),
        (stat(fields=11), stat(8, fields=11), {"write": 4096}),  # before Linux 4.18
        (stat(9), stat(), None),  # the kernel counts anew, as after a purge that made the device again
        (stat(), stat(fields=11), None),
        (None, stat(), None),
        (stat(), None, None),
    ],
)
def test_what_a_drive_took_between_two_looks(settled, now, told):
    assert kernel_counters.between(settled, now) == told


def test_a_process_that_ended_still_tells_what_it_wrote():
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert set(kernel_counters.process_bytes(Host(), process.pid) or {"read", "write"}) == {"read", "write"}
    assert kernel_counters.process_bytes(Host(), process.pid) is None


def test_the_drives_of_an_array_are_counted_each_and_timed_together():
    before = {"sda": [0] * 17, "sdb": [0] * 17}
    one, other = [0] * 17, [0] * 17
    one[2], one[6], one[3] = 8, 16, 3000
    other[2], other[6], other[7] = 2, 4, 1000
    found = kernel_counters.of_members([before, {"sda": one, "sdb": other}], 2.0)
    assert found.bytes["sda"] == {"read": 4096, "write": 8192, "discard": 0}
    assert found.bytes["sdb"] == {"read": 1024, "write": 2048, "discard": 0}
    assert found.in_flight == 2.0
    unseen = kernel_counters.of_members([before, {"sda": one, "sdb": None}], 2.0)
    assert unseen.bytes["sdb"] is None and unseen.in_flight is None


V2, V1 = (
    "usage_usec 1\nnr_throttled 3\nthrottled_usec 2500000\n",
    "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n",
)


@pytest.mark.parametrize(
    "line, path, text, seconds",
    [
        ("0::/system.slice/x.service", "/sys/fs/cgroup/system.slice/x.service", V2, 2.5),
        # The group above throttles; a container sees its own group as the root.
        ("0::/system.slice/x.service", "/sys/fs/cgroup/system.slice", V2, 2.5),
        ("0::/", "/sys/fs/cgroup", V2, 2.5),
        ("4:cpu,cpuacct:/job", "/sys/fs/cgroup/cpu,cpuacct/job", V1, 2.5),
        ("4:cpuset:/job", "/sys/fs/cgroup/cpu/job", V1, None),
        ("0::/", "/sys/fs/cgroup", "usage_usec 1\n", None),
    ],
)
def test_throttled_time_of_every_group_above(tmp_path, line, path, text, seconds):
    for file, content in (("/proc/self/cgroup", line + "\n"), (path + "/cpu.stat", text)):
        place = tmp_path / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    assert list(kernel_counters.throttled_s(Host(str(tmp_path))).values()) == ([seconds] if seconds else [])
