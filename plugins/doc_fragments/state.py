# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option of modules that read or keep something in a host's state folder."""

    DOCUMENTATION = r"""
options:
  state_dir:
    description: The folder on the host where runs and records are kept, C(ssd_state_dir).
    type: path
    default: /var/lib/ssdlab-fleet
"""
