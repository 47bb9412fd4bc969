# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge tests that are marked `exclusive` only where this machine gave them what they need: a control drive of known
rate, measured by fio at the same depth, keeps its rate, and no process of others took the CPUs.

A plugin of pytest; the conftest of a suite registers it. The control is measured before the test. Where it is off,
the test waits for better, for WAIT_S in all tests together, and is then skipped as "not judged". A test that fails is
believed where the control is right again at once and the machine was quiet meanwhile; elsewhere it waits, runs again,
and what that says counts under the same conditions. Never excused: what check_results.NEVER_EXCUSED names.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import typing as t
import warnings
from pathlib import Path

import check_results
import others_cpu
import pytest
import simulated_ssd
from _pytest.runner import runtestprotocol

NOT_JUDGED = check_results.NOT_JUDGED
# What a reading of a second may differ from the known rate: on a quiet machine it is within 0.5 %.
BOUND_PCT = 4.0
# A share of one CPU, in what others' processes and the hypervisor took while the test ran: an idle system's services
# take 1 to 3 %.
OTHERS_PCT = 15.0
WAIT_S, ASK_AGAIN_S = 600.0, 5.0
# A machine that disturbs a test so often does not let it be judged.
MOST_RUNS = 3
READING_S = 1
DEPTH, IOPS = 1, 500
SIZE_BYTES = 16 << 20
REASON = pytest.StashKey[str]()


class ControlDrive:
    """A simulated SSD of one rate, fresh or worn."""

    def __init__(self, iops: float) -> None:
        self.iops = iops
        self._folder = tempfile.mkdtemp(prefix="ssdlab-control-")
        plugin = simulated_ssd.model_plugin(SIZE_BYTES, iops, iops, iops, noise_pct=0)
        self._device = simulated_ssd.create(self._folder, "control", plugin)["device"]

    def error_pct(self, depth: int) -> float:
        """Write 4 KiB at random for a second; by how much its rate is off."""
        job = {
            "name": "control",
            "filename": self._device,
            "ioengine": "libaio",
            "direct": 1,
            "rw": "randwrite",
            "bs": "4k",
            "iodepth": depth,
            "time_based": 1,
            "runtime": READING_S,
            "norandommap": 1,
            "output-format": "json",
        }
        argv = ["fio", "--thread", *(f"--{key}={value}" for key, value in job.items())]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return 100 * abs(json.loads(done.stdout)["jobs"][0]["write"]["iops"] / self.iops - 1)

    def close(self) -> None:
        """Take the drive away."""
        with contextlib.suppress(simulated_ssd.SimulatorError):
            simulated_ssd.destroy(self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)


class Machine:
    """What the tests of a session are judged by: control drives, one for each rate, and the time that is left to wait
    for better.
    """

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self.wait_s = wait_s
        self._drives: dict[float, ControlDrive] = {}

    def fault(self, depth: int, iops: float) -> str:
        """Return why a test can't be judged now; an empty string when the control has its rate."""
        if iops not in self._drives:
            self._drives[iops] = ControlDrive(iops)
        error_pct = self._drives[iops].error_pct(depth)
        return f"control {error_pct:.0f} % off" if error_pct > BOUND_PCT else ""

    def fault_after_waiting(self, depth: int, iops: float) -> str:
        """Wait until the control is right; why it is not when the time for that is over."""
        fault = self.fault(depth, iops)
        while fault and self.wait_s > 0:
            began_s = time.monotonic()
            time.sleep(ASK_AGAIN_S)
            fault = self.fault(depth, iops)
            self.wait_s -= time.monotonic() - began_s
        return fault

    def wait_for_others(self) -> str:
        """Wait until others leave the CPUs alone; the share that they take when the time for that is over."""
        while fault := others_fault(others_cpu.Window(), ASK_AGAIN_S if self.wait_s > 0 else READING_S):
            if self.wait_s <= 0:
                return fault
            self.wait_s -= ASK_AGAIN_S
        return ""

    def close(self) -> None:
        """Take all control drives away."""
        while self._drives:
            self._drives.popitem()[1].close()


