# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Idle states for the guest: QEMU's own tables have none, so an SSDT of ours gives each processor a C1 and a C2 (ACPI
6.5, 8.4.1.1, _CST).

C1 is `hlt`; C2 reads an I/O port that nobody answers, which comes back at once. They are there to be switched off.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

# So long that the kernel never takes C2 by itself: there it would spin, and emulation is slow enough.
C1_LATENCY_US, C2_LATENCY_US = 1, 1_000_000
_PROCESSOR = """
  Scope (\\_SB.CPUS.C{cpu:03X}) {{
    Name (_CST, Package () {{
      2,
      Package () {{ ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}, 1, {c1}, 1000 }},
      Package () {{ ResourceTemplate () {{ Register (SystemIO, 8, 0, 0xB100) }}, 2, {c2}, 500 }}
    }})
  }}"""


def arguments(folder: Path, cpus: int) -> list[str]:
    """QEMU's arguments for the table; none where iasl (acpica-tools) is missing."""
    return ["-acpitable", f"file={compile_table(folder, cpus)}"] if shutil.which("iasl") else []


def compile_table(folder: Path, cpus: int) -> Path:
    """The table as QEMU's -acpitable takes it; needs iasl (acpica-tools)."""
    external = "".join(f"  External (\\_SB.CPUS.C{cpu:03X}, ProcessorObj)\n" for cpu in range(cpus))
    scopes = "".join(_PROCESSOR.format(cpu=cpu, c1=C1_LATENCY_US, c2=C2_LATENCY_US) for cpu in range(cpus))
    source = folder / "cstates.dsl"
    source.write_text(
        f'DefinitionBlock ("", "SSDT", 2, "SSDLAB", "CSTATES", 1) {{\n{external}{scopes}\n}}\n', encoding="utf-8"
    )
    subprocess.run(["iasl", "-p", str(folder / "cstates"), str(source)], check=True, capture_output=True)
    return folder / "cstates.aml"
