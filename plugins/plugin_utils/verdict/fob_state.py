# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a test began on a fresh drive, and what may be called write saturation: that begins fresh out of the box
(SNIA PTS, WSAT). Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.purge.method import PTS
from ...module_utils.purge.methods import METHODS

Mapping = t.Mapping[str, t.Any]
_SATURATION = re.compile(r"write saturation", re.IGNORECASE)


def why_not(record: Mapping) -> str:
    """Return why a test did not begin from fresh, as a sentence's end; "" where it did. record: of the test in
    results.jsonl.
    """
    purge = record.get("purge") or {}
    if record.get("precondition"):
        return "it was preconditioned"
    if not purge:
        return "it was not purged"
    method = METHODS.get(str(purge.get("method")))
    # By our own table too: a host could claim any class.
    if purge.get("purge_class") != PTS or method is None or method.purge_class != PTS:
        return f"{purge.get('method')} is not a PTS purge"
    return "" if purge.get("verified") else f"{purge.get('method')} was not verified"


def title(text: str, record: Mapping | None) -> str:
    """Return a test's title; one that claims write saturation says so where the drive was not fresh. record: None of a
    test that was not measured.
    """
    why = why_not(record) if record else ""
    return _SATURATION.sub(f"Writes, not from fresh ({why})", text) if why else text
