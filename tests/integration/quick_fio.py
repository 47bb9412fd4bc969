# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio that needs less CPU, as a test's rounds start it ten to two hundred times.

Left to itself, it spins for 60 ms to time its clocks when it starts. Then it measures how late a sleep of 1 us ends,
and spins for all shorter pauses: on a busy machine for all those between the I/Os of a limited rate. Named a clock, and
with quick_fio.c loaded, it does neither. What it does to drives, and what it tells, stays as it is.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def enter() -> None:
    """Put a command `fio` before this machine's in the PATH of this process and all that it will start."""
    real = shutil.which("fio")
    if real is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="ssdlab-fio-"))
    folder.chmod(0o755)
    command, loaded = shlex.quote(real), _loaded(folder)
    # By exec, so that it is the process that was started. A version needs no clock.
    (folder / "fio").write_text(f"""\
#!/bin/sh
[ "$1" = --version ] && exec {command} "$@"
{loaded} exec {command} --clocksource=clock_gettime "$@"
""")
    (folder / "fio").chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _loaded(folder: Path) -> str:
    """The variable that loads quick_fio.c, built by any compiler; nothing where there is none."""
    compiler = shutil.which("tcc") or shutil.which("cc")
    if compiler is None:
        return ""
    library = folder / "quick_fio.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    return f"LD_PRELOAD={shlex.quote(str(library))}"


def leave() -> None:
    """Take it away."""
    folder, _separator, rest = os.environ["PATH"].partition(os.pathsep)
    if Path(folder).name.startswith("ssdlab-fio-"):
        os.environ["PATH"] = rest
        shutil.rmtree(folder)
