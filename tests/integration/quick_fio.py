# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio that needs less CPU, as a test's rounds start it ten to two hundred times.

Its clock is named: left to choose, it spins for 60 ms to compare its clocks, and for 60 ms more when it chose another.
It has a real-time priority: it measures how late a sleep of 1 us ends, and spins for all pauses that are shorter, which
beside other tests were those between the I/Os of a limited rate.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

# A test of what slows fio down sets it to "".
PRIORITY = "SSDLAB_FLEET_FIO_PRIORITY"


def enter() -> None:
    """Put a command `fio` before this machine's in the PATH of this process and all that it will start."""
    real = shutil.which("fio")
    if real is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="ssdlab-fio-"))
    command = shlex.quote(real)
    # By exec, so that it is the process that was started. A version needs no clock.
    (folder / "fio").write_text(f"""\
#!/bin/sh
[ "$1" = --version ] && exec {command} "$@"
exec ${{{PRIORITY}-{_priority()}}} {command} --clocksource=clock_gettime "$@"
""")
    (folder / "fio").chmod(0o755)
    folder.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _priority() -> str:
    """The command that gives a real-time priority; "" where this process may not."""
    command = ["chrt", "--rr", "1"]
    allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return shlex.join(command) if allowed else ""


def leave() -> None:
    """Take it away."""
    folder, _separator, rest = os.environ["PATH"].partition(os.pathsep)
    if Path(folder).name.startswith("ssdlab-fio-"):
        os.environ["PATH"] = rest
        shutil.rmtree(folder)
