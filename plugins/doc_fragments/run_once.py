# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The note of modules that work once for the whole fleet."""

    DOCUMENTATION = r"""
options: {}
notes:
  - Use it with C(run_once). It runs on the controller.
"""
