# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks, side by side where they don't disturb each other, and end 0 only when all passed.

scripts/test [--list] [quick] [check ...]

  scripts/test              every check (named below), but for tests that are marked long, and a sample of campaigns
  scripts/test quick        for everyday work: lint of the files changed since the merge base with origin/main or main
                            (on that branch itself: since the commit before), the unit tests but for the thorough ones,
                            a tenth of the mutations, and one qualification of two loop devices by the playbooks
  scripts/test unit lint    these checks
  scripts/test --list       the names of the checks

It goes on after a failed check. What a check said is printed whole when it has ended (of a single check at once), at
the end the ten slowest tests, each failure once more in short, a table, and which tests were not judged as the machine
was busy (tests/control_drive.py). A check that ends with 0 without pytest's own word for it has failed. Integration,
molecule and vm need root (loop devices, containers, a guest). Ctrl-C, SIGTERM or SIGHUP lets the running checks clean
up, for a minute and a half, and starts no further one; the second such signal ends them at once. Either way
scripts/clean_run.py leaves nothing of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import check_results
import leftovers

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "tests/output/checks"
# Of each failure once more: enough to know it by where only the end of a log is kept.
FAILED_TESTS, OUTPUT_LINES = 40, 30
POLL_S = 0.2
CLEAN_RUN = Path(__file__).resolve().with_name("clean_run.py")
# tests/others_cpu.py: what descends from this process is not another's.
OURS = "SSDLAB_FLEET_CHECKS"

# Checks of one lane run one after the other, in the order of the table; lanes run side by side, but for ALONE, which
# begins when all others have ended.
SERVERS, CONTAINERS, SOURCE, UNITS, ALONE = "servers", "containers", "source", "units", "alone"
# What starts servers comes first on the CPUs, as it mostly waits. The others still get a tenth of a CPU each beside
# processes that want them all, and a fair share once its lane is done.
NICE = {SERVERS: 0, CONTAINERS: 5, SOURCE: 10, UNITS: 10, ALONE: 0}


@dataclass(frozen=True)
class Check:
    """A check: a line of shell in the checkout. $RESULTS is a folder of its own, for pytest's --junitxml; $ALL is set
    when all checks run.
    """

    name: str
    lane: str
    command: str
    sets: tuple[str, ...] = ("all",)

    @property
    def results(self) -> list[str]:
        """The files in which pytest says what its tests did."""
        return re.findall(r"--junitxml=\$RESULTS/(\S+)", self.command)


PYTEST = "python -m pytest"
SCRIPTS = "scripts/setup scripts/demo scripts/test scripts/check-galaxy scripts/fresh-machine scripts/simulated-ssd"
PYTHON = "ruff check && ruff format --check && mypy"
# Among all checks a tenth of the mutations and a fifth of the fuzzed inputs.
MUTATIONS = "SSDLAB_FLEET_SAMPLE=10"
SAMPLE = f"${{ALL:+env {MUTATIONS} SSDLAB_FLEET_FUZZ=20}}"
# By reading, and by running where a Python 3.8 is at hand.
VERMIN = "vermin --quiet --no-tips --target=3.8- --violations plugins/module_utils plugins/modules"
# After a reboot Molecule still believes in the servers of a run that was cut off. A run that was interrupted leaves its
# own.
MOLECULE = """\
trap : INT
molecule destroy --scenario-name default || exit
molecule test --scenario-name default --scenario-name roles && exit
result=$?
molecule destroy --scenario-name default
exit $result"""

