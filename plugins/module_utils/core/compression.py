# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the controller puts the content of a file into an argument of a module: compressed, as text."""

from __future__ import annotations

import base64
import binascii
import zlib


def pack(data: bytes) -> str:
    """Return the content as text."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def unpack(text: str) -> bytes:
    """Return the content again. Raises ValueError."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"what the controller sent arrived damaged ({error}); run the play again") from None
