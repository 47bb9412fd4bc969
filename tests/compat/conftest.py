# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the integration tests have: the site, the loop devices, and how their machine is set up."""

from __future__ import annotations

# All of its fixtures and hooks, whatever they are called.
from conftest import *  # noqa: F403  # pylint: disable=wildcard-import,unused-wildcard-import