CHECKS = (
    # More than CPUs, as they mostly wait. Stealing keeps the tests of a file, and what they share, together.
    Check(
        "integration",
        SERVERS,
        f'{PYTEST} tests/integration -n 5 --dist worksteal -m "not exclusive${{ALL:+ and not long}}" '
        "--junitxml=$RESULTS/integration.xml",
    ),
    Check("awx", SOURCE, f"{PYTEST} tests/awx --junitxml=$RESULTS/awx.xml"),
    Check("molecule", CONTAINERS, MOLECULE),
    Check(
        "compat",
        CONTAINERS,
        f"{PYTEST} tests/compat/test_versions.py tests/compat/test_fio_versions.py --junitxml=$RESULTS/compat.xml",
    ),
    Check("changelog", SOURCE, "antsibull-changelog lint"),
    Check("docs", SOURCE, "antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs self ."),
    Check("site", SOURCE, "scripts/docs $RESULTS/site"),
    Check("galaxy", SOURCE, "scripts/check-galaxy"),
    Check("python38", SOURCE, f"{VERMIN} && {PYTEST} tests/compat/test_python38.py --junitxml=$RESULTS/python38.xml"),
    Check(
        "lint", UNITS, f"{PYTHON} && ansible-lint --offline --strict --profile production && shellcheck -x {SCRIPTS}"
    ),
    Check("sanity", SOURCE, "python scripts/run_ansible_test.py sanity"),
    # Not behind sanity, which leaves a CPU idle, and last, as it can use both.
    Check("unit", UNITS, f"{SAMPLE} {PYTEST} tests/unit -n 2 --junitxml=$RESULTS/unit.xml"),
    # Only by its name: the same tests by ansible-test, which forks a process for each of two thousand and takes three
    # times as long.
    Check("units", SOURCE, "python scripts/run_ansible_test.py units", ()),
    Check("lint-changed", SOURCE, "python scripts/lint_changed.py", ("quick",)),
    Check(
        "unit-quick",
        SOURCE,
        f'{MUTATIONS} {PYTEST} tests/unit -n 3 -m "not thorough" --junitxml=$RESULTS/unit.xml',
        ("quick",),
    ),
    Check(
        "qualify",
        SERVERS,
        f"{PYTEST} tests/integration/test_playbooks_local.py -k neither_tuned --junitxml=$RESULTS/qualify.xml",
        ("quick",),
    ),
    # The emulated guest needs a whole CPU, and its plays have time limits. Among all checks only what does not take
    # minutes, named alone the whole suite.
    Check("vm", ALONE, f'{PYTEST} tests/vm ${{ALL:+-m "not long"}} --junitxml=$RESULTS/vm.xml'),
    # With `integration`, by that name too.
    Check(
        "integration-exclusive",
        ALONE,
        f'{PYTEST} tests/integration -m "exclusive${{ALL:+ and not long}}" --junitxml=$RESULTS/exclusive.xml',
        ("all", "integration"),
    ),
    # Only by its name: every fault in every phase, then runs whose jobs are killed at random. About half an hour.
    Check("faults", SERVERS, "python tests/faults/run.py && python tests/faults/soak.py", ()),
)


@dataclass
class Running:
    """A check that was started, or has ended. A process group of its own."""

    check: Check
    process: subprocess.Popen
    results: Path
    log: t.BinaryIO | None
    started_s: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    cpu_s: float = 0.0

    def has_ended(self) -> bool:
        """Also takes the times, once."""
        if self.process.returncode is None:
            before_s = _children_cpu_s()
            if self.process.poll() is not None:
                self.seconds = time.monotonic() - self.started_s
                self.cpu_s = _children_cpu_s() - before_s
        return self.process.returncode is not None

    def report(self) -> None:
        """Print all that it said, if that was kept."""
        if self.log:
            print(f"\n=== {self.check.name}", flush=True)
            self.log.seek(0)
            shutil.copyfileobj(self.log, sys.stdout.buffer)
            sys.stdout.flush()
            self.log.close()

    def failures(self) -> list[str]:
        """Lines on what failed: its tests by name, each with the end of what it said; without such, the end of the
        output.
        """
        if not self.process.returncode and not self.doubts():
            return []
        tests = check_results.failed_tests(self.results) + [(doubt, []) for doubt in self.doubts()]
        if not tests and self.log:
            said = (self.results / "output.log").read_text(errors="replace").splitlines()
            tests = [("the end of its output", said[-OUTPUT_LINES:])]
        lines = []
        for name, said in tests[:FAILED_TESTS]:
            lines += [f"{self.check.name}: {name}", *(f"    {line[:200]}" for line in said)]
        return lines + [f"{self.check.name}: and {len(tests) - FAILED_TESTS} more"] * (len(tests) > FAILED_TESTS)

    def row(self) -> str:
        """Its line of the table."""
        skipped, tests = (len(find(self.results)) for find in (check_results.skipped_cases, check_results.all_cases))
        outcome = "skipped" if tests and skipped == tests else "passed"
        outcome = f"FAILED ({self.process.returncode})" if self.has_failed() else outcome
        remark = f"  ({skipped} of {tests} tests skipped)" if skipped else ""
        return f"{self.check.name:21} {outcome:12} {self.seconds:5.0f} s {self.cpu_s:5.0f} CPU-s{remark}"

    def doubts(self) -> list[str]:
        """Why it has not passed although it ended with 0."""
        return [] if self.process.returncode else check_results.doubts(self.results, self.check.results)

    def has_failed(self) -> bool:
        return bool(self.process.returncode) or bool(self.doubts())


@dataclass
class Stop:
    """A signal that asks us to stop: what runs is asked to clean up, whatever was started meanwhile. A second one ends
    it at once.
    """

    asked: bool = False
    running: list[subprocess.Popen] = field(default_factory=list)

    def __call__(self, _number: int, _frame: object) -> None:
        again, self.asked = self.asked, True
        for process in self.running:
            (end if again else interrupt)(process)

    def start(self, command: str, claims: Path, **options: t.Any) -> subprocess.Popen:
        """Start a line of shell in a process group of its own, of which nothing will stay."""
        argv = [sys.executable, str(CLEAN_RUN), str(claims), "bash", "-c", command]
        process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        self.running.append(process)
        if self.asked:  # in between
            interrupt(process)
        return process


