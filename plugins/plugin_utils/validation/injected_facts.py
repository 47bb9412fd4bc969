# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether facts would be variables of their own, which outrank the inventory. Pure but for the environment's name in
the message.
"""

from __future__ import annotations

import os

VARIABLE = "ANSIBLE_INJECT_FACT_VARS"


def problem(injected: bool, config_file: str | None) -> str:
    """Return what to set where facts outrank the inventory; "" where they do not. injected: ansible-core's
    INJECT_FACTS_AS_VARS.
    """
    if not injected:
        return ""
    place = config_file or os.path.join(os.getcwd(), "ansible.cfg")
    overruled = f" (the environment variable {VARIABLE} overrules that file)" if VARIABLE in os.environ else ""
    return (
        "facts of a host would outrank the inventory: any module's answer could name other drives, folders or "
        "addresses."
        f" In {place}{overruled} set:\n    [defaults]\n    inject_facts_as_vars = False"
    )
