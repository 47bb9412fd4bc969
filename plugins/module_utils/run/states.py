# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a run on a host (docs/internals.md)."""

from __future__ import annotations

STARTING, RUNNING = "starting", "running"
FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
# Never written: the job is gone without a word, or nobody can read what it wrote (run/liveness.py).
DEAD, DAMAGED = "dead", "damaged"
# The host has no such run.
ABSENT = "absent"

LIVE_STATES = (STARTING, RUNNING)
LOST_STATES = (DEAD, DAMAGED)
UNFINISHED_STATES = LIVE_STATES + LOST_STATES
FINAL_STATES = (FINISHED, STOPPED, FAILED)
# On these hosts the drives are the run's own: it holds them exclusively, or is done with them.
SETTLED_STATES = (*LIVE_STATES, FINISHED)

# Before these steps of a campaign the guard checks a drive, and then it is written to.
WRITING_STEPS = ("purge", "precondition", "integrity", "power_cut", "measure")
