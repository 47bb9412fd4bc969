# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all unit tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is slow at times; how long one example takes says nothing about the code. The same examples each time:
# a check that passed passes again. `pytest tests/unit --hypothesis-profile=random` draws others.
settings.register_profile("random", deadline=None)
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")
