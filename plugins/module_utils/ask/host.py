# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_info: boot, size and tools of a host."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..machine import facts

OPTIONS: dict[str, t.Any] = {"tools": {"type": "list", "elements": "str", "default": list(facts.TOOLS)}}


def answer(host: Host, given: dict[str, t.Any]) -> dict[str, t.Any]:
    """Its result."""
    return {"host_info": facts.gather(host, given["tools"])}
