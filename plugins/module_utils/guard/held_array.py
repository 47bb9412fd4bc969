# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several held drives as one device for fio: an array whose members this job holds, each with its lock and ledger."""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..tools import mdadm
from .held import HeldDrive, Refused
from .rules import make_refusals


class HeldArray:
    """Looks to fio's bench as a held drive does. handle: of the array, open exclusively; seen: as it was made."""

    unsettled = False
    purge_is_ours = False

    def __init__(
        self, host: Host, members: t.Sequence[HeldDrive], name: str, handle: int, seen: mdadm.Array, size_bytes: int
    ) -> None:
        self._host, self._members, self._name, self._seen = host, members, name, seen
        self.handle = handle
        self.path = f"/dev/{name}"
        block = max(member.identity.sizes()[1] for member in members)
        depths = [member.identity.queue_depth for member in members]
        self.identity = Identity(
            kernel_name=name,
            path=self.path,
            major_minor=seen.number,
            size_bytes=size_bytes,
            logical_block_size_bytes=block,
            queue_depth=min((depth for depth in depths if depth), default=None),
        )

    def check(self) -> None:
        """The guard of a device that is ours alone: that it is the same array of the same drives. Raises Refused."""
        self.confirm()

    def confirm(self) -> None:
        """See that every member is still the drive that it was, and that the array is made of them alone.
        Raises Refused.
        """
        for member in self._members:
            member.confirm()
        now = mdadm.read_array(self._host, self._name)
        if now != self._seen:
            raise self._refused(f"{self.path} was {self._seen}, is {now or 'gone'}")
        size = os.lseek(self.descriptor(), 0, os.SEEK_END)
        if size != self.identity.size_bytes:
            raise self._refused(f"{self.path} had {self.identity.size_bytes} bytes, has {size}")

    def _refused(self, detail: str) -> Refused:
        return Refused(make_refusals("identity_changed", f"the array ({self.path})", [detail]))

    def descriptor(self) -> int:
        """Return the open descriptor of the array."""
        return self.handle

    def note_sentinels(self, sentinels: t.Mapping[int, bytes]) -> None:
        """An array is not purged; its members are, each by itself."""
        raise NotImplementedError

    def lend(self, may_change: t.Collection[str] = ()) -> t.ContextManager[None]:
        """No tool gets an array."""
        raise NotImplementedError

    def bytes_written(self) -> int | None:
        """That the kernel has written to the array; None: it does not count."""
        folder = f"/sys/block/{self._name}/"
        fields = (self._host.get(folder + "stat") or "").split()
        counts = self._host.get(folder + "queue/iostats") != "0" and len(fields) > 6
        return int(fields[6]) * 512 if counts else None

    def close(self) -> None:
        """Let go of the array; its members stay held."""
        with contextlib.suppress(OSError):
            os.close(self.handle)
