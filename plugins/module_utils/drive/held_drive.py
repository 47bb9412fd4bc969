# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that somebody holds for us to write, as those see it who write: who checks and opens it is not
their concern.
"""

from __future__ import annotations

import typing as t

from ..records.identity import Identity


class HeldDrive(t.Protocol):
    """A drive that is locked, checked and open exclusively (guard.held is the one that does it).

    unsettled: a purge goes on in the drive, so that what it holds is not known. purge_is_ours: one of ours ended while
      we waited for it.
    """

    unsettled: bool
    purge_is_ours: bool

    @property
    def path(self) -> str:
        """Its device node, as of the last check."""

    @property
    def identity(self) -> Identity:
        """Who it is (drive.identity), as of the last check."""

    def check(self) -> None:
        """The guard, as before every destructive step. Raises its Refused."""

    def descriptor(self) -> int:
        """Return the open descriptor. Raises the guard's Refused when the drive is not held."""

    def note_sentinels(self, sentinels: t.Mapping[int, bytes]) -> None:
        """Let it be known which blocks ({offset: data}) are about to be written to prove a purge with.
        Raises OSError.
        """

    def lend(self, may_change: t.Collection[str] = ()) -> t.ContextManager[None]:
        """Closed while inside, its lock kept; then opened and identified again."""

    def bytes_written(self) -> int | None:
        """Bytes that the kernel has written to the drive since it was attached; None where it does not count them."""
