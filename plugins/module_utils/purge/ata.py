# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge SATA drives through hdparm: SANITIZE (crypto scramble and block erase), and the older security erase. What
hdparm can't do, or say, is a PurgeError.

hdparm opens the node without O_EXCL and reads only (hdparm.c, process_dev), so it works under our hold; nothing is
lent.

Security erase needs a password on the drive: PASSWORD, always the same. The journal has it before the drive gets it. It
is taken off again whatever happens, and by `recover` after a crash.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, replace

from ..core.host import Host, Result
from ..core.progress import RUNNING, Progress, Unreadable
from ..drive.attributes import command_set
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import AtaDrive as Capabilities
from ..tools import hdparm
from .begun import PASSWORD_CLEARED, PASSWORD_SET
from .method import PTS, Command, Done, Method, PurgeError, Work, timeout_s, wait_for

FAMILY = "ata"
ASK_S = 120.0
UNFREEZE = "suspend and resume the host, or pull the drive and plug it in again while the host runs"

_SURE = "--yes-i-know-what-i-am-doing"
# method -> (operation as hdparm.Identify names it, hdparm's option)
_SANITIZE = {
    "ata_sanitize_crypto": ("crypto_scramble", "--sanitize-crypto-scramble"),
    "ata_sanitize_block": ("block_erase", "--sanitize-block-erase"),
}

PASSWORD = "ssdlab-fleet"
# A drive may be silent for a moment after an erase, or after one that failed.
_ASK_AGAIN_S = (5.0, 15.0, 30.0)
# method -> hdparm's option
_ERASE = {"ata_security_erase_enhanced": "--security-erase-enhanced", "ata_security_erase": "--security-erase"}

# A port of libata has a folder of its own in sysfs; behind a SAS adapter with its own translation there is none.
_AHCI = re.compile(r"/ata[0-9]+/")


def identify(host: Host, identity: Identity) -> hdparm.Identify:
    """Return what the drive says of itself, if it still is the one of this identity. Raises PurgeError."""
    try:
        return hdparm.read(host, str(identity.path), identity.serial)
    except ValueError as error:
        raise PurgeError(str(error)) from None


def sanitize_status(host: Host, path: str) -> Progress:
    """Return how far a sanitize is that goes on in the drive. Raises PurgeError."""
    try:
        return hdparm.sanitize_status(host.run(["hdparm", "--sanitize-status", path], timeout_s=ASK_S))
    except ValueError as error:
        raise PurgeError(str(error)) from None


def must(result: Result, what: str) -> None:
    """Raise PurgeError, which begins with `what`, for a command that failed."""
    if result.rc != 0 or hdparm.lost_registers(result):
        said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()
        raise PurgeError(
            "{0}: {1} ended with {2} and said: {3:.160}".format(what, " ".join(result.argv), result.rc, said[-1])
        )


def _can_sanitize(method: str) -> t.Callable[[Capabilities], str]:
    operation = _SANITIZE[method][0]

    def supported(found: Capabilities) -> str:
        if operation not in found.sanitize:
            return "IDENTIFY word 59 lists no {0} (it lists: {1})".format(
                operation, ", ".join(found.sanitize) or "no sanitize at all"
            )
        if found.sanitize_problem:
            return found.sanitize_problem
        if found.sanitize_state == hdparm.FROZEN:
            return "sanitize is frozen until the next power cycle; " + UNFREEZE
        return "the drive is locked by a password, and refuses a sanitize" if found.security.locked else ""

    return supported


def _sanitize_commands(method: str) -> t.Callable[[Capabilities, PlannedPurge], list[Command]]:
    return lambda found, _options: [["hdparm", _SURE, _SANITIZE[method][1], found.path]]


def sanitize_progress(work: Work, _found: Capabilities) -> Progress:
    """Return how far a sanitize is that goes on in the drive; ACS-3: it goes on by itself after a power loss. Raises
    Unreadable.
    """
    try:
        return sanitize_status(work.host, work.path)
    except PurgeError as error:
        raise Unreadable(str(error)) from None


