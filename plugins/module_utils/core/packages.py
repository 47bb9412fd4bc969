# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package has a tool, for who has to install it."""

from __future__ import annotations

_PACKAGES = {
    "wipefs": "util-linux",
    "blkid": "util-linux",
    "nvme": "nvme-cli",
    "smartctl": "smartmontools",
    "zpool": "zfsutils-linux",
}
_SG_PACKAGE = "sg3-utils (Debian) or sg3_utils (RHEL)"


def of_tool(tool: str) -> str:
    """Return the package of a tool; of one that is not known, its own name."""
    return _PACKAGES.get(tool) or (_SG_PACKAGE if tool.startswith("sg_") else tool)
