# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import jsonschema
import jsonschema_rs
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import answers
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema as schemas
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import sanitizer
from ansible_collections.ssdlab.fleet.tests.fixtures import answers as real
from ansible_collections.ssdlab.fleet.tests.fixtures import mutations

FREE = sanitizer.Shape({"type": "object"})
KNOWN = sanitizer.Shape(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "format": "name"},
            "text": {"type": "string", "maxLength": 5},
            "n": {"type": "integer"},
        },
    }
)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**65, -(2**65), 1e300, {"a": b"bytes"}, mutations.deep()]
)
def test_what_is_no_sound_value_is_refused(value):
    with pytest.raises(sanitizer.Unfit):
        FREE.passed({"x": value})


def test_texts_are_made_printable_names_are_refused_and_unknown_keys_counted():
    passed = KNOWN.passed({"text": "abcdefgh", "n": 5.0, "other": 1, "more": 2})
    assert passed.value == {"text": "abcd…", "n": 5} and passed.dropped == 2
    assert isinstance(passed.value["n"], int)
    with pytest.raises(sanitizer.Unfit, match="cannot be printed"):
        KNOWN.passed({"name": "a\n"})


class TaggedText(str):
    """As ansible-core 2.17 marks a text as unsafe: it stays one of these, whoever asks for a str."""

    def __str__(self):  # pylint: disable=invalid-str-returned
        return self


def test_a_text_of_ansibles_becomes_a_plain_one():
    passed = KNOWN.passed({TaggedText("name"): TaggedText("a"), TaggedText("text"): TaggedText("b")})
    assert {type(text) for item in passed.value.items() for text in item} == {str}


@pytest.mark.parametrize("content", [b"{", b"\xff", "[" * 100_000, '{"a":' * 100_000, "1" * 100_000, '"\ud800'])
def test_text_that_is_no_json_is_refused(content):
    with pytest.raises(sanitizer.Unfit):
        sanitizer.decoded(content)


def test_without_the_library_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(sanitizer, "jsonschema_rs", None)
    with pytest.raises(ImportError, match="lacks jsonschema-rs; run: .* -m pip install jsonschema-rs"):
        sanitizer.Shape({})


def test_a_pattern_holds_to_the_last_letter():
    schema = {"type": "string", "pattern": "^[a-z]+$"}
    assert schemas.problems("abc\n", schema) and not schemas.problems("abc", schema)
    assert sanitizer.Shape(schema).passed("abc").value == "abc"
    with pytest.raises(sanitizer.Unfit):
        sanitizer.Shape(schema).passed("abc\n")


@pytest.mark.parametrize("module", sorted(answers.ANSWERS))
def test_both_libraries_have_one_verdict(module):
    whole = json_schema.of(answers.ANSWERS[module])
    quick, slow = jsonschema_rs.validator_for(whole).is_valid, schemas.validator(whole)
    good = real.of(module)
    for seed in range(60):
        try:
            value = json.loads(json.dumps(mutations.mutated(good, seed, 1), default=str, allow_nan=False))
            expected = slow.is_valid(value)
            found = quick(value)
        except (RecursionError, OverflowError, ValueError):  # nothing that the walk before it lets pass
            continue
        assert found == expected, (seed, list(slow.iter_errors(value)))


def test_our_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schemas.load("test"))


@pytest.mark.parametrize(
    "content", [b"[" + b"{}," * 5_000_000 + b"{}]", "[" * 10 + "0," * 5_000_000, '{"a":' + "[[]," * 3_000_000]
)
def test_what_would_fill_the_memory_is_refused_before_it_is_parsed(content, monkeypatch):
    """30 MB of {} take 850 MB; a 5 MB archive may hold a plan of 1 GB."""
    monkeypatch.setattr(sanitizer.json, "loads", lambda _content: pytest.fail("it was parsed"))
    with pytest.raises(sanitizer.Unfit, match="more than 2000000 values"):
        sanitizer.decoded(content)
