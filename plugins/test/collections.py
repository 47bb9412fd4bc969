# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of what is on the controller. Documented in installed.yml."""

from __future__ import annotations

import importlib.util
import typing as t


def installed(name: str) -> bool:
    """Return whether Ansible would find a collection."""
    try:
        return importlib.util.find_spec(f"ansible_collections.{name}") is not None
    except ImportError:  # not even its namespace
        return False


class TestModule:
    """Jinja's tests by their names."""

    def tests(self) -> dict[str, t.Callable[[str], bool]]:
        return {"installed": installed}