def _run_sanitize(method: str) -> t.Callable[[Work, Capabilities], Done]:
    def run(work: Work, found: Capabilities) -> Done:
        (argv,) = _sanitize_commands(method)(found, work.options)
        before = sanitize_status(work.host, work.path)
        if before.state == RUNNING:  # not ours: let it end, a drive takes no second one meanwhile
            work.watch(lambda: sanitize_progress(work, found), timeout_s(work.size_bytes, work.options))
        must(work.command(argv, ASK_S), "the drive did not start the sanitize")
        work.watch(lambda: sanitize_progress(work, found), timeout_s(work.size_bytes, work.options))
        identify(work.host, work.identity)
        return Done(waited_for_another=before.state == RUNNING)

    return run


SANITIZE_METHODS = tuple(
    Method(
        name,
        FAMILY,
        PTS,
        strength,
        _can_sanitize(name),
        _sanitize_commands(name),
        _run_sanitize(name),
        progress=sanitize_progress,
        what=f"SANITIZE DEVICE, {_SANITIZE[name][0].replace('_', ' ')}",
    )
    for name, strength in (("ata_sanitize_crypto", 90), ("ata_sanitize_block", 80))
)


def _can_erase(method: str) -> t.Callable[[Capabilities], str]:
    def supported(found: Capabilities) -> str:
        state = found.security
        obstacles = (
            (not state.supported, "the drive has no security feature set"),
            (
                method == "ata_security_erase_enhanced" and not state.enhanced,
                "the drive has no enhanced security erase",
            ),
            (
                not found.direct,
                (
                    "the drive is not on an AHCI port: an adapter may cut the long command short and leave the drive "
                    "locked"
                ),
            ),
            (state.expired, "the security attempts are used up; power-cycle the drive"),
            (
                state.enabled,
                "a password is set that this collection did not set; remove it first (hdparm --security-disable)",
            ),
            (state.frozen, "security is frozen; " + UNFREEZE),
        )
        return next((text for hinders, text in obstacles if hinders), "")

    return supported


def _password(option: str, path: str) -> Command:
    return ["hdparm", "--user-master", "u", option, PASSWORD, path]


def _erase_commands(method: str) -> t.Callable[[Capabilities, PlannedPurge], list[Command]]:
    return lambda found, _options: [
        _password("--security-set-pass", found.path),
        _password(_ERASE[method], found.path),
    ]


def _estimate_s(method: str, found: Capabilities) -> float:
    """Return the drive's own estimate; without one hdparm's, 30 MiB/s."""
    state = found.security
    minutes = state.enhanced_erase_min if method == "ata_security_erase_enhanced" else state.erase_min
    return minutes * 60.0 if minutes else (found.size_bytes or 0) / (30 << 20)


def _erase_timeout_s(method: str) -> t.Callable[[Capabilities, PlannedPurge], float]:
    """Longer than hdparm's own (an hour more than the drive's estimate, half an hour more than its guess by capacity):
    hdparm is to give up first, as it then knows why.
    """

    def seconds(found: Capabilities, options: PlannedPurge) -> float:
        guess_s = (found.size_bytes or 0) / (30 << 20)
        return float(options.timeout_s or round(max(_estimate_s(method, found) + 3600, guess_s + 1800) + 300))

    return seconds


def recover(work: Work) -> None:
    """Take our password off, and prove it. Harmless when none is set. Raises PurgeError, telling how to
    do it by hand.
    """
    argv, problem = _password("--security-disable", work.path), ""
    try:
        state = _identify_in_time(work).security
        if state.enabled:
            result = work.host.run(argv, timeout_s=ASK_S)  # hdparm unlocks before it disables
            problem = (result.stderr.strip() or f"exit code {result.rc}").splitlines()[-1]
            state = _identify_in_time(work).security
        if not state.enabled:
            work.note(PASSWORD_CLEARED, security=asdict(state))
            return
        problem += "; security is frozen: " + UNFREEZE if state.frozen else ""
        problem += "; the attempts are used up: power-cycle the drive" if state.expired else ""
    except PurgeError as error:
        problem = str(error)
    text = (
        "{0} may still have the password {1!r} ({2}); remove it with: {3}. A run that was stopped or died removes it "
        "when it is started again"
    )
    raise PurgeError(text.format(work.path, PASSWORD, problem, " ".join(argv)))


