# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With the real fio, where there is one, and one that lacks two engines."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts, fio_trial

WITHOUT_ENGINES = Path(__file__).resolve().parents[4] / "fixtures/reports/fio-without-engines"
FIO = shutil.which("fio")

pytestmark = pytest.mark.skipif(FIO is None, reason="fio is not installed")


@pytest.mark.parametrize(
    "engine, found",
    [("psync", ""), ("libaio", ""), ("such", "fio: engine such not loadable")],
)
def test_an_engine_is_tried(engine, found):
    assert fio_trial.problem(Host(), FIO, engine) == found


def test_facts_have_what_each_engine_said(monkeypatch):
    monkeypatch.setenv("PATH", f"{WITHOUT_ENGINES}{os.pathsep}{os.environ['PATH']}")
    found = facts.gather(Host(), ["fio"], ["libaio", "psync"])
    assert found.fio_engines == {"libaio": "fio: engine libaio not loadable", "psync": ""}


@pytest.mark.parametrize(
    "most, now, left", [("65536", "4096", 61440), ("1", "5", 0), ("65536", "", None), ("", "", None)]
)
def test_how_many_more_may_be_in_flight(fake, most, now, left):
    fake.put("/proc/sys/fs/aio-max-nr", most)
    fake.put("/proc/sys/fs/aio-nr", now)
    assert facts.gather(fake).aio_left == left


def test_a_switch_of_the_kernel_is_named(fake):
    fake.answers["/usr/bin/fio"] = (1, "", "fio: pid=7, err=1/file:engines/io_uring.c, error=Operation not permitted\n")
    fake.put("/proc/sys/kernel/io_uring_disabled", "2")
    said = "fio: pid=7, err=1/file:engines/io_uring.c, error=Operation not permitted"
    for engine in ("io_uring", "io_uring_fixed"):
        assert fio_trial.problem(fake, "/usr/bin/fio", engine) == said + "; kernel.io_uring_disabled is 2"
    assert {"--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1"} <= set(fake.commands[-1])
    assert fio_trial.problem(fake, "/usr/bin/fio", "libaio") == said
