# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands of a drive's tests by its journal records, those of jobs before too. Pure."""

from __future__ import annotations

import typing as t

# Outcomes of a test that stands: a second run keeps it and never wipes the drive for it again.
KEPT_OUTCOMES = ("steady", "not_steady", "complete", "invalid", "error")
# The first reason of a test that was not begun, as the host could not be tuned.
NOT_BEGUN = "neither purged nor measured"


def crash_text(error: Exception) -> str:
    """An exception that nobody foresaw, in one line."""
    return "{0}: {1}".format(type(error).__name__, error)


def not_begun(history: t.Iterable[t.Mapping[str, t.Any]]) -> list[str]:
    """Why a test of one drive was not begun, in this job or one before, from its journal records.

    What comes after may build on it.
    """
    ended = (record["reasons"] for record in history if record["event"] == "test_finished")
    return next((reasons[1:] for reasons in ended if reasons[:1] == [NOT_BEGUN]), [])


def finished_tests(history: t.Iterable[t.Mapping[str, t.Any]]) -> set[str]:
    """The tests of one drive that stand, from its journal records."""
    ended = (record for record in history if record["event"] == "test_finished")
    return {record["test"] for record in ended if record["outcome"] in KEPT_OUTCOMES}
