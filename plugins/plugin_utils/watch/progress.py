# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `watch` prints about a fleet, as plain lines: every drive of a small one, of a large one the sum and what needs
attention. Pure.
"""

from __future__ import annotations

import datetime
import math
import re
import typing as t

from ...module_utils.records.run_files import CalibrationStatus, DriveStatus, LastFigure, Status, TestFigure
from ...module_utils.run import criteria, states
from ..common import units

MOST_HOSTS_IN_FULL = 20
MOST_LINES = 50
# A server takes fewer drives.
MOST_ROWS_OF_HOST = 128
ENDED_STATES = (*states.FINAL_STATES, states.DEAD, states.ABSENT)
# How a drive is counted in the summary, in this order. "lost": its host job is gone.
_PHASES = {
    "measure": "measuring",
    "power_cut": "power cuts",
    "self_test": "waiting for a self-test",
    "device_self_test": "self-test",
}
_COUNTED = (
    *("queued", "guard", "purge", "precondition", "integrity", *_PHASES.values()),
    *("done", "refused", "error", "interrupted", "lost"),
)
# Of a drive that is done: the fleet's judgement is still to come.
PASS = "pass so far"
# Ten years: what a host says beyond is no time.
LONGEST_S = 3e8
# A name in /dev/disk/by-id is shorter.
WIDEST = 120
_HOST_STATES = {
    states.DEAD: (
        "the host job is gone (killed, or the host was restarted): run the playbook again to restore the host "
        "and continue"
    ),
    states.FAILED: "the host job failed",
    states.STOPPED: "the run was stopped",
    states.ABSENT: "no such run on this host: it was not started",
    states.STARTING: "not yet started",
}


class HostView(t.NamedTuple):
    """A host as last seen. `state`: of its run, "" before its first answer; `status`: the newest that it gave;
    `silent_s`: None when it answers; `problem`: why it does not.
    """

    host: str
    state: str = ""
    status: Status | None = None
    silent_s: float | None = None
    problem: str = ""

    @property
    def drives(self) -> list[DriveStatus]:
        """Its drives."""
        return self.status.drives if self.status else []

    @property
    def at_once(self) -> int:
        """How many of them it works on at the same time."""
        return (self.status and self.status.parallel_drives) or 1

    @property
    def calibration(self) -> CalibrationStatus | None:
        """How it finds that number, where it was to."""
        return self.status.calibration if self.status else None


def lines(hosts: t.Sequence[HostView], now: datetime.datetime) -> list[str]:
    """Return the text of one look at the fleet. now: the time to show, and to count from, of whoever reads it."""
    if len(hosts) > MOST_HOSTS_IN_FULL:
        return _headline(hosts, now, slowest=True) + _cut(columns(_attention(hosts)))
    return _headline(hosts, now) + columns(
        [row for host in hosts for row in _few(host, _rows(host), MOST_ROWS_OF_HOST)]
    )


def columns(rows: t.Sequence[t.Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows of texts as lines with aligned columns; the last column of a row may be of any length. One host's long name
    pushes nobody's result away.
    """
    rows = [[_short(cell) for cell in row[:-1]] + list(row[-1:]) for row in rows]
    widths: list[int] = []
    for row in rows:
        for index, cell in enumerate(row[:-1]):
            widths[index : index + 1] = [max(len(cell), *widths[index : index + 1], 0)]
    return [
        (indent + "  ".join([cell.ljust(width) for cell, width in zip(row[:-1], widths)] + [row[-1]])).rstrip()
        for row in rows
    ]


def _short(cell: str) -> str:
    return cell if len(cell) <= WIDEST else cell[: WIDEST - 1] + "…"


