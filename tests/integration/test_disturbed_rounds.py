# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each cause of a disturbed round staged with real fio, and each silent where all is well (docs/validity.md)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
import types
from pathlib import Path

import false_alarms
import measuring
import pytest
import shares
import simulated_ssd as simulator
import taking_time

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.cpus import Place
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_counters
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

MIB = 1 << 20
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
# Of what a busy test machine shows by itself.
PATIENT = Limits(idle_gap_s=60, waited_max=1)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A simulated drive of 350 IOPS and more."""
    figures = {"size_bytes": 64 * MIB, "fresh_iops": 2200, "steady_iops": 350, "read_iops": 3000}
    with simulator.simulated_ssd(
        tmp_path_factory.mktemp("drives"), "disturbed", simulator.model_plugin(**figures)
    ) as drive:
        yield drive["device"]


@pytest.fixture
def cells(simulated, tmp_path):
    """Cells on that drive, one after the other."""
    made = measuring.Measuring(simulated, tmp_path)
    made.bench.limits = PATIENT
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def setting(path, value):
    """A file of sysfs with another value while the block runs."""
    before = Path(path).read_text().strip()
    Path(path).write_text(str(value))
    try:
        yield
    finally:
        Path(path).write_text(before)


@contextlib.contextmanager
def beside(*argv):
    """A shell command again and again from another process while the block runs."""
    with tempfile.NamedTemporaryFile() as goes_on:
        loop = "while [ -e {} ]; do {}; done".format(goes_on.name, " ".join(argv))
        process = subprocess.Popen(["sh", "-c", loop], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            goes_on.close()
            process.wait()  # its last command too, so that the next cell is undisturbed


def queue(device, name):
    return f"/sys/block/{os.path.basename(device)}/queue/{name}"


@pytest.mark.exclusive(depth=32)
@pytest.mark.parametrize(
    "command, says",
    [
        ("dd if=/dev/zero of={0} bs=4k count=64 oflag=direct", "wrote"),
        ("dd if={0} of=/dev/null bs=1M count=8 iflag=direct", "read"),
        ("blkdiscard -f -o 0 -l 1M {0}; sleep 0.1", "discarded"),
    ],
)
@pytest.mark.parametrize(
    "cell", [{"queue_depth": 4}, {"queue_depth": 4, "ramp_s": 1, "runtime_s": 2}], ids=["plain", "ramp"]
)
def test_another_user_of_the_drive(cells, simulated, command, says, cell):
    with beside(command.format(simulated)):
        result = cells.cell(**cell)
    assert says in measuring.found(result)["discarded" if says == "discarded" else "other_io"], result.seen
    cells.bench.settle()  # what the last command did after the cell is no part of the next
    assert not {"other_io", "discarded"} & set(measuring.found(cells.cell(**cell), "disturbs", "unknown"))


@pytest.mark.exclusive(depth=32)
@pytest.mark.parametrize(
    "command, cause, says",
    [
        ("blkdiscard -f -o 0 -l 1M {0}", "discarded", "discarded 1.0 MiB before this cell"),
        ("dd if=/dev/zero of={0} bs=128k count=1 oflag=direct", "other_io", "wrote 0.1 MiB before this cell"),
        ("dd if={0} of=/dev/null bs=1M count=8 iflag=direct", None, ""),
    ],
)
def test_another_user_between_two_cells(cells, simulated, command, cause, says):
    """Nobody looks at the drive's counters meanwhile, but they stay."""
    cells.cell()
    subprocess.run(["sh", "-c", command.format(simulated)], check=True, capture_output=True)
    found = measuring.found(cells.cell())
    assert list(found) == [cause] * bool(cause) and says in found.get(cause, "")
    assert not measuring.found(cells.cell())


@pytest.mark.exclusive(depth=32)
def test_a_drive_whose_io_nobody_counts(cells, simulated):
    with setting(queue(simulated, "iostats"), 0):
        result = cells.cell()
        cells.bench.strict = True
        strict = cells.cell()
    assert list(measuring.found(result, "unknown")) == ["other_io"] and not measuring.found(result)
    assert list(measuring.found(strict)) == ["other_io"]


@pytest.mark.exclusive(depth=32)
def test_a_queue_that_is_too_short(cells, simulated):
    with setting(queue(simulated, "nr_requests"), 4):
        result = cells.cell(queue_depth=32)
        open_queue = cells.cell(queue_depth=32, rate_iops=100)
    told = measuring.found(result)
    assert "queue/nr_requests allows 4 I/Os in flight" in (told.get("queue_not_filled") or told["host_limited"])
    assert result.seen.in_flight < 5 and not measuring.found(open_queue)
    assert not measuring.found(cells.cell(queue_depth=32))


