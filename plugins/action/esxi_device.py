# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the answer of the module of the same name through the gate; its documentation is in
plugins/modules/esxi_device.py.
"""

from __future__ import annotations

from ..plugin_utils.validation.host_action import HostAction


class ActionModule(HostAction):
    """See the module of the same name."""
