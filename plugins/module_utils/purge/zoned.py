# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to empty a zoned drive: its zones are reset. That is no purge as the SNIA PTS means it (`not_pts`): afterwards
the drive says that all zones are empty and gives nothing of what they held, and nothing says that its flash was erased.
"""

from __future__ import annotations

import functools
import random

from ..core.host import Host
from ..drive import zones
from ..drive.zones import Zone
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import ZonedDrive as Capabilities
from .method import NOT_PTS, Command, Done, Method, PurgeError, Work
from .sentinels import SENTINELS, Sentinels, read_block

FAMILY = "zoned"
NAME = "zone_reset"
# A stop is heeded in between.
_ZONES_A_CALL = 64


def capabilities(host: Host, identity: Identity) -> Capabilities | None:
    """Return the zones of a host-managed drive."""
    del host
    if identity.zone_model != zones.HOST_MANAGED:
        return None
    return Capabilities(identity.path, identity.size_bytes, identity.zone_bytes)


def _command(found: Capabilities, _options: PlannedPurge) -> list[Command]:
    return [["ioctl", "BLKRESETZONE", str(found.path), "0", str(found.size_bytes)]]


def _reset(work: Work, _found: Capabilities) -> Done:
    every = _to_reset(work)
    for first in range(0, len(every), _ZONES_A_CALL):
        some = every[first : first + _ZONES_A_CALL]
        try:
            work.bounded("reset zones", functools.partial(zones.reset, work.host, work.handle, work.path, some))
        except OSError as error:
            raise PurgeError(f"the drive refused to reset its zones at byte {some[0].start_bytes}: {error}") from None
        work.tick((first + len(some)) / len(every))
    left = [zone for zone in _report(work) if zone.holds_data]
    if left:
        raise PurgeError(f"after the reset {len(left)} zones are not empty, the first at byte {left[0].start_bytes}")
    return Done()


def _to_reset(work: Work) -> list[Zone]:
    """Return all zones. Raises PurgeError where a reset does not empty them all."""
    every = _report(work)
    other = [zone.start_bytes for zone in every if not zone.sequential]
    if other:
        raise PurgeError(
            f"{len(other)} of its zones are conventional, the first at byte {other[0]}: a reset does not remove what "
            "they hold, so nothing was erased; take the drive out of ssd_drives"
        )
    return every


def _report(work: Work) -> list[Zone]:
    found: list[Zone] = work.bounded(
        "read its zones", functools.partial(zones.report, work.host, work.handle, work.size_bytes)
    )
    return found


class ZoneSentinels(Sentinels):
    """Blocks of data that a reset must make unreadable: what lies at the starts of sampled zones, and, as only their
    write pointers can be written, random data at those of empty ones, as far as the drive can have zones open.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work.size_bytes, work.lba_size_bytes, count=SENTINELS)
        every = _to_reset(work)
        chosen = _sample(every, self.seed)
        limits = [work.identity.max_open_zones, work.identity.max_active_zones]
        most = min([limit for limit in limits if limit] or [SENTINELS])
        room = most - sum(zone.condition in zones.ACTIVE for zone in every)
        there = {
            zone.start_bytes: read_block(work.handle, zone.start_bytes, work.lba_size_bytes)
            for zone in chosen
            if zone.written_bytes
        }
        empty = [zone.start_bytes for zone in chosen if zone.condition == zones.EMPTY][: max(0, room)]
        known = {offset: data for offset, data in there.items() if data.strip(data[:1])}
        if not known and not empty:
            # All that it holds may be zeros: an empty zone takes something that can be looked for.
            zones.reset(work.host, work.handle, work.path, every[:1])
            empty = [every[0].start_bytes]
        self._written = set(known)
        self._expected = {**known, **{offset: self._data(offset) for offset in empty}}


def _sample(every: list[Zone], seed: str) -> list[Zone]:
    """Return some zones by chance, the first and the last among them."""
    inner = every[1:-1]
    return [*every[:1], *random.Random(seed).sample(inner, min(SENTINELS - 2, len(inner))), *every[1:][-1:]]


METHODS = (
    Method(
        NAME,
        FAMILY,
        NOT_PTS,
        20,
        lambda _found: "",
        _command,
        _reset,
        what="resets all zones of a host-managed drive, by ioctl on the open descriptor",
    ),
)
