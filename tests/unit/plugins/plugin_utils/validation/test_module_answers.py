# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import answers
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers
from ansible_collections.ssdlab.fleet.tests.fixtures import answers as real
from ansible_collections.ssdlab.fleet.tests.fixtures import mutations

REPO = Path(__file__).resolve().parents[5]
PARTS = {module: json_schema.of(kind) for module, kind in answers.ANSWERS.items()}
# Modules whose work an action does on the controller: no host answers to them.
ON_CONTROLLER = (
    "bmc_settings",
    "collect",
    "drive_list",
    "find_run",
    "ingest",
    "message",
    "power_cut",
    "preflight",
    "render_jobs",
    "report",
    "retest",
    "store",
    "watch",
)
MODULES = sorted(path.stem for path in (REPO / "plugins" / "modules").glob("*.py") if path.stem not in ON_CONTROLLER)
MUTATIONS = 400


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_ours_answers_through_the_gate(module):
    action = (REPO / "plugins" / "action" / f"{module}.py").read_text()
    assert "HostAction" in action and module in PARTS


@pytest.mark.parametrize("module", MODULES)
def test_the_schema_knows_what_the_documentation_promises(module):
    # A host's variables are the controller's own word.
    of_controller = {"asked", "names", "drive_names", "diff"} if module == "examine" else set()
    assert set(real.documented(module)) - of_controller <= set(PARTS[module]["properties"])
    assert not of_controller & set(PARTS[module]["properties"])


@pytest.mark.parametrize("module", MODULES)
def test_an_honest_answer_passes_as_it_is(module):
    answer = real.of(module)
    passed = module_answers.passed(
        module, {**answer, "invocation": {"module_args": {}}, "_ansible_parsed": True, "failed": False}
    )
    dropped = passed.pop("unknown_keys", 0)
    assert passed == json.loads(json.dumps(answer)) and dropped == 0


@pytest.mark.parametrize("module", MODULES)
def test_whatever_a_host_answers_ansible_gets_nothing_to_act_upon(module):
    answer = dict(
        real.of(module),
        ansible_facts={"ssd_decision": 1, "discovered_interpreter_python": "/bin/x; y"},
        ansible_stats={"data": {}},
        add_host={},
        results=[1],
    )
    allowed = {*PARTS[module]["properties"], *json_schema.of(answers.Failure)["properties"], "unknown_keys"}
    for seed in mutations.seeds(MUTATIONS):
        passed = module_answers.passed(module, mutations.mutated(answer, seed))
        facts = passed.pop("ansible_facts", {})
        assert set(passed) <= allowed and set(facts) <= {"discovered_interpreter_python"}, seed
        text = json.dumps(passed, allow_nan=False, ensure_ascii=False)
        assert text.isprintable(), seed
        assert len(text) < 400_000


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "x",
        7,
        {"failed": True, "msg": ["\x1b"]},
        {"unreachable": True, "msg": "\x1b" * 9000},
        {"failed": "yes"},
    ],
)
def test_a_failure_is_told_in_printable_words(result):
    passed = module_answers.passed("drive_facts", result)
    assert passed.get("failed") or passed.get("unreachable")
    assert passed["msg"].isprintable() and len(passed["msg"]) <= 4000


def test_the_interpreter_that_ansible_found_is_kept_and_nothing_else():
    facts = {"discovered_interpreter_python": "/usr/bin/python3.11", "ssd_mode": "destructive"}
    assert module_answers.passed("steady_state", {**real.of("steady_state"), "ansible_facts": facts})[
        "ansible_facts"
    ] == {"discovered_interpreter_python": "/usr/bin/python3.11"}


def test_a_run_id_is_a_name_and_never_a_path():
    for run_id in ("../trav/.config/x", "/abs", "..", "", "a/b", "a\n", "-x", "a" * 101, None, 5, ["a"], "\u00e9"):
        answer = real.of("run_info")
        answer["runs"][0]["run_id"] = run_id
        assert "runs[0].run_id" in module_answers.passed("run_info", answer)["msg"], run_id


FORGED = {
    "changed": False,
    "warnings": ["\x1b]0;owned\x07"],
    "deprecations": [{"msg": "x"}],
    "ansible_facts": {"ssd_mode": "destructive"},
    "_ansible_no_log": True,
}


@pytest.mark.parametrize(
    "before, after",
    [("", ""), ("motd {\n", ""), ("\x1b[2J\n", ""), ("", "\n\x1b[2Jjunk"), ("", "\n}\x1b[2J\n}"), ("", "\x1b[2J")],
    ids=["alone", "a brace before", "text before", "text after", "a brace after", "same line"],
)
def test_what_stands_around_an_answer_opens_no_way_past_the_screen(before, after):
    assert json.loads(module_answers.screened("find_run", before + json.dumps(FORGED) + after)) == {"changed": False}


def test_a_blank_that_only_ansible_core_takes_for_one_opens_no_way_past_the_screen():
    assert json.loads(module_answers.screened("find_run", json.dumps(FORGED).replace(", ", ",\x0b"))) == {
        "changed": False
    }


@pytest.mark.parametrize("letter", ["\t", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\x7f", "\u202e"])
@pytest.mark.parametrize("where", ["text", "between"])
def test_what_is_made_printable_becomes_no_answer(letter, where):
    """A tab in a text is no JSON; shown as \\t it is, with all that the screen had not left out."""
    whole = json.dumps({"x": "a", **FORGED})
    said = module_answers.screened("find_run", whole.replace("a" if where == "text" else " ", letter, 1))
    for line in range(len(said.splitlines())):
        with contextlib.suppress(ValueError):
            read = json.loads("\n".join(said.splitlines()[line:]), strict=False)
            assert read == {"x": "a", "changed": False} or set(read) == {"x", "changed"}


@pytest.mark.parametrize(
    "stdout", ["", "\x1b[2J", "{\n\x1b[2J", "[" * 100_000, '{"a":' * 100_000, "{not}\n\x1b[2J\n}\n\x1b[2J"]
)
def test_output_without_an_answer_is_printable(stdout):
    assert module_answers.screened("find_run", stdout).replace("\n", "").isprintable()


def test_a_diff_keeps_its_lines_and_each_is_printable():
    diff = {"before": "/sys/a: 1\n\x1b[31mb: 2\n", "after": {"c": "3\n4"}}
    passed = module_answers.passed("tunables", {**real.of("tunables"), "diff": diff})
    assert passed["diff"] == {"before": "/sys/a: 1\n\\x1b[31mb: 2\n", "after": {"c": "3\\n4"}}
