# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge: which methods a drive offers, and which one is taken. purge_step.py does it.

A family of methods is a file with `capabilities(host, identity)`, which only reads and is None where the family has
nothing to do with the drive; `Capabilities`, the record that it returns; and `METHODS`. A new one is a line in
FAMILIES.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..core.host import Host
from ..drive import zones
from ..records import base
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import Capabilities, DeallocatedRead, Found, NotQueried, OfferedPurge
from . import ata, generic, iomemory_format, micron, nvme, scsi, zoned
from .method import Method, PurgeError

# One line each: a new family is added here.
FAMILIES: tuple[t.Any, ...] = (
    nvme,
    ata,
    scsi,
    generic,
    iomemory_format,
    micron,
    zoned,
)
METHODS: dict[str, Method[t.Any]] = {method.name: method for family in FAMILIES for method in family.METHODS}


def probe(host: Host, identity: Identity) -> Found:
    """Return what each family that has to do with the drive found out, or why it did not."""
    found: Found = {}
    # Of the others most write where they like, and none has been tried on zones.
    for family in (zoned,) if identity.zone_model == zones.HOST_MANAGED else FAMILIES:
        try:
            capabilities = family.capabilities(host, identity)
        except PurgeError as error:
            capabilities = NotQueried(str(error))
        except Exception as error:  # whatever a drive says: what is not understood is not supported
            capabilities = NotQueried(f"{type(error).__name__}: {error}")
        if capabilities:
            found[family.METHODS[0].family] = capabilities
    return found


def reported(capabilities: t.Mapping[str, base.Json]) -> Found:
    """Return what `probe` found on a host, of its JSON; what is no such record counts as not understood."""
    found: Found = {}
    for family in FAMILIES:
        name = family.METHODS[0].family
        if name in capabilities:
            kind = NotQueried if "error" in capabilities[name] else family.Capabilities
            try:
                found[name] = base.parse(kind, capabilities[name])
            except base.WrongShape as error:
                found[name] = NotQueried(f"the host's report is not understood: {error.within(name)}")
    return found


def promise(method: str, found: Found) -> DeallocatedRead | None:
    """Return what the drive says that its blocks read as after a purge by this method; None: it does not deallocate, or
    the drive promises nothing.
    """
    told = [getattr(each, "deallocated_read", None) for each in found.values() if METHODS[method].is_hint]
    return next((each for each in told if each), None)


def capabilities_of(method: str, capabilities: base.Json) -> Capabilities:
    """Return the capabilities that a method's purge was begun with, of the journal's JSON. Raises WrongShape."""
    (kind,) = (family.Capabilities for family in FAMILIES if METHODS[method] in family.METHODS)
    found: Capabilities = base.parse(kind, capabilities)
    return found


def offers_for(found: Found, lba_size_bytes: int | None, options: PlannedPurge) -> list[OfferedPurge]:
    """Return the offers, strongest first, from what `probe` found. Pure, for the controller to tell what a test would
    run. lba_size_bytes: before it.
    """
    methods = sorted(
        (method for method in METHODS.values() if method.family in found), key=lambda method: -method.strength
    )
    return [_offer(method, found[method.family], lba_size_bytes, options) for method in methods]


def _offer(
    method: Method[t.Any], capabilities: Capabilities | NotQueried, lba_size_bytes: int | None, options: PlannedPurge
) -> OfferedPurge:
    commands: list[list[str]] = []
    if isinstance(capabilities, NotQueried):
        reason = capabilities.error
    else:
        reason = method.supported(capabilities) or _lba_size_problem(method, lba_size_bytes, options.lba_size_bytes)
    if not reason:
        try:
            commands = method.commands(capabilities, options)
        except PurgeError as error:
            reason = str(error)
    return OfferedPurge(
        method=method.name,
        supported=not reason,
        reason=reason,
        hits_others="" if reason else method.hits_others(capabilities),
        purge_class=method.purge_class,
        commands=commands,
        timeout_s=None if reason else method.timeout_s(capabilities, options),
        unknown=(None if reason else method.unknown(capabilities)) or None,
    )


def _lba_size_problem(method: Method[t.Any], now: int | None, wanted: int | None) -> str:
    if wanted in (None, now) or method.sets_lba_size:
        return ""
    return f"it cannot change the LBA size from {now} to {wanted} bytes"


def offers(host: Host, identity: Identity, options: PlannedPurge) -> list[OfferedPurge]:
    """Return every method that has to do with the drive, strongest first. Reads only."""
    return offers_for(probe(host, identity), identity.logical_block_size_bytes, options)


def choose(method: str, offered: t.Sequence[OfferedPurge]) -> OfferedPurge:
    """Return the offer to take, with `why`; `auto`: the strongest that hits nothing else. Raises PurgeError, with a
    code of the guard.
    """
    usable = [offer for offer in offered if offer.supported and not offer.hits_others]
    names = ", ".join(offer.method for offer in usable) or "none"
    if method == "auto":
        usable = [offer for offer in usable if not offer.unknown]
        if not usable:
            raise PurgeError("no purge method can be used: " + _left_out(offered), "purge_unsupported")
        stronger = offered[: offered.index(usable[0])]
        return replace(
            usable[0],
            why="auto: the strongest that the drive offers" + ("; " + _left_out(stronger) if stronger else ""),
        )
    offer = next((item for item in offered if item.method == method), None)
    if offer is None:
        known = "is not for this kind of drive" if method in METHODS else "is unknown"
        raise PurgeError(f"purge_method {method} {known}; the drive offers: {names}", "purge_unsupported")
    if not offer.supported:
        raise PurgeError(
            f"the drive does not support {method}: {offer.reason}; it offers: {names}",
            "purge_unsupported",
        )
    if offer.hits_others:
        raise PurgeError(
            f"{method} would erase more than this drive: {offer.hits_others}; it offers: {names}",
            "purge_hits_others",
        )
    return replace(offer, why="named" + (f"; {offer.unknown}" if offer.unknown else ""))


def _left_out(offered: t.Iterable[OfferedPurge]) -> str:
    """Return why not these; methods with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for offer in offered:
        reasons.setdefault(offer.reason or offer.hits_others or offer.unknown or "", []).append(offer.method)
    return "; ".join("not {0}: {1}".format(", ".join(methods), reason) for reason, methods in reasons.items())
