# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments on the kernel's command line: recorded, added, verified in /proc/cmdline, and taken away again.

Debian and its kin: a drop-in below /etc/default/grub.d, then update-grub. RHEL and its kin: grubby, for all kernels.
Both take a reboot. The record is <state_dir>/boot.json.
"""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import replace

from ..core.files import SCHEMA_VERSION, make_folders, read_json, write_atomic
from ..core.host import BOOT_ID, Host
from ..core.locks import Locked, host_lock
from ..records import base
from ..records.tuning import BootRecord

COMMAND_LINE = "/proc/cmdline"
# Sorts behind what cloud images bring, and adds to it.
DROP_IN = "/etc/default/grub.d/zz-ssdlab-fleet.cfg"
TEXT = (
    "# Written by ssdlab.fleet, role tune; restore.yml removes "
    'it.\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {0}"\n'
)
# What a boot loader's configuration takes without quoting.
ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/@%+-]*")
TIMEOUT_S = 300.0


class Result(t.NamedTuple):
    """before, after: the command line that runs, and that of the next boot. loader: its name; None: there was nothing
    to remove.
    """

    changed: bool
    reboot_required: bool
    before: str
    after: str
    loader: str | None


class BootError(Exception):
    """The command line could not be changed, or is not as it was asked for; the message says what to do."""


def record_path(state_dir: str) -> str:
    """Return where the record is."""
    return os.path.join(state_dir, "boot.json")


def missing_arguments(command_line: str, arguments: t.Sequence[str]) -> list[str]:
    """Return those arguments that are not in force: the kernel takes the last of those with the same name, and all
    where several are asked for (console=).
    """
    words, names = command_line.split(), [_name(argument) for argument in arguments]
    last = {_name(word): word for word in words}
    found = [
        argument in words if names.count(name) > 1 else last.get(name) == argument
        for argument, name in zip(arguments, names)
    ]
    return [argument for argument, there in zip(arguments, found) if not there]


def _name(argument: str) -> str:
    """The kernel takes - and _ in a parameter's name for the same."""
    return argument.partition("=")[0].replace("-", "_")


def present(host: Host, state_dir: str, arguments: t.Sequence[str], check: bool = False) -> Result:
    """Have these arguments at the next boot. Raises BootError."""
    wrong = [argument for argument in arguments if not ARGUMENT.fullmatch(argument)]
    if wrong or not arguments:
        raise BootError(
            "{0!r} is not a kernel argument without spaces and quotes, such as idle=poll".format(
                wrong[0] if wrong else ""
            )
        )
    record, loader, now = _read(state_dir), _loader(host), host.read(COMMAND_LINE)
    changed = record is None or record.arguments != list(arguments) or record.removed or not loader.has(host, arguments)
    _refuse_at_work(not check and (changed or bool(missing_arguments(now, arguments))))
    if changed and not check:
        if record is not None:
            loader.remove(host, record)
        record = _new_record(host, loader, arguments, record)
        make_folders(state_dir)
        _write(state_dir, record)
        loader.add(host, record)
    return Result(changed, bool(missing_arguments(now, arguments)), now, _with(now, arguments), loader.name)


def _refuse_at_work(changes: bool) -> None:
    """Raise BootError before what leads to a reboot while a host job works, be it of another state folder or
    controller.
    """
    if changes:
        try:
            with host_lock({"boot": "kernel arguments", "pid": os.getpid()}):
                pass
        except Locked as error:
            raise BootError(
                f"a run is using this host, and this needs a reboot; wait for it or end it (stop.yml): {error}"
            ) from None


def _read(state_dir: str) -> BootRecord | None:
    record = read_json(record_path(state_dir))
    return None if record is None else base.parse(BootRecord, record)


def _write(state_dir: str, record: BootRecord) -> None:
    write_atomic(record_path(state_dir), json.dumps(base.to_json(record), indent=1) + "\n")


def _new_record(host: Host, loader: Loader, arguments: t.Sequence[str], old: BootRecord | None) -> BootRecord:
    first = old.command_line if old else host.read(COMMAND_LINE)
    return BootRecord(
        schema_version=SCHEMA_VERSION,
        boot_id=host.read(BOOT_ID),
        loader=loader.name,
        arguments=list(arguments),
        own=[argument for argument in arguments if argument not in loader.had(host, first)],
        replaced=loader.replaced(host, arguments),
        command_line=first,
        removed=False,
    )


