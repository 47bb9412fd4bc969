# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible does with the results of tasks."""

from __future__ import annotations

# The only key that Ansible registers and does not print: neither with -v nor of a failed result, where it drops
# `invocation`. With --diff it shows only what has the keys of a difference.
NOT_PRINTED = "diff"
