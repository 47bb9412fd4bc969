# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What scripts/test does with checks of the test's own: lanes, the output of each whole, the table, the slowest tests,
a signal.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Two of one lane, of which the second waits to be interrupted, and two that fail and pass beside them.
RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
import run_checks
from run_checks import ALONE, CONTAINERS, SERVERS, SOURCE, Check
run_checks.OUTPUT = Path({folder!r}, "checks")
weight = "{{ sed 's/.* //' /proc/self/autogroup 2>/dev/null | grep . || nice; }}"
touch = "touch {folder}/$(basename $RESULTS); until [ -e {folder}/%s ]; do sleep 0.1; done"
run_checks.CHECKS = (
    Check("first", SERVERS, "echo one; " + touch % "beside" + "; echo two"),
    Check("second", SERVERS, "trap 'echo cleaned; exit 0' INT; " + touch % "never"),
    Check("beside", SOURCE, "trap '' INT; " + touch % "first" + "; " + weight + "; echo '" + {junit!r}
          + "' > $RESULTS/junit.xml; exit 3"),
    Check("plain", SOURCE, "seq -f 'line %g' 40; exit 1", ()),
    Check("guest", CONTAINERS, "echo all=$ALL", ("all", "quick")),
    Check("alone", ALONE, "true", ()),
    Check("fair", CONTAINERS, "until [ $(" + weight + ") = 0 ]; do sleep 0.1; done; echo 0", ()),
    Check("guest-and-more", CONTAINERS, "echo shared", ()),
    Check("guest-and-more-alone", ALONE, "echo exclusive", ("guest-and-more",)),
)
sys.exit(run_checks.main(sys.argv[1:]))
"""
JUNIT = (
    '<testsuites><testsuite><testcase classname="tests.test_x" name="slow" time="3.25"/>'
    '<testcase classname="tests.test_x" name="bad" time="0.5"><failure message="no">assert 1 == '
    "2</failure></testcase></testsuite></testsuites>"
)


@pytest.fixture
def start(tmp_path):
    def run(*arguments):
        code = RUNNER.format(scripts=str(SCRIPTS), folder=str(tmp_path), junit=JUNIT)
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    return run


def test_lanes_run_side_by_side_and_a_signal_lets_the_running_check_clean_up(start, tmp_path):
    process = start()
    deadline_s = time.monotonic() + 60
    while not (tmp_path / "second").exists():  # after the first, and that only beside `beside`
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    output, _none = process.communicate(timeout=60)
    lines = output.splitlines()
    assert (
        process.returncode == 1
        and lines[-1] == "3 passed, 1 failed"
        and "scripts/test: stopped before the end" in lines
    ), output
    assert "=== first\none\ntwo\n" in output and "=== second\ncleaned\n" in output and "=== beside\n10\n" in output
    assert "all=yes" in lines and "    3.2 s  beside: test_x::slow" in lines
    assert lines[lines.index("The failures:") + 1 :][:2] == ["beside: test_x::bad", "    assert 1 == 2"], output
    rows = {line.split()[0]: line.split()[1:3] for line in lines if line.endswith(" CPU-s")}
    assert rows.pop("beside") == ["FAILED", "(3)"]
    assert {name: words[0] for name, words in rows.items()} == dict.fromkeys(("first", "second", "guest"), "passed")


@pytest.mark.parametrize(
    "arguments, says, code",
    [
        (["guest"], "all=\n", 0),
        (["quick"], "all=\n", 0),
        (["nope"], "unknown check 'nope'", 1),
        (["--list"], "beside", 0),
    ],
)
def test_checks_are_chosen_by_name_or_set(start, arguments, says, code):
    process = start(*arguments)
    output, _none = process.communicate(timeout=60)
    assert process.returncode == code and says in output, output


def test_a_failed_check_without_test_results_shows_the_end_of_its_output(start):
    process = start("plain", "guest")
    output, _none = process.communicate(timeout=60)
    assert process.returncode == 1 and "\nThe failures:\nplain: the end of its output\n    line 11\n" in output, output
    assert output.count("    line 40\n") == 1 and "guest:" not in output


# The first time this fails.
MISSES_ITS_TIME = """
from pathlib import Path
def test_in_time(log=Path(__file__).with_name("ran")):
    with log.open("a+") as runs:
        runs.write("x")
    assert log.stat().st_size > 1
