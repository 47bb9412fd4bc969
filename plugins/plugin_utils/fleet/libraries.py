# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""numpy, pandas and scipy for the rest of this package; None where they are not installed (packages.py says what to do,
judging.py asks first).
"""

from __future__ import annotations

try:
    import numpy
    import pandas
    from scipy import stats
except ImportError:  # packages.missing() is asked before any of them is used
    # mypy takes a name that was imported for a module for ever.
    numpy = pandas = stats = None  # type: ignore[assignment]

__all__ = ["numpy", "pandas", "stats"]