def _identify_in_time(work: Work) -> hdparm.Identify:
    for pause_s in _ASK_AGAIN_S:
        try:
            return identify(work.host, work.identity)
        except PurgeError:
            work.sleep(pause_s)
    return identify(work.host, work.identity)


def _erase(method: str) -> t.Callable[[Work, Capabilities], Done]:
    def run(work: Work, found: Capabilities) -> Done:
        obstacle = _can_erase(method)(replace(found, security=identify(work.host, work.identity).security))
        if obstacle:
            raise PurgeError(obstacle)
        work.tick(None)
        work.note(PASSWORD_SET, password=PASSWORD, method=method, path=work.path)
        try:
            _set_and_erase(work, found, method)
        except BaseException as error:
            try:
                recover(work)
            except PurgeError as left:
                raise PurgeError(f"{error}; {left}") from error
            raise
        recover(work)
        return Done()

    return run


def _set_and_erase(work: Work, found: Capabilities, method: str) -> None:
    set_password, erase = _erase_commands(method)(found, work.options)
    work.prove(set_password)
    must(work.host.run(set_password, timeout_s=ASK_S), "the drive did not accept the password")
    if not identify(work.host, work.identity).security.enabled:
        raise PurgeError("the drive accepted the password, but reports that none is set: nothing was erased")
    must(_erase_uninterrupted(work, found, erase, method), "the security erase failed")
    if _identify_in_time(work).security.enabled:  # ACS-3: a drive that was erased has no password
        raise PurgeError(
            "the drive reported no error, but its password is still on: the security erase did not take place"
        )


def _erase_uninterrupted(work: Work, found: Capabilities, argv: Command, method: str) -> Result:
    """Run the erase to its end, also when the job is stopped or can't tell how far it is: nothing stops it in the
    drive, and only after it can the password go.
    """
    began, estimate_s = work.clock(), _estimate_s(method, found)
    stops: list[Exception] = []

    def tick() -> None:
        if stops:
            return
        try:
            work.tick(min(0.99, (work.clock() - began) / estimate_s) if estimate_s else None)
        except Exception as stop:  # kept, and raised when the erase is over
            stops.append(stop)

    limit_s = _erase_timeout_s(method)(found, work.options)
    work.prove(argv)
    result = wait_for(lambda: work.host.run(argv, timeout_s=limit_s), tick)
    if stops:
        raise stops[0]
    return result


SECURITY_METHODS = tuple(
    Method(
        name,
        FAMILY,
        PTS,
        strength,
        _can_erase(name),
        _erase_commands(name),
        _erase(name),
        timeout_s=_erase_timeout_s(name),
        slow=name == "ata_security_erase",
        what="SECURITY ERASE UNIT, enhanced" if name.endswith("enhanced") else "SECURITY ERASE UNIT",
    )
    for name, strength in (("ata_security_erase_enhanced", 70), ("ata_security_erase", 60))
)


def capabilities(host: Host, identity: Identity) -> Capabilities | None:
    """Return what a SATA drive offers; None for another. Raises PurgeError when it can't be asked."""
    if command_set(host, str(identity.kernel_name), identity.transport) != "ata":
        return None
    path = str(identity.path)
    found = identify(host, identity)
    status, problem = None, ""
    if found.sanitize:
        try:
            status = sanitize_status(host, path)
        except PurgeError as error:
            problem = str(error)
    return Capabilities(
        path=path,
        size_bytes=identity.size_bytes,
        sanitize=list(found.sanitize),
        sanitize_state=status.state if status else None,
        sanitize_problem=problem,
        security=found.security,
        direct=bool(_AHCI.search(host.realpath(f"/sys/block/{identity.kernel_name}"))),
        deallocated_read=found.deallocated_read,
        has_self_tests=found.has_self_tests,
    )


METHODS = SANITIZE_METHODS + SECURITY_METHODS