def time_left(seconds: float | None) -> str:
    """Return an upper bound, rounded up to what people plan by: ≤ 40 s, ≤ 7 min, ≤ 1 h 12 min."""
    if seconds is None:
        return ""
    if seconds <= 90:
        return f"≤ {math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"≤ {minutes} min" if minutes < 60 else f"≤ {minutes // 60} h {minutes % 60} min"


def figure(last: LastFigure | None) -> str:
    """Return the last figure of a drive: `write 41,201 IOPS, 775.1 µs`, or how far what it does is."""
    if not last:
        return ""
    if last.progress is not None:
        return f"{100 * last.progress:.0f} %"
    words = []
    if last.value is not None and last.metric:
        words.append(metric(last.metric, last.value))
    if last.mean_latency_us is not None and not str(last.metric).endswith("_us"):
        words.append(units.show("mean_latency_us", last.mean_latency_us))
    return ", ".join(words)


def short_name(drive: str, all_drives: t.Iterable[str]) -> str:
    """Return a drive as people tell it apart: of a path the last part, where no other drive has the same."""
    last = drive.rpartition("/")[2]
    others = {other.rpartition("/")[2] for other in all_drives if other != drive}
    return last if last and last not in others else drive


def metric(name: str, value: float) -> str:
    """Return a metric with the direction and, for a latency, the statistic that its name says: write 41,201 IOPS; read
    p99 89.1 µs.
    """
    for end in ("_bandwidth", "_latency_us", "_iops"):
        if name.endswith(end):
            words = re.sub(r"(p\d+)_(\d+)", r"\1.\2", name[: -len(end)]).replace("_", " ")
            return f"{words} {units.show(name, value)}"
    return units.show(name, value)


def _headline(hosts: t.Sequence[HostView], now: datetime.datetime, slowest: bool = False) -> list[str]:
    """`14:02:11  312 drives on 20 hosts: 40 queued, 12 purge, 250 measuring, 10 done; all by 17:12 (≤ 3 h 10 min)`;
    where that has no bound, that of the slowest test.
    """
    kinds = [_kind(host, drive) for host in hosts for drive in host.drives]
    counts = [
        f"{kinds.count(kind)} {kind}" + (_of_done(hosts) if kind == "done" else "")
        for kind in _COUNTED
        if kind in kinds
    ]
    silent = sum(host.silent_s is not None for host in hosts)
    unasked = sum(_is_unasked(host) for host in hosts)
    counts += [
        f"{_number(number, 'host')} {what}"
        for number, what in ((silent, "without an answer"), (unasked, "not asked yet"))
        if number
    ]
    text = f"{now:%H:%M:%S}  {_number(len(kinds), 'drive')} on {_number(len(hosts), 'host')}"
    text += f": {', '.join(counts)}" if counts else ""
    live = [host for host in hosts if host.state in states.LIVE_STATES]
    bounds, left = [_all_left_s(host) for host in live], [_host_left_s(host) for host in live]
    known = [bound for bound in bounds if bound is not None]
    if known and len(known) == len(bounds):
        text += f"; all by {_end(now, max(known))} ({time_left(max(known))})"
    elif slowest and any(left):
        text += f"; slowest {time_left(max(seconds or 0 for seconds in left))}"
    return [text]


def _of_done(hosts: t.Sequence[HostView]) -> str:
    """Return how many drives that are done came to what; "" where none has a figure."""
    done = [drive for host in hosts for drive in host.drives if drive.outcome == "complete"]
    results = [_result(drive) for drive in done]
    if not any(drive.results for drive in done):
        return ""
    return f" ({', '.join(f'{results.count(one)} {one}' for one in (PASS, 'fail', 'invalid') if one in results)})"


def _is_unasked(host: HostView) -> bool:
    return not host.state and host.silent_s is None


def _number(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _host_left_s(host: HostView) -> float | None:
    """Of the drive under way that takes longest; what is still queued has no bound of its own yet."""
    return max((_test_left_s(host, drive) or 0 for drive in host.drives if drive.outcome is None), default=None)


def _test_left_s(host: HostView, drive: DriveStatus) -> float | None:
    """Return what is left by now of the bound that the drive's host job last gave for its test."""
    left_s = drive.time_left_s
    if not left_s or not drive.time_left_at:
        return left_s
    return max(0.0, left_s - max(0.0, _before_last_news_s(host, drive.time_left_at) or 0.0))


def _all_left_s(host: HostView) -> float | None:
    """Return an upper bound of all that is left on a host, whatever drive comes next; None where a drive has none."""
    left = [_drive_left_s(host, drive) for drive in host.drives if drive.outcome is None]
    known = [one for one in left if one is not None]
    if not known or len(known) < len(left):
        return None
    return _calibration_s(host) + sum(known) / host.at_once + max(known) * (1 - 1 / host.at_once)


def _calibration_s(host: HostView) -> float:
    """Return an upper bound of the reads before the first drive's tests, where the host finds how many it measures at
    once.
    """
    return float(min(host.calibration.left_s, LONGEST_S)) if host.calibration else 0.0


def _drive_left_s(host: HostView, drive: DriveStatus) -> float | None:
    """Return an upper bound of its test and those after it."""
    parts = [drive.later_s, 0 if drive.phase == "queued" else _test_left_s(host, drive)]
    known = [float(part) for part in parts if part is not None and part <= LONGEST_S]
    return sum(known) if len(known) == len(parts) else None


def _end(now: datetime.datetime, seconds: float) -> str:
    """Return the clock time, rounded up to a minute: 17:12, Tue 17:12, Tue 24 Nov 17:12."""
    at = now + datetime.timedelta(seconds=seconds + 59)
    days = (at.date() - now.date()).days
    return f"{at:%H:%M}" if not days else f"{at:%a %H:%M}" if days < 7 else f"{at:%a %d %b %H:%M}"


def _kind(host: HostView, drive: DriveStatus) -> str:
    if drive.outcome is not None:
        return "done" if drive.outcome == "complete" else drive.outcome
    return "lost" if host.state in ENDED_STATES else _PHASES.get(drive.phase, drive.phase)


def _rows(host: HostView) -> list[list[str]]:
    """Return every drive of a host; first what is to say of the host itself."""
    note = _host_note(host) or _at_once(host)
    return ([[host.host, "", note]] if note else []) + [[host.host, *_drive_row(host, drive)] for drive in host.drives]


def _attention(hosts: t.Sequence[HostView]) -> list[list[str]]:
    rows: list[list[list[str]]] = []
    for host in hosts:
        note = "" if _is_unasked(host) else _host_note(host)
        wrong = [drive for drive in host.drives if drive.outcome is not None and _result(drive) != PASS]
        mine = ([[host.host, "", note]] if note else []) + [
            [host.host, _name(host, drive), *_ending(drive)] for drive in wrong
        ]
        rows.append(_few(host, mine, MOST_LINES // 5))
    return [row for mine in rows for row in mine]


def _few(host: HostView, rows: list[list[str]], most: int) -> list[list[str]]:
    """No host's rows push the other hosts' away."""
    return rows if len(rows) <= most else [*rows[:most], [host.host, "", f"… and {len(rows) - most} more like these"]]


def _cut(rows: list[str]) -> list[str]:
    if len(rows) <= MOST_LINES:
        return rows
    return rows[:MOST_LINES] + [f"  … and {len(rows) - MOST_LINES} more lines like these"]


def _host_note(host: HostView) -> str:
    """Return what is to say of a host as a whole; "" when all is well."""
    if host.silent_s is not None:
        return f"no answer for {units.duration(round(host.silent_s))}, still trying" + (
            f" ({host.problem})" if host.problem else ""
        )
    if _is_unasked(host):
        return "not asked yet"
    note = _HOST_STATES.get(host.state, "")
    message = host.status.message if host.status else ""
    return ": ".join(part for part in (note, message) if part) if note else ""


def _at_once(host: HostView) -> str:
    """Return how many drives the host measures at the same time, where it was to find out; of a host under way."""
    found = host.calibration
    if not found or host.state not in states.LIVE_STATES:
        return ""
    if not found.why:
        return f"finds how many drives to measure at the same time ({time_left(_calibration_s(host))})"
    return f"measures {_number(host.at_once, 'drive')} at the same time: {found.why}"


def _drive_row(host: HostView, drive: DriveStatus) -> list[str]:
    name = _name(host, drive)
    if drive.outcome is not None:
        return [name, *_ending(drive)]
    kind = _kind(host, drive)
    if kind in ("queued", "lost"):
        return [name, kind]
    where = f"{drive.test} ({drive.test_index} of {drive.tests})" if drive.test else ""
    silent_s = _no_news_s(host, drive)
    said = f"no news for {units.duration(round(silent_s))}: it may hang" if silent_s else _said(drive)
    return [name, kind, where, _round(drive), said, time_left(_test_left_s(host, drive))]


def _said(drive: DriveStatus) -> str:
    if drive.phase != "self_test":
        return figure(drive.last)
    return f"{100 - 100 * drive.last.progress:.0f} % left" if drive.last and drive.last.progress is not None else ""


def _no_news_s(host: HostView, drive: DriveStatus) -> float | None:
    """For how long a drive has said nothing, where that is longer than it should take. By the host's own clock: its job
    says every half minute that it lives.
    """
    limit_s = drive.news_within_s
    if not limit_s or not drive.updated:
        return None
    silent_s = _before_last_news_s(host, drive.updated)
    return silent_s if silent_s is not None and silent_s > limit_s else None


def _before_last_news_s(host: HostView, said_at: str) -> float | None:
    """Return how long before its host's last news something was said; None where a time can't be read."""
    if host.status is None:
        return None
    try:
        heard, said = (
            datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ") for text in (host.status.updated, said_at)
        )
    except ValueError:
        return None
    return (heard - said).total_seconds()


def _name(host: HostView, drive: DriveStatus) -> str:
    return short_name(drive.drive, [other.drive for other in host.drives])


def _round(drive: DriveStatus) -> str:
    if drive.phase != "measure" or not drive.round:
        return ""
    if drive.round_max and drive.round > drive.round_max:
        return f"round {drive.round} (disturbed ones are measured again; it takes at most {drive.round_max} others)"
    return f"round {drive.round}" + (f" of {drive.round_max}" if drive.round_max else "")


def _result(drive: DriveStatus) -> str:
    """Return what a drive that is done came to, as far as its host can judge: relative criteria, and what the
    controller computes anew, are not in it.
    """
    if drive.missed:
        return "fail"
    if drive.outcome != "complete":
        return str(drive.outcome)
    valid = all(test.outcome in criteria.MEASURED for test in drive.results or ())
    return PASS if valid else "invalid"


def _ending(drive: DriveStatus) -> list[str]:
    """Return the cells of a drive that is done: its result, what it missed, and the figures of its tests."""
    result = _result(drive)
    why = "; ".join(filter(None, (drive.message, drive.missed)))
    tests = "; ".join(_test(test) for test in drive.results or ())
    word = "done" if result == PASS and not drive.results else result
    return list(filter(None, (word, tests, why))) if tests else [": ".join(filter(None, (word, why)))]


def _test(test: TestFigure) -> str:
    """Return `iops write 41,201 IOPS`, and what else became of a test."""
    said = "" if test.outcome in criteria.MEASURED else test.outcome.replace("_", " ")
    known = test.metric is not None and test.value is not None
    shown = metric(str(test.metric), float(test.value or 0)) if known else ""
    return " ".join(filter(None, (test.test, said, shown)))
