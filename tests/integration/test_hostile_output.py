# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile server can print or put into a spreadsheet: nothing that acts (docs/trust.md)."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hostile import BAD, GOOD, HONEST, RUN, asked_run, finished_run, play

# M9: results.csv

PURGE = {"method": "-2+3", "seconds": 1, "verified": True, "verification": {"sentinels": 1, "survived": 0}}


def with_formulas(events, ended):
    """A host's journal with texts that a spreadsheet would take for formulas. ended: what its test's end reports."""
    for event in events:
        if event["event"] == "drive_started":
            named = {"serial": "=cmd|' /C calc'!A0", "model": "\t=1+1", "firmware": "+1", "note": "-1"}
            event.update(identity={**event["identity"], **named}, path="@SUM(1)")
        elif event["event"] == "test_started":
            purge = {key: event[key] for key in event if key != "title"}
            yield {**event, "title": "=1"}
            event = {**purge, "event": "purge", "purge_class": "pts", **PURGE}
        elif event["event"] == "test_finished":
            event.update(ended)
        yield event


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [
        ({}, "pass"),
        # A lone CR begins a row for a spreadsheet, and the formula in it.
        ({"ended": "invalid", "reasons": ["a\r=cmd()", "\n+1", "\uff1d1"]}, "invalid"),
    ],
    ids=["formulas", "a lone CR"],
)
def test_a_spreadsheet_takes_nothing_of_a_hosts_for_a_formula_or_a_row(pair, tmp_path, ended, verdict):
    site = pair(HONEST)
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        run_dir = finished_run(tmp_path / name, drive=drive, host=name)
    journal = Path(run_dir.journal)
    events = with_formulas([json.loads(line) for line in journal.read_text().splitlines()], ended)
    journal.write_text("".join(json.dumps(event) + "\n" for event in events))
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    _code, output = site.play("collect", "-e", f"ssd_run_id={RUN}")
    _code, told = site.play("report", "-e", f"ssd_run_id={RUN}")
    raw = (site.results / RUN / "report" / "results.csv").read_bytes()
    assert b"\r" not in raw and raw.count(b"\n") == 3, output + told
    header, *rows = csv.reader(io.StringIO(raw.decode(), newline=""))
    assert len(set(header)) == len(header) and "=1+1" not in header, header
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in tuple("=+-@\uff1d") or cell[:1] == "\t"], (
        rows
    )
    found = {row[header.index("host")]: dict(zip(header, row)) for row in rows}
    assert (found[GOOD]["serial"], found[GOOD]["verdict"], found[GOOD]["write_iops"]) == ("A1", "pass", "100.0")
    assert (found[BAD]["serial"], found[BAD]["verdict"]) == ("'=cmd|' /C calc'!A0", verdict), found[BAD]


# M10: what is printed

CONTROL = "\x1b]0;title\x07\x1b[2Jcleared\r\nforged: all passed\x9b31m\u202e"


def unclean(output):
    """Where a control character or a forged line stands in an output; "" for a clean one."""
    found = re.search("[\x1b\x07\x9b\u202e\r]|\nforged", output)
    return ascii(output[max(0, found.start() - 200) : found.end() + 50]) if found else ""


def test_nothing_that_a_host_says_reaches_the_terminal_as_it_is(pair, tmp_path):
    answer = f"""
def spread(value):
    if isinstance(value, dict):
        return {{key: spread(item) for key, item in value.items()}}
    if isinstance(value, list):
        return [spread(item) for item in value]
    short = isinstance(value, str) and len(value) < 60
    return value + {CONTROL!r} if short and value not in ("finished", "B2", {RUN!r}) else value
def answer(module, real):
    return spread(real)
"""
    site = pair(answer)
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    for name in ("preflight", "discover", "collect", "report"):
        _code, output = site.play(name, *(["-e", f"ssd_run_id={RUN}"] if name in ("collect", "report") else []))
        assert not unclean(output), name


