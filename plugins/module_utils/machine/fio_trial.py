# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether fio does what a job will ask of it, tried for a moment on a file that is only read.

A package may leave an I/O engine to another one (EL 9: fio-engine-libaio), a kernel may forbid it
(kernel.io_uring_disabled), or its contexts may be used up (fs.aio-max-nr).
"""

from __future__ import annotations

from ..core.host import Host

# Options of every job (roles/workload/templates/job.fio.j2), but for those that say where its I/O goes.
_OPTIONS = (
    "--name=trial",
    "--readonly",
    "--rw=randread",
    "--bs=4k",
    "--size=4k",
    "--direct=0",
    "--thread",
    "--iodepth=256",
    "--allow_file_create=0",
    "--exitall_on_error=1",
    "--lat_percentiles=1",
    "--clat_percentiles=0",
    "--percentile_list=50:99.9999",
    "--output-format=json+",
)
# Where a name stands for more than fio's --ioengine: io_uring with registered buffers and files.
_FIXED = "io_uring_fixed"
_ENGINE_OPTIONS = {_FIXED: ("--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1")}
# fio itself, also behind a script of that name.
_FILE = "--filename=/proc/self/exe"
_TIMEOUT_S = 60.0
_SHOWN = 200
_FORBIDDEN = "/proc/sys/kernel/io_uring_disabled"


def problem(host: Host, fio: str, engine: str) -> str:
    """Return "" or what fio says to one of its I/O engines, or to io_uring_fixed. fio: where it is."""
    options = _ENGINE_OPTIONS.get(engine, (f"--ioengine={engine}",))
    result = host.run([fio, *_OPTIONS, *options, _FILE], _TIMEOUT_S)
    if result.rc == 0:
        return ""
    lines = [line.strip() for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("fio:")] or lines or [f"exit code {result.rc}"]
    switch = host.get(_FORBIDDEN) if engine in ("io_uring", _FIXED) else None
    return told[0][:_SHOWN] + (f"; kernel.io_uring_disabled is {switch}" if switch in ("1", "2") else "")
