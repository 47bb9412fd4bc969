# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module's answer becomes before anybody sees it: what its record names, and nothing that Ansible would act
upon. Pure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import typing as t

from ...module_utils.records.answers import ANSWERS, Answer, Failure
from . import printable, sanitizer

# Of a failure that Ansible made up from a broken answer.
_TOLD = ("msg", "module_stderr", "module_stdout", "rc")
# The only fact that may stay: where ansible-core found Python, lest it looks again for each task. It stays below
# `ansible_facts`.
_INTERPRETER = "discovered_interpreter_python"
_INTERPRETER_PATH = re.compile(r"/[A-Za-z0-9._/+-]{1,200}")

_MOST_CAUSES = 5
_ACTED_UPON = ("ansible_facts", "ansible_stats", "add_host", "add_group", "deprecations")

Result = dict[str, t.Any]


def prepare(module: str) -> None:
    """Make what `passed` and `screened` need for a module's answers, before Ansible forks a process for each host."""
    with contextlib.suppress(ImportError):  # told where a host answers
        sanitizer.shape_of_record(Failure)
        sanitizer.shape_of_record(ANSWERS[module])


def passed(module: str, result: t.Any) -> Result:
    """Return the result of a task, made from what a host answered to a module of ours (without ssdlab.fleet). What does
    not pass fails, for this host alone.
    """
    try:
        return {**_passed(module, result), **_interpreter(result)}
    except sanitizer.Unfit as refused:
        return {
            "failed": True,
            "changed": False,
            "msg": f"this host's answer to {module} cannot be trusted: {refused} (docs/trust.md)",
        }


def _passed(module: str, result: t.Any) -> Result:
    if not isinstance(result, t.Mapping):
        raise sanitizer.Unfit(["it is not a mapping"])
    common = sanitizer.shape_of_record(Failure)
    if any(result.get(key) for key in ("failed", "unreachable", "skipped")):
        told = {
            key: result[key]
            for key in _TOLD
            if isinstance(result.get(key), (str, int)) and not isinstance(result.get(key), bool)
        }
        failure = common.passed({**told, "msg": _message(result)}).value
        state = next(key for key in ("unreachable", "failed", "skipped") if result.get(key))
        return {**failure, "changed": False, state: True}
    known = _without_core(result)
    if "warnings" in known:
        known["warnings"] = _words(known["warnings"])
    answer, dropped = sanitizer.shape_of_record(ANSWERS[module]).passed(known)
    if "diff" in answer:
        answer = {**answer, "diff": {**answer["diff"], **_diff_lines(known["diff"])}}
    return {**answer, **({"unknown_keys": dropped} if dropped else {})}


def _diff_lines(diff: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Return the sides of a diff that are texts, line by line, as --diff shows them."""
    return {side: printable.lines(diff[side]) for side in ("before", "after") if isinstance(diff.get(side), str)}


def screened(module: str, stdout: str) -> str:
    """Return a module's output without what ansible-core would act upon or print while it reads it, before any action
    sees the answer.

    Found as ansible-core finds it: from the first line that begins with {. What stands before and after the answer is
    left out, as core prints it; output without an answer is made printable, and marked so that it stays none.
    """
    lines = stdout.splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip().startswith("{")), len(lines))
    try:
        answer, _end = json.JSONDecoder().raw_decode("\n".join(lines[start:]).lstrip())
    except (ValueError, RecursionError):
        # Not as it came: what is made printable could become an answer that ansible-core reads.
        return "".join(f"| {line}\n" for line in printable.lines(stdout).splitlines())
    keys = {field.name for field in dataclasses.fields(ANSWERS.get(module, Answer))}
    dropped = _ACTED_UPON if "warnings" in keys else (*_ACTED_UPON, "warnings")
    return json.dumps(
        {key: value for key, value in answer.items() if key not in dropped and not key.startswith("_ansible_")}
    )


def _words(warnings: t.Any) -> t.Any:
    """Return the texts of warnings, which since ansible-core 2.19 are objects with an event."""
    if not isinstance(warnings, list):
        return warnings
    return [str(getattr(getattr(item, "event", None), "msg", item)) for item in warnings]


def _message(result: t.Mapping[str, t.Any]) -> str:
    said = result.get("msg")
    if isinstance(said, str) and said:
        return said
    # Since ansible-core 2.19 a failure's words stand in events, one for each cause.
    words: list[str] = []
    event = getattr(result.get("exception"), "event", None)
    while event is not None and len(words) < _MOST_CAUSES:
        words.append(str(getattr(event, "msg", "")))
        event = getattr(getattr(event, "chain", None), "event", None)
    return ": ".join(word for word in words if word) or "no message"


def _without_core(result: t.Mapping[str, t.Any]) -> Result:
    """Without what ansible-core itself adds to every answer: that is no unknown key of the host's."""
    return {
        key: value
        for key, value in result.items()
        if not str(key).startswith("_ansible_") and key not in ("invocation", "failed")
    }


def _interpreter(result: t.Any) -> Result:
    facts = result.get("ansible_facts") if isinstance(result, t.Mapping) else None
    path = facts.get(_INTERPRETER) if isinstance(facts, t.Mapping) else None
    if isinstance(path, str) and _INTERPRETER_PATH.fullmatch(path) and printable.is_printable(path):
        return {"ansible_facts": {_INTERPRETER: str(path)}}
    return {}
