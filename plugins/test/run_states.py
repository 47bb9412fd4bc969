# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests for a run's state, so that no playbook lists the states again. Each is documented in the file of its name."""

from __future__ import annotations

import typing as t

from ansible_collections.ssdlab.fleet.plugins.module_utils.run.states import (
    FINAL_STATES,
    LIVE_STATES,
    LOST_STATES,
    SETTLED_STATES,
    UNFINISHED_STATES,
)


class TestModule:
    """Jinja tests on the state that run_info, collect or preflight gives for a run."""

    def tests(self) -> dict[str, t.Callable[[object], bool]]:
        """{name: test}"""
        return {
            "live": lambda state: state in LIVE_STATES,
            "lost": lambda state: state in LOST_STATES,
            "unfinished": lambda state: state in UNFINISHED_STATES,
            "settled": lambda state: state in SETTLED_STATES,
            "ended": lambda state: state in FINAL_STATES,
        }