class Outside(t.NamedTuple):
    """A test that shares no file with another one: what pytest tears down before it."""

    item: pytest.Item

    def listchain(self) -> list[pytest.Collector]:
        """What both are in."""
        return [node for node in self.item.listchain() if isinstance(node, (pytest.Session, pytest.Directory))]


class Judge:
    """The hooks of pytest."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._file: Path | None = None
        self._window = others_cpu.Window()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run an exclusive test as the head of this file says; pytest runs all others."""
        marker = item.get_closest_marker("exclusive")
        if marker is None:
            return None
        if item.path != self._file:  # what a file makes once, an earlier test of it may have measured
            self._file, self._window = item.path, others_cpu.Window()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._judged(item, nextitem, **wanted(marker)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip what is not judged before anything is set up for it."""
        if REASON in item.stash:
            pytest.skip(item.stash[REASON])

    def _judged(
        self, item: pytest.Item, nextitem: pytest.Item | None, depth: int, iops: float
    ) -> list[pytest.TestReport]:
        """The reports of the run that counts, or of a skip."""
        fault = self.machine.fault_after_waiting(depth, iops)
        for _run in range(0 if fault else MOST_RUNS):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            fault = "" if not may_be_excused(reports) else self._fault_meanwhile(depth, iops)
            if not fault:
                return reports
            # The next run measures all anew, also what the file makes once.
            item.session._setupstate.teardown_exact(t.cast("pytest.Item", Outside(item)))
            item._initrequest()
            if self.machine.fault_after_waiting(depth, iops) or self.machine.wait_for_others():
                break
            self._window = others_cpu.Window()
        item.stash[REASON] = f"{NOT_JUDGED}: the machine was busy, {fault}"
        return runtestprotocol(item, nextitem=nextitem, log=False)

    def _fault_meanwhile(self, depth: int, iops: float) -> str:
        """Return why the machine, and not what is tested, may have made a test fail."""
        return others_fault(self._window) or self.machine.fault(depth, iops)


def others_fault(window: others_cpu.Window, wait_s: float = 0) -> str:
    """Return that others took more of the CPUs than OTHERS_PCT since the window began, and `wait_s` from now."""
    time.sleep(wait_s)
    share_pct = window.share_pct()
    return f"others took {share_pct:.0f} % of a CPU" if share_pct > OTHERS_PCT else ""


def wanted(marker: pytest.Mark) -> dict[str, t.Any]:
    """The depth and the rate of a test's control."""
    unknown = set(marker.kwargs) - {"depth", "iops"}
    if unknown or marker.args:
        raise pytest.UsageError(f"exclusive takes depth and iops, not {marker.args or unknown}")
    return {"depth": DEPTH, "iops": IOPS, **marker.kwargs}


def may_be_excused(reports: list[pytest.TestReport]) -> bool:
    """Whether the test failed, and in nothing that no busy machine makes."""
    failed = [report for report in reports if report.failed]
    crashes = [getattr(report.longrepr, "reprcrash", None) for report in failed]
    said = [crash.message if crash else str(report.longrepr) for crash, report in zip(crashes, failed)]
    return bool(failed) and not any(check_results.NEVER_EXCUSED.search(message) for message in said)


def register(config: pytest.Config) -> None:
    """Judge this session's exclusive tests, unless it shares the machine with others of ours, or no control can be
    made here.
    """
    plugins = config.pluginmanager
    if plugins.has_plugin("control_drive") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if os.geteuid() or not all(map(shutil.which, (*simulated_ssd.TOOLS, "fio"))) or not os.path.exists("/dev/fuse"):
        warnings.warn("no control drive can be made here: exclusive tests are judged without it", stacklevel=2)
        return
    machine = Machine(float(os.environ.get("SSDLAB_FLEET_CONTROL_WAIT_S", WAIT_S)))
    plugins.register(Judge(machine), "control_drive")
    config.add_cleanup(machine.close)
