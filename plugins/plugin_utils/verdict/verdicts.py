# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of verdicts, and of what became of a model's figures since the run before."""

from __future__ import annotations

# Worst first: the verdict of a drive is the first of these that one of its findings has.
VERDICTS = ("fail", "error", "invalid", "not_tested", "pass")
# Verdicts of measurements whose figures count: the others say nothing about the drive.
COUNTING = ("pass", "fail")

WORSE, BETTER, SAME, UNKNOWN = "worse", "better", "same", "can't tell yet"
CHANGED = (WORSE, BETTER)
# What was measured under other conditions is no better and no worse.
OTHERWISE = "conditions changed"
