# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge: which methods a drive offers, and which one is taken. purge_step.py does it.

A family of methods is a file with `capabilities(host, identity) -> dict`, which only reads and is {} where the family
has nothing to do with the drive, and `METHODS`; a new one is a line in FAMILIES. It may have `left_behind(history) ->
bool` and
`recover(host, identity, note)`, which puts right what a job of this run left behind before the guard looks at the
drive; erases nothing.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from . import ata, generic, iomemory_format, micron, nvme, scsi
from .method import Capabilities, Method, Options, PurgeError

# One line each: a new family is added here.
FAMILIES: tuple[t.Any, ...] = (
    nvme,
    ata,
    scsi,
    generic,
    iomemory_format,
    micron,
)
METHODS: dict[str, Method] = {method.name: method for family in FAMILIES for method in family.METHODS}
Offer = t.Dict[str, t.Any]
Found = t.Dict[str, t.Dict[str, t.Any]]


def probe(host: Host, identity: t.Mapping[str, t.Any]) -> Found:
    """Return what each family that has to do with the drive found out: `{family: capabilities}`, or `{family: {"error":
    why not}}`.
    """
    found: Found = {}
    for family in FAMILIES:
        name = family.METHODS[0].family
        try:
            capabilities = family.capabilities(host, identity)
        except PurgeError as error:
            capabilities = {"error": str(error)}
        except Exception as error:  # whatever a drive says: what is not understood is not supported
            capabilities = {"error": f"{type(error).__name__}: {error}"}
        if capabilities:
            found[name] = capabilities
    return found


def offers_for(found: Found, identity: t.Mapping[str, t.Any], options: Options) -> list[Offer]:
    """Return the offers, strongest first, from what `probe` found. Pure, for the controller to tell what a test would
    run.
    """
    methods = sorted(
        (method for method in METHODS.values() if method.family in found), key=lambda method: -method.strength
    )
    return [_offer(method, found[method.family], identity, options) for method in methods]


def _offer(method: Method, capabilities: Capabilities, identity: t.Mapping[str, t.Any], options: Options) -> Offer:
    commands: list[list[str]] = []
    reason = str(
        capabilities.get("error") or method.supported(capabilities) or _lba_size_problem(method, identity, options)
    )
    if not reason:
        try:
            commands = method.commands(capabilities, options)
        except PurgeError as error:
            reason = str(error)
    return {
        "method": method.name,
        "supported": not reason,
        "reason": reason,
        "hits_others": "" if reason else method.hits_others(capabilities),
        "purge_class": method.purge_class,
        "commands": commands,
        "timeout_s": None if reason else method.timeout_s(capabilities, options),
    }


def _lba_size_problem(method: Method, identity: t.Mapping[str, t.Any], options: Options) -> str:
    wanted, now = options.get("lba_size_bytes"), identity.get("logical_block_size_bytes")
    if wanted in (None, now) or method.sets_lba_size:
        return ""
    return f"it cannot change the LBA size from {now} to {wanted} bytes"


def offers(host: Host, identity: t.Mapping[str, t.Any], options: Options) -> list[Offer]:
    """Return every method that has to do with the drive, strongest first: {method, supported, reason (why not),
    hits_others (what else it would erase, or ""), purge_class, commands, timeout_s}. Reads only.
    """
    return offers_for(probe(host, identity), identity, options)


def choose(method: str, offered: t.Sequence[Offer]) -> Offer:
    """Return the offer to take, with `why`; `auto`: the strongest that hits nothing else. Raises PurgeError, with a
    code of the guard.
    """
    usable = [offer for offer in offered if offer["supported"] and not offer["hits_others"]]
    names = ", ".join(offer["method"] for offer in usable) or "none"
    if method == "auto":
        if not usable:
            raise PurgeError("no purge method can be used: " + _left_out(offered), "purge_unsupported")
        stronger = offered[: offered.index(usable[0])]
        return dict(
            usable[0],
            why="auto: the strongest that the drive offers" + ("; " + _left_out(stronger) if stronger else ""),
        )
    offer = next((item for item in offered if item["method"] == method), None)
    if offer is None:
        known = "is not for this kind of drive" if method in METHODS else "is unknown"
        raise PurgeError(f"purge_method {method} {known}; the drive offers: {names}", "purge_unsupported")
    if not offer["supported"]:
        raise PurgeError(
            "the drive does not support {0}: {1}; it offers: {2}".format(method, offer["reason"], names),
            "purge_unsupported",
        )
    if offer["hits_others"]:
        raise PurgeError(
            "{0} would erase more than this drive: {1}; it offers: {2}".format(method, offer["hits_others"], names),
            "purge_hits_others",
        )
    return dict(offer, why="named")


def _left_out(offered: t.Iterable[Offer]) -> str:
    """Return why not these; methods with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for offer in offered:
        reasons.setdefault(offer["reason"] or offer["hits_others"], []).append(offer["method"])
    return "; ".join("not {0}: {1}".format(", ".join(methods), reason) for reason, methods in reasons.items())


def left_behind(history: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
    """Return whether a drive's records of this run say that a job left something on it that has to be put right."""
    return any(family.left_behind(history) for family in FAMILIES if hasattr(family, "left_behind"))


def recover(
    host: Host, identity: t.Mapping[str, t.Any], history: t.Sequence[t.Mapping[str, t.Any]], note: t.Callable[..., None]
) -> None:
    """Let each family put that right. Erases nothing. Raises PurgeError when it can't be."""
    for family in FAMILIES:
        if hasattr(family, "left_behind") and family.left_behind(history):
            family.recover(host, identity, note)
