# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive goes by over runs and hosts. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.drive.entry import BY_ID


def is_place(label: str) -> bool:
    """Return whether what the inventory calls a drive only says where on its host it is: the same file is another drive
    on another host.
    """
    return label.startswith("/") and not label.startswith(BY_ID)


def name(serial: str | None, host: str, label: str) -> str:
    """Return a drive's serial number; without one what the inventory calls it, with its host where that is a place
    there.
    """
    return serial or (f"{host} {label}" if is_place(label) else label)


def order(*names: str) -> tuple[t.Any, ...]:
    """Sorts names as people count: drive2 before drive10. No number is made of digits, as a host may name some
    thousand of them.
    """
    return tuple(([_part(part) for part in re.split(r"([0-9]+)", text)], text) for text in names)


def _part(part: str) -> tuple[int, str]:
    digits = part.lstrip("0")
    return (len(digits), digits) if part.isdecimal() else (0, part.casefold())
