# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that a page must not tell, found in texts however hosts and kernels write them. Pure."""

from __future__ import annotations

import re
import typing as t

# udev's names of drives have the model and the serial number in them, with _ for each blank.
_OF_UDEV = re.compile(r"\b(?:nvme|ata|scsi|usb)-(\S+)")
_PARTITION = re.compile(r"-part[0-9]+\b")


class Others:
    """named: what must not be told. own: what may, be it that the name of another is in it ("X 9 PRO" beside "X 9")."""

    def __init__(self, named: t.Iterable[str], own: t.Iterable[str]) -> None:
        self._own = {_plain(name) for name in own}
        self._named = sorted({_plain(name) for name in named} - self._own - {""})
        self._holding: dict[str, list[str]] = {}

    def are_in(self, text: str) -> bool:
        """Return whether a text tells one of them."""
        plain = _plain(text)
        return any(name in plain and self._is_told(name, plain) for name in self._named)

    def _is_told(self, name: str, plain: str) -> bool:
        if name not in self._holding:
            self._holding[name] = sorted((own for own in self._own if name in own), key=len, reverse=True)
        for own in self._holding[name]:
            plain = _word(own).sub(" ", plain)
        return _word(name).search(plain) is not None


def _word(name: str) -> re.Pattern[str]:
    """Return a name as a word of its own: SSD1 is not in SSD12."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def _plain(text: str) -> str:
    """Return a text in which a name is found in whatever case, with whatever blanks, and in the names that
    udev makes.
    """
    parts = [_PARTITION.sub("", found[1].replace("_", " ")) for found in _OF_UDEV.finditer(text)]
    return " ".join(" ".join([text, *parts]).split()).casefold()
