# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_runner import Workbench
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

POLLED = planned.cell(polled=True)


@pytest.mark.parametrize("io_poll", [{}, {"queue__io_poll": "0"}])
def test_poll_queues_that_are_gone_by_the_time_are_an_error_before_fio_starts(fake, tmp_path, io_poll):
    """A kernel before 5.16 would take polled I/O and wait for interrupts, without a word."""
    fake.nvme("nvme0n1", "259:1", "S1", **io_poll)
    bench = Workbench(fake, types.SimpleNamespace(path="/dev/nvme0n1"), fio.Runner(None), str(tmp_path))
    with pytest.raises(fio.FioError, match="nvme0n1 has no poll queues any more"):
        bench.cell("x", POLLED, 4096, 1)
    assert fake.commands == [] and list(tmp_path.glob("x.*")) == []


class Failing:
    """A fio that ends with an error."""

    def __init__(self, error):
        self._error = error

    def argv(self, *_paths):
        return ["fio"]

    def run(self, _job, output, *_more):
        with open(output, "w", encoding="utf-8") as out:
            json.dump({"jobs": [{"jobname": "c", "error": self._error, "usr_cpu": 0.0, "sys_cpu": 0.0}]}, out)
        return 1, "fio: io_u error"


@pytest.mark.parametrize(
    "error, file, members, kind",
    [
        (errno.EIO, None, (), fio.DriveError),
        (errno.ENOMEM, None, (), fio.FioError),
        # A file system, or another drive of an array, may have led to it.
        (errno.EIO, 7, (), fio.FioError),
        (errno.EIO, None, ("nvme0n1", "nvme1n1"), fio.FioError),
        ([], None, (), fio.FioError),
    ],
)
def test_the_drive_is_blamed_for_its_own_io_errors_alone(fake, tmp_path, error, file, members, kind):
    fake.nvme("nvme0n1", "259:1", "S1")
    held = types.SimpleNamespace(
        path="/dev/nvme0n1",
        identity=Identity(size_bytes=1 << 30, logical_block_size_bytes=512),
        descriptor=lambda: 3,
        bytes_written=lambda: 0,
    )
    bench = Workbench(fake, held, Failing(error), str(tmp_path))
    bench.file, bench.members = file, members
    with pytest.raises(fio.FioError, match="cannot write to a drive") as caught:
        bench.check_fio()
    assert caught.type is kind
