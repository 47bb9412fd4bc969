# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What every module says about check mode, diff mode and second runs."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and report what would change, without changing it.
  diff_mode:
    description: Reports in detail what changed, or in check mode would, when run with C(--diff).
  idempotent:
    description: A second run with the same arguments changes nothing.
"""

    # A module that only looks, or writes files whose differences say nothing.
    READS = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
"""

    # A module that sets what a host or a drive is to have.
    SETS = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""
