# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller without pandas and scipy imports all of this, and is told what to install."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import statistics_requirements

HIDE = "import sys; sys.modules.update(numpy=None, pandas=None, scipy=None); "
COLLECTIONS = Path(__file__).parents[5] / "playbooks" / "collections"


def test_every_module_imports_without_them():
    names = sorted(
        path.stem for path in Path(statistics_requirements.__file__).parent.glob("*.py") if path.stem != "__init__"
    )
    imports = "; ".join(f"import ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers.{name}" for name in names)
    done = subprocess.run(
        [sys.executable, "-c", HIDE + imports],
        env={"PYTHONPATH": str(COLLECTIONS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_else_imports_them():
    plugins = Path(statistics_requirements.__file__).parents[2]
    files = [path for path in plugins.rglob("*.py") if path.parent.name not in ("peers", "store")]
    imports = re.compile(r"^\s*(?:import|from) (?:numpy|pandas|scipy)\b", re.MULTILINE)
    assert files and [path.name for path in files if imports.search(path.read_text())] == []
