# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is in a text from a host that a reader doesn't see, and nothing covers the lines around it."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.gate import text


@pytest.mark.parametrize(
    "letter",
    ["\u3164", "\uffa0", "\u115f", "\u2800", "\u034f", "\ufe0f", "\U000e0100", "\u17b4", "\u180b"]
    + ["\u202e", "\u200b", "\u2066", "\u00ad", "\U000e0041", "\ud800", "\x9b"],
)
def test_what_nobody_sees_is_shown_and_no_name(letter):
    assert not text.is_printable(f"S1{letter}")
    shown = text.line(f"S1{letter}")
    assert shown.isascii() and shown.startswith("S1\\") and text.is_printable(shown)


def test_marks_that_cover_other_lines_are_shown_and_accents_stay():
    assert text.is_printable("Ä é ế ñ 東芝 삼성 e\u0301\u0323") and text.line("ế e\u0301\u0323") == "ế e\u0301\u0323"
    pile = "S1" + "\u0336\u034e\u0301\u20dd" * 50
    assert not text.is_printable(pile) and text.line(pile).isascii() and len(text.line(pile, 100)) == 100
