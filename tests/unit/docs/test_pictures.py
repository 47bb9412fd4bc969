# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of the report in docs/images show the words of its templates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.tests.bench import pictures

IMAGES = Path(__file__).parents[3] / "docs" / "images"


def test_the_pictures_are_of_these_templates():
    recorded = json.loads((IMAGES / pictures.WORDS).read_text(encoding="utf-8"))
    assert recorded == pictures.digests(), "run python tests/bench/pictures.py, and look at the pictures"
    assert [file for file, *_rest in pictures.SHOTS if not (IMAGES / file).is_file()] == []


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('<h2 id="drives-title">Its {{ name }} drives</h2>', ["Its", "drives"]),
        (
            '<b class="{{ "a b" if x }}">{# why #}Slow{{ "" if one else " as a whole" }}</b>',
            ["Slow", "as", "a", "whole"],
        ),
        ('{% if x == "fleet" %}<p>5&nbsp;% worse</p>{% endif %}<script>no word</script>', ["worse"]),
    ],
)
def test_words_are_those_that_a_reader_sees(template, said):
    assert pictures.words(template) == said