def test_a_failure_that_a_host_makes_up_is_printed_clean(pair):
    site = pair(
        f"def answer(module, real):\n    return {{'failed': True, 'msg': {CONTROL!r} + 'x' * 100000, 'exception': "
        f"{CONTROL!r}}}\n"
    )
    for name in ("preflight", "discover", "stop"):
        _code, output = site.play(name)
        assert not unclean(output) and len(output) < 60_000, name


SHELL = """#!/bin/sh
case "$2" in
*"{word}"*) printf '{said}'; printf '{said}' >&2; exit 1 ;;
esac
exec /bin/sh "$@"
"""


@pytest.mark.variants(1)
@pytest.mark.parametrize("word", ["mkdir", "rm -f -r"])
def test_what_a_hosts_shell_says_is_printed_clean(pair, tmp_path, word):
    """ansible-core puts a command's output into errors and warnings of its own."""
    shell = tmp_path / "sh"
    said = "".join(f"\\{byte:03o}" for byte in CONTROL.encode("utf-8", "surrogateescape"))
    shell.write_text(SHELL.format(word=word, said=said))
    shell.chmod(0o755)
    site = pair(HONEST, ansible_shell_executable=str(shell), ansible_pipelining=False)
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        finished_run(tmp_path / name, drive=drive, host=name)
    asked_run(site.results, {GOOD: "A1", BAD: "B2"})
    for name in ("preflight", "discover", "collect"):
        _code, output = site.play(name, *(["-e", f"ssd_run_id={RUN}"] if name == "collect" else []))
        assert "forged" in output or word != "mkdir", output
        assert not unclean(output), name


def watch_play(site, **more):
    tasks = [
        {
            "ssdlab.fleet.watch": {"run_id": RUN, "interval_s": 0.3, "host_timeout_s": 5, "give_up_s": 2, **more},
            "run_once": True,
            "register": "seen",
        },
        {"ansible.builtin.debug": {"msg": "{{ seen.hosts }}"}, "run_once": True},
    ]
    return play(site, tasks)


STATUSES = {
    "drives are numbers": {"drives": [1]},
    "no phase": {"drives": [{"drive": "B2", "outcome": None}]},
    "a state of its own": {"state": ["finished"]},
    "a pid that is a path": {"pid": "../../etc/passwd", "state": "running"},
    "a number without end": {
        "state": "running",
        "drives": [{"drive": "B2", "phase": "measure", "outcome": None, "time_left_s": float("inf")}],
    },
    "a name of lists": {"drives": [{"drive": ["x"], "phase": "measure", "outcome": None}]},
}


@pytest.mark.parametrize("what", STATUSES)
def test_a_bad_status_ends_the_watch_for_nobody(pair, tmp_path, what):
    site = pair("def answer(module, real):\n    return real\n")
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        run_dir = finished_run(tmp_path / name, drive=drive, host=name)
    status = json.loads(Path(run_dir.status).read_text())
    Path(run_dir.status).write_text(json.dumps({**status, **STATUSES[what]}))
    code, output = watch_play(site)
    assert code == 0 and f"'{GOOD}': 'finished'" in output.replace('"', "'"), output


def test_a_status_is_printed_clean_and_from_each_hosts_own_folder(pair, tmp_path):
    """The hosts have state folders of their own; the first one's is not taken for all."""
    site = pair("def answer(module, real):\n    return real\n")
    for name, drive in ((GOOD, "A1"), (BAD, "B2")):
        run_dir = finished_run(tmp_path / name, drive=drive, host=name)
    status = json.loads(Path(run_dir.status).read_text())
    status.update(state="failed", message=CONTROL)
    status["drives"][0].update(outcome="error", message=CONTROL)
    Path(run_dir.status).write_text(json.dumps(status))
    code, output = watch_play(site)
    seen = output.replace('"', "'")
    assert code == 0 and f"'{GOOD}': 'finished'" in seen and f"'{BAD}': 'failed'" in seen, output
    assert not unclean(output)
