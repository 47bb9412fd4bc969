# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The integration tests' site and loop devices."""
from __future__ import annotations

from conftest import loop_drive, site  # noqa: F401  # pylint: disable=unused-import
