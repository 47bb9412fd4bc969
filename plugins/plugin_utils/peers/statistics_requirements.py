# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What judging a fleet takes beside the controller's own packages. Imports none of it."""

from __future__ import annotations

import importlib.util
import sys

PACKAGES = ("pandas", "scipy")


def missing_requirements() -> str:
    """Return why the fleet can't be judged on this controller, with the command that mends it; "" where it can."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"the fleet is not judged: the controller's Python lacks {' and '.join(missing)}; run: {sys.executable} "
        f"-m pip install {' '.join(missing)}"
    )
