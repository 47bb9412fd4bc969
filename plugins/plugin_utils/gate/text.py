# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one filter for texts that are printed or kept: nothing in them reaches a terminal as a command. Pure."""

from __future__ import annotations

MOST = 4096


def is_printable(text: str) -> bool:
    """Whether a text may be printed as it is: no control, format or surrogate character, and no blank but the space."""
    return text.isprintable()


def line(value: object, most: int = MOST) -> str:
    """A text as one printable line: what is not printable is shown as an escape such as \\x1b or \\u202e; what is
    longer ends in …
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def lines(value: object, most: int = MOST, most_lines: int = 200) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(line(part, most) for part in str(value).split("\n")[:most_lines])
