# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is in a text from a host that a reader doesn't see, and nothing covers the lines around it."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable


@pytest.mark.parametrize(
    "letter",
    ["\u3164", "\uffa0", "\u115f", "\u2800", "\u034f", "\ufe0f", "\U000e0100", "\u17b4", "\u180b"]
    + ["\U0001d159", "\u05d0", "\u0627", "\u0661", "\ufe8d", "\U00010900", "\U0001e900"]
    + ["\u202e", "\u200b", "\u2066", "\u00ad", "\U000e0041", "\ud800", "\x9b"],
)
def test_what_nobody_sees_is_shown_and_no_name(letter):
    assert not printable.is_printable(f"S1{letter}")
    shown = printable.line(f"S1{letter}")
    assert shown.isascii() and shown.startswith("S1\\") and printable.is_printable(shown)


@pytest.mark.parametrize("mark", ["\u0e47", "\u0e49", "\u0f39", "\u0c3e", "\u0359", "\u1cf4", "\U0001e136"])
def test_piles_of_marks_of_any_script_are_shown(mark):
    pile = f"\u0e2a{mark * 60} all passed"
    assert not printable.is_printable(pile) and mark not in printable.line(pile)


def test_words_of_scripts_with_marks_stay():
    for word in ("\u0e17\u0e35\u0e48", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u6771\u829d", "\u1ebf"):
        assert printable.line(word) == word


def test_marks_that_cover_other_lines_are_shown_and_accents_stay():
    assert (
        printable.is_printable("Ä é ế ñ 東芝 삼성 e\u0301\u0323")
        and printable.line("ế e\u0301\u0323") == "ế e\u0301\u0323"
    )
    pile = "S1" + "\u0336\u034e\u0301\u20dd" * 50
    assert not printable.is_printable(pile) and printable.line(pile).isascii() and len(printable.line(pile, 100)) == 100