"""
NOT_JUDGED = """
import pytest
def test_busy():
    pytest.skip("not judged: the machine was busy, control 23 % off")
def test_it():
    pass
def test_other():
    pytest.skip("no such tool: not judged")
"""


@pytest.fixture
def check(tmp_path):
    """Run pytest on a test file, beside another check: what scripts/test ends with, what it says, the word in its
    table.
    """

    def run(source, command=""):
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests/test_x.py").write_text(source)
        runner = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(SCRIPTS)!r})
import run_checks
from run_checks import SERVERS, SOURCE, Check
run_checks.ROOT = Path({str(tmp_path)!r})
run_checks.OUTPUT = run_checks.ROOT / "checks"
run_checks.CHECKS = (
    Check("tests", SERVERS, {(command or PYTEST)!r}),
    Check("beside", SOURCE, "true"),
)
sys.exit(run_checks.main([]))
"""
        done = subprocess.run(
            [sys.executable, "-c", runner], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        said = done.stdout + done.stderr
        (word,) = [line.split()[1] for line in said.splitlines() if line.startswith("tests ")]
        return done.returncode, said, word

    return run


PYTEST = f"{sys.executable} -m pytest tests --junitxml=$RESULTS/x.xml"


@pytest.mark.parametrize(
    "source, command, says",
    [
        ("import os\ndef test_it(): os._exit(0)\n", PYTEST, "tests: pytest left no tests in x.xml"),
        ("def test_it(): pass\n", PYTEST + " --collect-only", "tests: pytest left no tests in x.xml"),
        ("def test_it(): pass\n", PYTEST + "; truncate -s -20 $RESULTS/x.xml", "tests: pytest left no tests in x.xml"),
        ("def test_it(): assert False\n", PYTEST + "; true", "tests: 1 tests failed, and pytest ended with 0"),
    ],
)
def test_a_check_that_ends_with_0_needs_pytests_own_word(check, source, command, says):
    ended, said, word = check(source, command)
    assert (ended, word) == (1, "FAILED") and says in said, said


def test_a_test_that_failed_does_not_run_again(check, tmp_path):
    """Whatever made it fail: the next run would pass."""
    ended, said, word = check(MISSES_ITS_TIME)
    assert (ended, word) == (1, "FAILED") and (tmp_path / "tests/ran").read_text() == "x", said


def test_tests_that_were_not_judged_are_counted_and_named(check):
    ended, said, word = check(NOT_JUDGED)
    assert (ended, word) == (0, "passed")
    closing = said.splitlines()[-3:]
    assert closing == [
        "not judged: 1 (the machine was busy)",
        "    tests: test_x::test_busy: the machine was busy, control 23 % off",
        "2 passed, 0 failed",
    ]


def test_what_runs_alone_begins_when_all_others_have_ended(start, tmp_path):
    process = start("plain", "guest", "alone")
    output, _none = process.communicate(timeout=60)
    lines = output.splitlines()
    assert lines.index("started alone") > max(lines.index(f"=== {name}") for name in ("plain", "guest")), output


def test_the_others_get_a_fair_share_once_what_comes_first_is_done(start):
    process = start("first", "beside", "fair")
    output, _none = process.communicate(timeout=60)
    assert "=== beside\n10\n" in output and "=== fair\n0\n" in output, output


def test_a_check_that_is_named_alone_runs_both_its_phases(start):
    """Each prints at once."""
    process = start("guest-and-more")
    output, _none = process.communicate(timeout=60)
    assert output.splitlines()[:2] == ["shared", "exclusive"] and output.endswith("\n2 passed, 0 failed\n"), output


def test_a_check_whose_tests_were_all_skipped_is_not_called_passed(check):
    ended, said, word = check("import pytest\ndef test_it(): pytest.skip('no guest')\n")
    assert (ended, word) == (0, "skipped") and "(1 of 1 tests skipped)" in said, said
