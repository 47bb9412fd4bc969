# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a run's results.jsonl: adds what is new at once, and holds what comes before the run's folder is known."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import SCHEMA_VERSION, now
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RUN_ID_PATTERN
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log, run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable

Record = dict[str, t.Any]
# Of a host: every drive of it that was not tested is told it.
MOST_MESSAGE = 1000


def host_record(host: str, state: str, message: str) -> Record:
    """Return a host's record without the run, which `ResultsFile` fills in. state: ok, unreachable, failed or
    unfinished.
    """
    common = {"schema_version": SCHEMA_VERSION, "kind": "host", "time": now(), "run_id": None}
    return dict(common, host=host, state=state, message=printable.line(message, MOST_MESSAGE))


class ResultsFile:
    """The results of one run. Until `open` told where they belong, and after a failed write, records wait in memory."""

    def __init__(self) -> None:
        self.folder = ""
        self._run_id = ""
        self._waiting: list[Record] = []
        self._newest: dict[t.Any, Record] | None = None
        self._size = 0

    @property
    def path(self) -> str:
        """results.jsonl, "" before the run is known."""
        return os.path.join(self.folder, run_record.RESULTS) if self.folder else ""

    def open(self, results_dir: str, run_id: str) -> None:
        """Say which run the records belong to; another run than before starts afresh. Raises ValueError for what is no
        run id.
        """
        if not RUN_ID_PATTERN.fullmatch(run_id):
            raise ValueError(f"{run_id!r} is not a run id")
        folder = os.path.join(os.path.abspath(results_dir), run_id)
        if folder != self.folder:
            self.folder, self._run_id, self._newest = folder, run_id, None

    def add(self, records: t.Iterable[Record]) -> None:
        """Append those that say something new. Raises OSError or ValueError when that fails; they are kept for the next
        time.
        """
        self._waiting += records
        self.flush()

    def flush(self) -> None:
        """Write what waits, where a run's folder is there for it. Raises as `add`."""
        # Without its folder the run was only planned; `collect` and `preflight` make it.
        if not self._waiting or not self.folder or not os.path.isdir(self.folder):
            return
        if self._newest is None or self._size != _size(self.path):  # a host that begins anew, another play of this run
            self._newest = {results_log.key(record): record for record in results_log.load(self.path)}
        fresh = []
        for record in self._waiting:
            record = dict(record, run_id=record["run_id"] or self._run_id)
            if not _same(record, self._newest.get(results_log.key(record))):
                self._newest[results_log.key(record)] = record
                fresh.append(record)
        try:
            results_log.append(self.path, fresh)
            self._size = _size(self.path)
        except BaseException:
            self._newest = None
            raise
        self._waiting = []


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _same(record: Record, other: Record | None) -> bool:
    """Return whether two records differ in nothing but the time at which they were made."""
    return other is not None and dict(record, time=None) == dict(other, time=None)
