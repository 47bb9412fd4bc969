# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one filter for texts that are printed or kept: nothing in them reaches a terminal as a command, and nothing is
there that nobody sees. Pure.
"""

from __future__ import annotations

import functools
import itertools
import re
import typing as t
import unicodedata

MOST = 4096
# Half of a pair: no character, and in no file that is written as UTF-8. YAML and JSON can hold it all the same.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Letters and marks that are drawn as nothing or as a blank, and that Python calls printable, by their names.
_NOTHING = re.compile("FILLER|PATTERN BLANK|VARIATION SELECTOR|GRAPHEME JOINER|VOWEL INHERENT|NULL NOTEHEAD")
# Letters and digits from right to left: what stands beside them on the line changes places, figures too.
_TURNING = ("R", "AL", "AN")
# Over one letter: no script needs more, and a pile of them covers the lines around it.
_MOST_MARKS = 3


@functools.lru_cache(maxsize=4096)
def _is_seen(letter: str) -> bool:
    """Return whether a letter by itself is drawn, and moves no other."""
    return (
        letter.isprintable()
        and unicodedata.bidirectional(letter) not in _TURNING
        and _NOTHING.search(unicodedata.name(letter, "")) is None
    )


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter) in ("Mn", "Me")


def _shown(text: str) -> str:
    """Return the text with escapes for what is not seen, moves what stands beside it, or is piled up."""
    shown = []
    for is_mark, letters in itertools.groupby(text, _is_mark):
        run = list(letters)
        is_pile = is_mark and len(run) > _MOST_MARKS
        shown += [_escaped(letter) if is_pile or not _is_seen(letter) else letter for letter in run]
    return "".join(shown)


def is_printable(text: str) -> bool:
    """Return whether a text may be printed as it is: no control, format or surrogate character, no blank but the space,
    and nothing that is not seen or that moves other letters.
    """
    return text.isprintable() and (text.isascii() or _shown(text) == text)


def line(value: object, most: int = MOST) -> str:
    """Return a text as one printable line: what is not printable is shown as an escape such as \\x1b or \\u202e; what
    is longer ends in …
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    if is_printable(text):
        return text
    shown = _shown(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def writable(value: t.Any) -> t.Any:
    """Return a value out of JSON as every file can hold it: what no encoding has is shown as an escape such as \\udc80,
    in keys too. The same text stays the same wherever it is met.
    """
    if isinstance(value, str):
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", value) if not value.isascii() else value
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value


def lines(value: object, most: int = MOST, most_lines: int = 200) -> str:
    """Return a text of several lines, each of them printable."""
    return "\n".join(line(part, most) for part in str(value).split("\n")[:most_lines])
