# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of the role preflight make of its variables."""

from __future__ import annotations

from pathlib import Path

import jinja2.nativetypes
import pytest
import yaml

TASKS = Path(__file__).resolve().parents[3] / "roles" / "preflight" / "tasks" / "main.yml"


def argument(module, name, **variables):
    """The value that a module of the role is given."""
    (task,) = [task for task in yaml.safe_load(TASKS.read_text(encoding="utf-8")) if module in task]
    return jinja2.nativetypes.NativeEnvironment().from_string(task[module][name]).render(variables)


@pytest.mark.parametrize(("traffic", "warm_up", "seconds"), [(1, 0, 1), (1, 1200, 1200), (5, "3", 5), (0, 0, 0)])
def test_the_drives_are_read_for_the_traffic_or_the_warm_up_whichever_is_longer(traffic, warm_up, seconds):
    assert (
        argument("ssdlab.fleet.host_checks", "traffic_s", preflight_traffic_s=traffic, preflight_warm_up_s=warm_up)
        == seconds
    )
