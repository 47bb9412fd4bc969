# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every reason that the code can give has a kind, and so a row in docs/invalid.md: a new one without a kind fails."""

from __future__ import annotations

import ast
import importlib
import pathlib
import re

import pytest

import ansible_collections.ssdlab.fleet as collection
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import (
    disturbances,
    health_metrics,
    kernel_faults,
    lost_time,
    quiet_runs,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import relative_criteria
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import fail_kinds, reason_matching
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict.verdicts import VERDICTS

ROOT = pathlib.Path(next(iter(collection.__path__)))
PLUGINS = "ansible_collections.ssdlab.fleet.plugins."
# One of these: what it says goes with several.
ANY = "any"
GIVEN = ("invalid", "error", "not_tested")
# What is only added to a sentence, or begins with what a caller fills in.
PARTS = (
    "it no longer reports its counters",
    "7 of cell 7",
    "7 more of its model differ in 7",
    "7, and stayed so for 7 rounds; 7",
    "7: 7 like it, 7 are needed",
    "7: the measurement does not count",
    "; that value is set but not yet in force",
    "its 7 changed from 7 to 7",
)
# Whose sentences are reasons of that verdict: of judge.py and its helpers, and of what ends a test on a host.
SENTENCES = [
    ("invalid", "plugin_utils.verdict.judged_criteria", ("null_figure", "unresolved_percentile", "of_another_model")),
    ("invalid", "plugin_utils.verdict.judged_criteria", ("of_unknown_model", "no_references")),
    ("invalid", "plugin_utils.verdict.invalid_reasons", ("_without_its_state",)),
    ("invalid", "plugin_utils.verdict.environment", ("uncounted",)),
    ("invalid", "plugin_utils.peers.relative_criteria", ("reference", "of_baseline", "_too_few")),
    ("invalid", "module_utils.job.resume_state", ("failed", "discarded", "without_its_state")),
    ("invalid", "module_utils.job.array", ("unavailable_reason", "member_write_differences")),
    ("invalid", "module_utils.job.filesystem", ("missing_requirements",)),
    ("invalid", "module_utils.tuning.write_cache", ("problem",)),
    ("invalid", "module_utils.vendors.active_settings", ("differences",)),
    ("invalid", "module_utils.job.test_conditions", ("_switched",)),
    ("error", "plugin_utils.verdict.judged_criteria", ("without_figure",)),
    ("error", "plugin_utils.verdict.other_drives", ("host_fault",)),
    ("not_tested", "plugin_utils.verdict.judged_criteria", ("of_left_out",)),
    (ANY, "plugin_utils.verdict.judge", ("_why_no_record",)),
]
# Exceptions that end a test, each with what the judge says before its words.
ENDINGS = [
    ("invalid", "", ("Short", "NoPoint", "NoArray", "LinkDown", "NotOffered")),
    ("error", "the test ended with an error: ", ("FioError", "DriveError", "PurgeError", "ArrayError", "Hangs")),
    ("error", "the test ended with an error: ", ("FilesystemError", "Killed")),
]
# What the function that finds it says of a cause that disturbs (docs/validity.md has the same).
DISTURBS = re.compile(r"^ *(\w+) disturbs: ", re.MULTILINE)
FEWEST_WORDS = 4


def source(module):
    return ast.parse((ROOT / "plugins" / (module.replace(".", "/") + ".py")).read_text())


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def text_of(node):
    """The sentence of a string, an f-string or a template, what it is filled with as 7; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{[^{}]*\}", "7", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    return None


def sentences(node):
    """Every sentence below a node but the docstring's; parts of another one are none of their own."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
        return [text for child in node.body[1:] for text in sentences(child)]
    told = text_of(node)
    if told is not None:
        return [told] if len(told.split()) >= FEWEST_WORDS else []
    return [text for child in ast.iter_child_nodes(node) for text in sentences(child)]


def told_by_functions():
    for verdict, module, names in SENTENCES:
        found = [node for node in functions(source(module)) if node.name in names]
        assert {node.name for node in found} == set(names), module
        for node in found:
            yield from ((verdict, text) for text in sentences(node))


def told_by_the_judge():
    """The sentences that stand in a VerdictReason, in judge.py and invalid_reasons.py."""
    for module in ("plugin_utils.verdict.judge", "plugin_utils.verdict.invalid_reasons"):
        for node in ast.walk(source(module)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "VerdictReason":
                verdict = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
                if verdict in GIVEN:
                    yield from ((verdict, text) for text in sentences(node.args[1]))


def told_by_endings():
    for path in sorted((ROOT / "plugins/module_utils").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, "attr", getattr(node.exc.func, "id", ""))
                for verdict, before, names in ENDINGS:
                    if name in names:
                        yield from ((verdict, before + text) for text in sentences(node.exc)[:1])


TOLD = [*told_by_functions(), *told_by_the_judge(), *told_by_endings()]


def test_the_sentences_are_found():
    assert len(TOLD) > 80 and {verdict for verdict, _text in TOLD} == {ANY, *GIVEN}


@pytest.mark.parametrize(("verdict", "text"), sorted(set(TOLD)))
def test_every_reason_has_a_kind(verdict, text):
    verdicts = GIVEN if verdict == ANY else (verdict,)
    assert any(reason_matching.cause_of(text, one) for one in verdicts) or text in PARTS, text


@pytest.mark.parametrize(
    "text",
    [
        f"{relative_criteria.TOO_FEW}: 3 like it, 8 are needed",
        "its link fell from 16 to 8 GT/s, and stayed so for 3 rounds; seat the drive again",
        "its PCI power state changed from D0 to D3hot",
        "its link power management changed from max_performance to min_power",
    ],
)
def test_whole_sentences_of_which_only_parts_are_found_have_a_kind(text):
    assert reason_matching.cause_of(text, "invalid")


@pytest.mark.parametrize(
    ("text", "verdict", "cause"),
    [
        (f"{kernel_faults.OF_HOST}: 2 of its drives were reset or lost within a minute", "error", "host fault"),
        (f"the test ended with an error: {kernel_faults.OF_HOST}, as the kernel's log says: x", "error", "host fault"),
        (
            "the test ended with an error: its self-test (extended), 60 % left, did not end within 7200 s; wait for it",
            "error",
            "self-test does not end",
        ),
        (
            "the test ended with an error: its self-test (short), stood still for 3600 s; wait for it",
            "error",
            "self-test does not end",
        ),
        ("not all that was to be written was read back", "invalid", "not all read back"),
        ("1 block is wrong; but somebody else wrote 4,096 bytes to the drive meanwhile", "invalid", "other I/O"),
    ],
)
def test_what_hosts_say_of_themselves_has_a_kind(text, verdict, cause):
    assert reason_matching.cause_of(text, verdict) == cause


def test_every_metric_of_health_says_what_to_do():
    assert set(fail_kinds.OF_HEALTH) == set(health_metrics.TABLE)
    has_limit = {name for name, row in health_metrics.TABLE.items() if row.most is not None}
    told = {name for name, (_means, remedy) in fail_kinds.OF_HEALTH.items() if "No default limit" not in remedy}
    assert told == has_limit


def disturbing_rounds():
    """Causes that disturb a cell or a round."""
    modules = [disturbances, lost_time, quiet_runs]
    said = [
        ast.get_docstring(node) or ""
        for module in modules
        for node in functions(ast.parse(pathlib.Path(module.__file__).read_text()))
    ]
    return {cause for text in said for cause in DISTURBS.findall(text)} | set(disturbances.OF_DRIVE) | {"settings"}


@pytest.mark.parametrize("cause", sorted(disturbing_rounds()))
def test_every_cause_of_disturbed_rounds_has_a_kind(cause):
    title = disturbances.TITLES[cause]
    assert (
        reason_matching.cause_of(f"{title} in 4 of 5 rounds (round 1: …); too few others are left", "invalid") == title
    )


@pytest.mark.parametrize("module", ["drive_environment", "sampler"])
def test_what_disturbs_a_whole_test_has_a_kind(module):
    told = importlib.import_module(f"{PLUGINS}module_utils.measure.{module}")
    for node in functions(ast.parse(pathlib.Path(told.__file__).read_text())):
        if DISTURBS.search(ast.get_docstring(node) or ""):
            for text in sentences(node):
                assert reason_matching.cause_of(text, "invalid") or "its own limit" in text or text in PARTS, text


def test_of_several_causes_the_first_of_a_sentence_counts():
    text = "other I/O in 3 of 5 rounds (round 1: …); host busy in 2; too few others are left for a window"
    assert reason_matching.cause_of(text, "invalid") == "other I/O"


@pytest.mark.parametrize("kind", reason_matching.KINDS, ids=lambda kind: kind.says)
def test_a_kind_says_what_it_means_and_what_to_do(kind):
    assert kind.verdict in VERDICTS and kind.cause and kind.means and kind.remedy.endswith(".")
    assert reason_matching.find(kind.says.replace("…", "4 of 5"), kind.verdict).kind == kind