def absent(host: Host, state_dir: str, check: bool = False) -> Result:
    """Take away what `present` added. Raises BootError."""
    record, now = _read(state_dir), host.read(COMMAND_LINE)
    if record is None:
        return Result(False, False, now, now, None)
    running, changed = set(record.own).intersection(now.split()), not record.removed
    _refuse_at_work(not check and (changed or bool(running)))
    if changed and not check:
        LOADERS[record.loader].remove(host, record)
        _write(state_dir, replace(record, removed=True))
    if not running and not check:
        os.unlink(record_path(state_dir))
    left = [word for word in now.split() if word not in record.own]
    return Result(
        changed,
        bool(running),
        now,
        " ".join(left + [word for word in record.replaced if word not in left]),
        record.loader,
    )


def verify(host: Host, arguments: t.Sequence[str], wanted: bool) -> None:
    """Raise BootError unless the running kernel has the arguments, or (wanted false) has none of them."""
    now = host.read(COMMAND_LINE)
    missing = missing_arguments(now, arguments)
    if wanted and missing:
        raise BootError(
            (
                "the running kernel was started without {0} (/proc/cmdline: {1}); does another boot loader start this "
                "host?"
            ).format(" ".join(missing), now)
        )
    if not wanted and len(missing) < len(arguments):
        left = [argument for argument in arguments if argument not in missing]
        raise BootError(
            "the running kernel was still started with {0} (/proc/cmdline: {1})".format(" ".join(left), now)
        )


def _with(command_line: str, arguments: t.Sequence[str]) -> str:
    return " ".join([command_line, *missing_arguments(command_line, arguments)])


def _run(host: Host, *argv: str) -> str:
    result = host.run(argv, timeout_s=TIMEOUT_S)
    if result.rc:
        raise BootError("{0}: {1}".format(" ".join(argv), result.stderr.strip() or f"exit code {result.rc}"))
    return result.stdout


class Loader(t.NamedTuple):
    """A way to change the command line. had: the words without ours, by the first command line; has: is it configured
    so; replaced: what it supersedes.
    """

    name: str
    had: t.Callable[[Host, str], list[str]]
    has: t.Callable[[Host, t.Sequence[str]], bool]
    replaced: t.Callable[[Host, t.Sequence[str]], list[str]]
    add: t.Callable[[Host, BootRecord], None]
    remove: t.Callable[[Host, BootRecord], None]


def _loader(host: Host) -> Loader:
    found = [LOADERS[name] for name in LOADERS if host.which(name)]
    if not found:
        advice = "set the arguments in this host's boot loader by hand, and tune_boot_enabled to false"
        raise BootError("neither {0} is here; {1}".format(" nor ".join(LOADERS), advice))
    return found[0]


def _grub_add(host: Host, record: BootRecord) -> None:
    path = host.path(DROP_IN)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_atomic(path, TEXT.format(" ".join(record.arguments)))
    try:
        _run(host, "update-grub")
    except BootError:
        os.unlink(path)
        raise


def _grub_remove(host: Host, _record: BootRecord) -> None:
    if host.exists(DROP_IN):
        os.unlink(host.path(DROP_IN))
    _run(host, "update-grub")


def _grubby_words(host: Host) -> list[str]:
    """Return the arguments of the default kernel; grubby prints them as args="…"."""
    match = re.search(r'^args="(.*)"$', _run(host, "grubby", "--info=DEFAULT"), re.MULTILINE)
    return match.group(1).split() if match else []


def _grubby_replaced(host: Host, arguments: t.Sequence[str]) -> list[str]:
    names = {_name(argument) for argument in arguments}
    return [word for word in _grubby_words(host) if _name(word) in names and word not in arguments]


def _grubby(host: Host, add: t.Sequence[str], remove: t.Sequence[str]) -> None:
    options = [option + " ".join(words) for option, words in (("--remove-args=", remove), ("--args=", add)) if words]
    if options:
        _run(host, "grubby", "--update-kernel=ALL", *options)


LOADERS = {
    "grubby": Loader(
        "grubby",
        lambda host, _first: _grubby_words(host),
        lambda host, arguments: not set(arguments) - set(_grubby_words(host)),
        _grubby_replaced,
        lambda host, record: _grubby(host, record.arguments, record.replaced),
        lambda host, record: _grubby(host, record.replaced, record.own),
    ),
    "update-grub": Loader(
        "update-grub",
        lambda _host, first: first.split(),
        lambda host, arguments: (host.get(DROP_IN) or "") == TEXT.format(" ".join(arguments)).strip(),
        lambda host, arguments: [],
        _grub_add,
        _grub_remove,
    ),
}
