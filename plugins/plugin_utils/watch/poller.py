# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks many hosts at once, again and again, so that one that hangs holds up nobody: neither the others nor the end."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
import queue
import signal
import threading
import time
import typing as t

from ..common.processes import children, signal_all

SLOTS = 32
GRACE_S = 1.0
KILL_AFTER_S = 5.0


@dataclasses.dataclass
class Watched:
    """A host: what it last said, since when it has been silent (None: it answered when last asked), its error, if it
    gave one, and the number of the round in which it was last asked.
    """

    name: str
    ask: t.Callable[[], t.Any]
    answer: t.Any = None
    silent_since: float | None = None
    problem: str = ""
    ended: bool = False
    asked: int = 0
    question: _Question | None = None


@dataclasses.dataclass
class _Question:
    """One question under way: when it began, its thread as the kernel knows it, and how it was ended by force."""

    began: float
    thread_id: int | None = None
    overdue: bool = False
    signals: list[int] = dataclasses.field(default_factory=list)


class Sweep:
    """Questions to hosts, each in a thread of its own, at most 32 at a time, each with a time limit.

    asks: host name → a function that asks it, may block, and may raise. `has_ended(answer)`: this host needs no more
      questions.
    A thread that outlives its limit gets the processes ended that it started (ssh), and is no longer waited for.
    """

    def __init__(
        self,
        asks: t.Mapping[str, t.Callable[[], t.Any]],
        has_ended: t.Callable[[t.Any], bool],
        timeout_s: float,
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self.hosts = {name: Watched(name, ask) for name, ask in asks.items()}
        self._has_ended = has_ended
        self._timeout_s = timeout_s
        self._clock = clock
        self._answers: queue.SimpleQueue[tuple[Watched, _Question, t.Any, Exception | None]] = queue.SimpleQueue()
        self._waiting: dict[str, Watched] = {}  # by name, in the order in which they are asked
        self._rounds = 0

    def round(self) -> None:
        """Ask every host that has not ended; return when those that are not silent answered or fell silent, or are too
        many to wait for.
        """
        until = self._clock() + self._timeout_s + GRACE_S
        left = [host for host in self.hosts.values() if not host.ended and host.question is None]
        self._rounds += 1
        # Whom the last round did not come to comes first: else, on a slow controller, the same few are asked each time.
        ordered = sorted(left, key=lambda host: (host.asked, host.silent_since is not None))
        self._waiting = {host.name: host for host in ordered}
        # What the others say is heard in the time between two rounds.
        self._pump(
            lambda: self._clock() >= until or not any(self._holds_up(host) for host in self.hosts.values()), until
        )

    def pause(self, seconds: float) -> None:
        """Wait, listening to the hosts that have not answered yet; ends early when every host has ended."""
        until = self._clock() + seconds
        self._pump(lambda: self.all_ended() or self._clock() >= until, until)

    def all_ended(self) -> bool:
        """Return whether no host needs another question."""
        return all(host.ended for host in self.hosts.values())

    def silent_s(self, host: Watched) -> float | None:
        """For how long a host has given no answer; None when it answers."""
        return None if host.silent_since is None else self._clock() - host.silent_since

    def close(self) -> None:
        """End what is still under way; nothing is waited for."""
        self._waiting = {}
        for host in self.hosts.values():
            if host.question is not None:
                _signal_children(host.question.thread_id, signal.SIGKILL)

    def _holds_up(self, host: Watched) -> bool:
        if host.silent_since is not None:
            return False
        return host.name in self._waiting or (host.question is not None and not host.question.overdue)

    def _pump(self, done: t.Callable[[], bool], until: float) -> None:
        while True:
            self._start_waiting()
            if done():
                return
            wait_s = min(1.0, max(0.0, until - self._clock()))
            with contextlib.suppress(queue.Empty):
                self._hear(*self._answers.get(timeout=wait_s))
                while True:
                    self._hear(*self._answers.get_nowait())
            self._end_overdue()

    def _start_waiting(self) -> None:
        """Silent hosts get no more than half of the slots, so that the others always have some."""
        active = [host for host in self.hosts.values() if host.question is not None and not host.question.overdue]
        silent = sum(host.silent_since is not None for host in active)
        free = SLOTS - len(active)
        for host in list(self._waiting.values()):
            is_silent = host.silent_since is not None
            if free <= 0:
                return
            if is_silent and silent >= SLOTS // 2:
                continue
            del self._waiting[host.name]
            self._start(host)
            free, silent = free - 1, silent + is_silent

    def _start(self, host: Watched) -> None:
        # A daemon thread: a blocked one must not keep the process from its exit.
        # Ansible keeps the running task in a context variable, which connection plugins may ask for.
        run = contextvars.copy_context().run
        host.question, host.asked = _Question(self._clock()), self._rounds
        threading.Thread(
            target=run, args=(self._run, host, host.question), name=f"ask {host.name}", daemon=True
        ).start()

    def _run(self, host: Watched, question: _Question) -> None:
        question.thread_id = threading.get_native_id()
        try:
            self._answers.put((host, question, host.ask(), None))
        except Exception as error:  # Told to the user by the main thread, as the host's problem.
            self._answers.put((host, question, None, error))

    def _hear(self, host: Watched, question: _Question, answer: t.Any, error: Exception | None) -> None:
        host.question = None
        if error is None:
            host.answer, host.silent_since, host.problem = answer, None, ""
            host.ended = self._has_ended(answer)
        elif not question.overdue:
            self._silent(host, str(error) or type(error).__name__)

    def _silent(self, host: Watched, problem: str) -> None:
        host.problem = problem
        if host.silent_since is None:
            host.silent_since = host.question.began if host.question else self._clock()

    def _end_overdue(self) -> None:
        for host in self.hosts.values():
            question = host.question
            if question is None:
                continue
            age_s = self._clock() - question.began
            if age_s < self._timeout_s:
                continue
            if not question.overdue:
                question.overdue = True
                self._silent(host, "")
            number = signal.SIGTERM if age_s < self._timeout_s + KILL_AFTER_S else signal.SIGKILL
            if number not in question.signals:
                question.signals.append(number)
                _signal_children(question.thread_id, number)


def _signal_children(thread_id: int | None, number: int) -> None:
    """Signal the processes that a thread of ours started, and theirs (Linux; elsewhere they are left alone)."""
    signal_all(_descendants(os.getpid(), str(thread_id)), number)


def _descendants(pid: int, threads: str = "*") -> list[int]:
    found = children(pid, threads)
    return found + [deeper for child in found for deeper in _descendants(child)]
