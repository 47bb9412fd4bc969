# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The size and the figures of the simulated SSDs that the simulator's own tests make."""

from __future__ import annotations

MIB = 2**20
SIZE = 16 * MIB
FIGURES = {"fresh_iops": 2500, "steady_iops": 500, "read_iops": 1000, "write_bandwidth": 32e6, "read_bandwidth": 64e6}
