# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive in service that this job reads: locked against other runs, identified as any other, and open for reading
alone. Nobody who uses it is kept out, nothing is noted in the ledger, and nothing can be written through it.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..records import base
from ..records.identity import Identity
from . import rules, service_drives
from .held import HeldDrive, Refused


class DriveInService(HeldDrive):
    """As HeldDrive; what a campaign does to a drive that it may write is refused here, or nothing."""

    def check(self) -> None:
        """See that it is the planned drive, and nothing else: what lies on it is its user's. Raises Refused."""
        seen = service_drives.found(self._host, [self._entry])[0]
        refusals = list(seen.refusals)
        if not refusals:
            who = base.to_json(seen.identity)
            refusals = rules.compare(self._expected, who, self._same_boot, who=str(seen.drive))
        if refusals:
            raise Refused(refusals)
        if self.handle is not None and seen.path != self.path:
            raise self._refused("identity_changed", f"it became {seen.path}")
        self.path, self.identity = str(seen.path), seen.identity or Identity()

    def _open(self, path: str) -> None:
        try:
            self.handle = self._host.open(path, os.O_RDONLY | os.O_DIRECT)
        except OSError as error:
            raise self._refused("probe_failed", f"it cannot be opened for reading: {error.strerror}") from None

    def content_is_ours(self) -> None:
        """It never is."""
        self.descriptor()

    def keep_as_evidence(self, reason: str) -> None:
        """Nothing erases it, so that there is nothing to keep it from."""

    def _refuse_writing(self) -> None:
        raise self._refused("not_held", " for writing: it is in service")

    @contextlib.contextmanager
    def lend(self, may_change: t.Collection[str] = ()) -> t.Iterator[None]:
        """Refuse: tools that need the device itself change it."""
        self._refuse_writing()
        yield

    @contextlib.contextmanager
    def shared(self, at_end: t.Callable[[str], object] = lambda _node: None) -> t.Iterator[str]:
        """Refuse: no file system is made on it."""
        self._refuse_writing()
        yield ""
