# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the report's pages, made on the controller: what a host or drive is called never becomes a path as it is.
Pure.
"""

from __future__ import annotations

import hashlib

from ...module_utils.core.files import slug

# Of a name: together with the folder, the digest and .html far below the 255 bytes of file systems.
_LONGEST = 60


def host_page(host: str) -> str:
    """hosts/<name>-<digest>.html, relative to the report's folder."""
    return f"hosts/{_file(host)}"


def drive_page(host: str, drive: str) -> str:
    """drives/<host>-<drive>-<digest>.html, relative to the report's folder."""
    return f"drives/{_file(host, drive)}"


def supplier_page(pattern: str) -> str:
    """supplier-<pattern>-<digest>.html, in the report's folder."""
    return f"supplier-{_file(pattern)}"


def _file(*parts: str) -> str:
    # The digest tells apart what becomes alike: a/b and a_b, and, where a file system does not see the difference, A
    # and a.
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = "_".join(slug(part.strip("/"))[-_LONGEST:].lstrip(".") for part in parts)
    return f"{readable}-{digest}.html"
