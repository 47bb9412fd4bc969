# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: whatever comes from a host passes it once, right where it arrives (docs/trust.md). Code behind it relies on
what it gets.
"""
