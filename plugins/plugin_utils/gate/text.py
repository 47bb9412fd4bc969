# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one filter for texts that are printed or kept: nothing in them reaches a terminal as a command, and nothing is
there that nobody sees. Pure.
"""

from __future__ import annotations

import functools
import re
import typing as t
import unicodedata

MOST = 4096
# Half of a pair: no character, and in no file that is written as UTF-8. YAML and JSON can hold it all the same.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Letters and marks that Unicode shows as nothing (Default_Ignorable_Code_Point) or as a blank, and that Python calls
# printable.
_NOTHING = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
# Letters from right to left: what stands beside them on the line changes places, figures too.
_TURNING = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]"
_ACCENTS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3,}"
_MARKS, _LAST_MARK = ("Mn", "Me"), 0x1FFFF


@functools.cache
def _unseen() -> re.Pattern[str]:
    """What is not seen, moves what stands beside it, or covers the lines around it: piles of marks over one letter, in
    any script (none needs four).
    """
    marks = "".join(chr(code) for code in range(_LAST_MARK) if unicodedata.category(chr(code)) in _MARKS)
    return re.compile(f"{_NOTHING}|{_TURNING}|{_ACCENTS}|[{marks}]{{4,}}")


def is_printable(text: str) -> bool:
    """Whether a text may be printed as it is: no control, format or surrogate character, no blank but the space, and
    nothing that is not seen or that moves other letters.
    """
    return text.isprintable() and (text.isascii() or _unseen().search(text) is None)


def line(value: object, most: int = MOST) -> str:
    """A text as one printable line: what is not printable is shown as an escape such as \\x1b or \\u202e; what is
    longer ends in …
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    if is_printable(text):
        return text
    shown = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    shown = _unseen().sub(lambda found: "".join(map(_escaped, found[0])), shown)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def writable(value: t.Any) -> t.Any:
    """A value out of JSON as every file can hold it: what no encoding has is shown as an escape such as \\udc80, in
    keys too. The same text stays the same wherever it is met.
    """
    if isinstance(value, str):
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", value) if not value.isascii() else value
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value


def lines(value: object, most: int = MOST, most_lines: int = 200) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(line(part, most) for part in str(value).split("\n")[:most_lines])