def _children_cpu_s() -> float:
    """CPU-seconds of all processes that ended below this one and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interrupt(process: subprocess.Popen) -> None:
    """Ask all processes of a group to clean up."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


def end(process: subprocess.Popen) -> None:
    """Have all processes of a check ended, and what they left taken away."""
    if process.poll() is None:
        process.terminate()


def start(check: Check, live: bool, every: bool, stop: Stop) -> Running:
    """Start a check; unless it is live, its output goes to a file."""
    results = OUTPUT / check.name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    log = None if live else (results / "output.log").open("w+b")
    claims = results / "folders"
    environment = {
        **os.environ,
        "RESULTS": str(results),
        "ALL": "yes" if every else "",
        leftovers.FOLDERS: str(claims),
        OURS: str(os.getpid()),
    }
    process = stop.start(check.command, claims, env=environment, stdout=log, stderr=log and subprocess.STDOUT)
    yield_cpu(process.pid, NICE[check.lane])
    if log:
        print(f"started {check.name}", flush=True)
    return Running(check, process, results, log)


def yield_cpu(session: int, nice: int) -> None:
    """Weigh a session as a whole (sched(7), autogroup); where it has none, as under some container runtimes, the
    processes that it has now.
    """
    autogroup = Path(f"/proc/{session}/autogroup")
    with contextlib.suppress(PermissionError, ProcessLookupError):  # only root may take weight back
        if autogroup.exists() and autogroup.read_text():
            autogroup.write_text(str(nice))
        else:
            os.setpriority(os.PRIO_PGRP, session, nice)


def run(checks: list[Check], every: bool, live: bool, stop: Stop) -> list[Running]:
    """Run checks; all that were started, in the order of their ends. live: print what they say at once."""
    waiting, running, ended = list(checks), [], []
    while running or (waiting and not stop.asked):
        busy = {each.check.lane for each in running}
        for check in [] if stop.asked else list(waiting):
            others = {each.lane for each in waiting} | busy
            if check.lane not in busy and ALONE not in busy and (check.lane != ALONE or others == {ALONE}):
                busy.add(check.lane)
                waiting.remove(check)
                running.append(start(check, live, every, stop))
        for each in [each for each in running if each.has_ended()]:
            running.remove(each)
            ended.append(each)
            each.report()
            if SERVERS not in {other.check.lane for other in running} | {other.lane for other in waiting}:
                for other in running:
                    yield_cpu(other.process.pid, 0)
        time.sleep(POLL_S)
    return ended


def chosen(arguments: list[str]) -> list[Check]:
    """The checks that the command line names."""
    wanted = set(arguments or ["all"])
    unknown = wanted - {name for check in CHECKS for name in (check.name, *check.sets)}
    if unknown:
        sys.exit(f"scripts/test: unknown check '{min(unknown)}'; there are: {' '.join(names('all'))}, and quick")
    return [check for check in CHECKS if {check.name, *check.sets} & wanted]


def names(of_set: str) -> list[str]:
    """The names of the checks of a set."""
    return [check.name for check in CHECKS if of_set in check.sets]


def main(arguments: list[str]) -> int:
    """The command line, after set-up."""
    if arguments[:1] == ["--list"]:
        print("\n".join(names("all")))
        return 0
    if arguments[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    checks = chosen(arguments)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    # Both phases of a check come one after the other.
    ended = run(checks, not arguments, arguments == [checks[0].name], stop)
    slowest = check_results.slowest_tests(OUTPUT)
    if slowest:
        print("\nThe slowest tests:")
        print("\n".join(f"{seconds:7.1f} s  {name}" for seconds, name in slowest))
    failures = [line for each in ended for line in each.failures()]
    if failures:
        print("\nThe failures:", *failures, sep="\n")
    print("", *(each.row() for each in ended), sep="\n")
    unjudged = [(each.check.name, *test) for each in ended for test in check_results.not_judged(each.results)]
    if unjudged:
        print(f"\nnot judged: {len(unjudged)} (the machine was busy)")
        print(*(f"    {check}: {test}: {reason}" for check, test, reason in unjudged), sep="\n")
    failed = sum(1 for each in ended if each.has_failed())
    if stop.asked:
        print("scripts/test: stopped before the end", file=sys.stderr)
    print(f"{len(ended) - failed} passed, {failed} failed")
    return 1 if failed or stop.asked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
