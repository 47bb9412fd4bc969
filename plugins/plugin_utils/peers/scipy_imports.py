# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""numpy, pandas and scipy for the rest of this package; None where they are not installed
(statistics_requirements.py says what to do, fleet_verdicts.py asks first).
"""

from __future__ import annotations

import typing as t

try:
    import numpy
    import pandas
except ImportError:  # packages.missing() is asked before any of them is used
    # mypy takes a name that was imported for a module for ever.
    numpy = pandas = None  # type: ignore[assignment]

__all__ = ["numpy", "pandas", "special", "stats"]


def special() -> t.Any:
    """scipy.special, imported by those that need it: every process that imports a report's code would pay for it."""
    from scipy import special as module

    return module


def stats() -> t.Any:
    """scipy.stats, as above: a second of CPU, and only comparisons of different drives or of many need it."""
    from scipy import stats as module

    return module