@contextlib.contextmanager
def cpu_quota(share):
    """This process, and what it starts, in a control group that may use so much of one CPU."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(taking_time.quota(share))
        except taking_time.Unavailable as error:
            pytest.skip(str(error))
        yield


@pytest.mark.exclusive(depth=32)
def test_a_host_whose_cpu_is_limited(cells):
    with cpu_quota(0.02):
        result = cells.cell(queue_depth=32, read_pct=100, runtime_s=3)
    assert "CPU quota held fio up" in measuring.found(result)["host_limited"], result.seen
    assert "host_limited" not in measuring.found(cells.cell(queue_depth=32, read_pct=100))


@pytest.mark.exclusive(depth=32)
def test_a_cpu_that_others_use(cells):
    """fio on one CPU with what has precedence there: the drive idles, though fio's own counts say that the queue was
    full.
    """
    cells.bench.place = Place("0", None, None, "")
    busy = [
        subprocess.Popen(["taskset", "-c", "0", "nice", "-n", "-5", "sh", "-c", "while :; do :; done"])
        for _each in range(4)
    ]
    try:
        result = cells.cell(read_pct=100, runtime_s=2)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert "were idle for" in measuring.found(result, "disturbs", "told")["busy_cpus"], result.seen
    assert "host_limited" not in measuring.found(cells.cell(read_pct=100))


@pytest.mark.exclusive(depth=32)
def test_a_drive_that_idled(cells):
    cells.bench.limits = PATIENT._replace(idle_gap_s=6)
    cells.cell()
    time.sleep(7)
    late, after = cells.cell(), cells.cell()
    assert "idled for" in measuring.found(late)["idle_gap"]
    assert "idle_gap" not in measuring.found(after)
    cells.bench.begin_test()
    assert cells.cell().gap_s is None


@pytest.mark.exclusive(depth=32)
def test_a_clock_that_was_set(cells, monkeypatch):
    assert not measuring.found(cells.cell(), "told", "disturbs").get("clock_jump")
    monkeypatch.setattr(kernel_counters, "time", clocks(wall_s=-3600))
    result = cells.cell()
    assert "-3600" in measuring.found(result, "told")["clock_jump"] and not measuring.found(result)
    assert result.seconds < 60


def clocks(wall_s=0, boot_s=0):
    """The witness's clocks, off by so much."""
    told = {"monotonic": time.monotonic, "time": lambda: time.time() + wall_s, "CLOCK_BOOTTIME": time.CLOCK_BOOTTIME}
    return types.SimpleNamespace(clock_gettime=lambda clock: time.clock_gettime(clock) + boot_s, **told)


@pytest.mark.exclusive(depth=32)
def test_a_machine_that_slept(cells, monkeypatch):
    """The monotonic clock stands still meanwhile, so nothing else tells."""
    assert "suspended" not in measuring.found(cells.cell())
    monkeypatch.setattr(kernel_counters, "time", clocks(wall_s=600, boot_s=600))
    slept, after = cells.cell(), cells.cell()
    assert "suspended for 600" in measuring.found(slept)["suspended"] and "clock_jump" not in measuring.found(
        slept, "told"
    )
    assert "suspended" not in measuring.found(after)


@pytest.mark.exclusive(depth=32)
def test_a_sample_of_undisturbed_cells(tmp_path):
    """tests/bench/false_alarms.py runs 2,000 of them."""
    count, alarms, _messages = false_alarms.run(tmp_path, 20, 200)
    assert count >= 10 and not {
        key: number for key, number in alarms.items() if key[1] in ("disturbs", "refused", "unknown")
    }


def test_a_bench_in_shares_measures_all_of_it_once(tmp_path):
    results = tmp_path / "results.jsonl"
    for share in ("1/3", "3/3", "2/3", "1/3"):
        numbers = shares.wanted(10, shares.share_of(share), shares.read(results))
        done = shares.run(
            lambda lane, mine, tell: [tell({"number": n, "lane": lane}) for n in mine], numbers, 2, results
        )
    assert sorted(done) == list(range(10)) and len(results.read_text().splitlines()) == 10
    results.write_text(results.read_text() + '{"number": 3, "torn')
    assert shares.wanted(12, (1, 1), shares.read(results)) == [10, 11]


class Disturber(threading.Thread):
    """Writes to a drive while its rounds are on: from round `first` on, `times` times."""

    def __init__(self, site, device, first, times):
        super().__init__()
        self._site, self._device, self._first, self._times = site, device, first, times
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.05) and self._times:
            if self._rounds() >= self._first - 1:
                with open(self._device, "r+b", buffering=0) as out:
                    out.write(os.urandom(MIB))
                    os.fsync(out.fileno())
                self._times -= 1

    def _rounds(self):
        texts = [folder.joinpath("journal.jsonl") for folder in self._site.run_folders()]
        return sum(
            text.read_text().count('"event": "round"') + text.read_text().count('"event":"round"')
            for text in texts
            if text.exists()
        )


@pytest.mark.variants(1)
@pytest.mark.parametrize("first, times, verdict", [(2, 1, "pass"), (2, 10_000, "invalid")], ids=["once", "always"])
def test_a_disturbed_round_is_measured_again_or_the_test_ends_invalid(loop_drive, site, first, times, verdict):
    drive = loop_drive()
    site.hosts = {"server": {"ssd_drives": [drive.selector]}}
    site.vars["ssd_plan"] = [dict(site.vars["ssd_plan"][0], rounds={"max": 9}, precondition=False, name="short")]
    site.vars["ssd_plan"][0]["steady_state"] = {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "min_capacity_multiple": 0,
        "confirm_windows": 0,
    }
    disturber = Disturber(site, drive.path, first, times)
    disturber.start()
    try:
        _code, output = site.play("qualify")
    finally:
        disturber.done.set()
        disturber.join()
    (found,) = site.summary()["drives"]
    (test,) = found["tests"]
    assert test["verdict"] == verdict, output
    (end,) = site.ended()
    # A busy machine may disturb rounds of its own.
    (told,) = [item for item in end["validity"] if (item["level"], item["cause"]) == ("disturbs", "other_io")]
    assert "wrote" in told["first"]
    if verdict == "pass":
        disturbed = {number for begin, last in told["rounds"] for number in range(begin, last + 1)}
        assert disturbed and not disturbed.intersection(end["steady_state"][0]["window_rounds"])
        assert any("other I/O in round" in text for text in test["warnings"])
    else:
        assert end["outcome"] == "invalid" and end["rounds"] == 18
        assert "too few others are left for a window" in end["reasons"][0] and "other I/O in" in end["reasons"][0]
    for record in site.journal():
        documents.validate(record, "journal")
