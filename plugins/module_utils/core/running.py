# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command that another thread can end, with all that it started."""

from __future__ import annotations

import subprocess
import typing as t

from .host import Host, Result, end_session


class Running:
    """One command, once."""

    def __init__(self, host: Host, argv: t.Sequence[str]) -> None:
        self._host, self._argv = host, argv
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self, timeout_s: float, stdin: str | None = None) -> Result:
        """As `Host.run`."""
        return self._host.run(self._argv, timeout_s=timeout_s, stdin=stdin, started=self._begin)

    def _begin(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._is_over:
            end_session(process)

    def end(self) -> None:
        """Kill it, also where it has yet to start. Whoever runs it gets its result."""
        self._is_over = True
        if self._process is not None:
            end_session(self._process)
