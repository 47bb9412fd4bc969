# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio with a clock that is named: left to choose, it spins for 60 ms to compare its clocks, and for 60 ms more when it
chose another. A test's rounds start it ten to two hundred times.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path


def enter() -> None:
    """Put a command `fio` before this machine's in the PATH of this process and all that it will start."""
    real = shutil.which("fio")
    if real is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="ssdlab-fio-"))
    command = shlex.quote(real)
    # By exec, so that it is the process that was started. A version needs no clock.
    (folder / "fio").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {command} "$@"\nexec {command} --clocksource=clock_gettime "$@"\n'
    )
    (folder / "fio").chmod(0o755)
    folder.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def leave() -> None:
    """Take it away."""
    folder, _separator, rest = os.environ["PATH"].partition(os.pathsep)
    if Path(folder).name.startswith("ssdlab-fio-"):
        os.environ["PATH"] = rest
        shutil.rmtree(folder)
