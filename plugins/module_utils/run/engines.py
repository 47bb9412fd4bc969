# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's file in the state folder of a host. It is run as root, so a file counts only for its content, and never
for its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import typing as t

from ..core import ownership
from ..core.files import name_file, sha256, sync_folder

NAME = re.compile(r"engine-[A-Za-z0-9._+-]{1,150}\.pyz")
# Who is not told of a file sends it again.
MOST_NAMES = 100
# Of other versions: enough for controllers of several versions to take turns without sending theirs each night.
KEPT_OTHERS = 4


class Engine(t.NamedTuple):
    """The engine that a start is to run: the name and digest of its file, and its content where the controller sent
    it.
    """

    name: str
    sha256: str
    data: bytes | None = None


def names(state_dir: str) -> list[str]:
    """Return the engines that seem to lie there."""
    try:
        return sorted(name for name in os.listdir(state_dir) if NAME.fullmatch(name))[-MOST_NAMES:]
    except OSError:
        return []


def lies(engine: Engine, state_dir: str) -> bool:
    """Return whether exactly this engine lies there, in a plain file that root alone can write."""
    path = _path(engine, state_dir)
    try:
        return not ownership.alone_problems(path) and sha256(path) == engine.sha256
    except OSError:
        return False


def install(engine: Engine, state_dir: str) -> str:
    """Make sure that it lies there; its path. The oldest of other versions go. Call it when no job lives on the host.

    Raises ValueError for content that is not the engine's, OSError.
    """
    path = _path(engine, state_dir)
    if lies(engine, state_dir):
        return path
    if engine.data is None or hashlib.sha256(engine.data).hexdigest() != engine.sha256:
        raise ValueError(f"the engine that arrived is not {engine.name}; run the play again")
    aside = path + ".new"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as out:
            out.write(engine.data)
            out.flush()
            os.fchmod(out.fileno(), 0o644)
            os.fsync(out.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise name_file(error, path) from None
    _remove_old(os.path.basename(path), state_dir)
    sync_folder(state_dir)
    return path


def _remove_old(installed: str, state_dir: str) -> None:
    """Remove all engines but this one and the KEPT_OTHERS that were written last; one that can't go is left."""
    ages = {}
    for name in os.listdir(state_dir):
        if NAME.fullmatch(name) and name != installed:
            with contextlib.suppress(OSError):
                ages[name] = os.lstat(os.path.join(state_dir, name)).st_mtime_ns
    for name in sorted(ages, key=ages.__getitem__)[: max(0, len(ages) - KEPT_OTHERS)]:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(state_dir, name))


def _path(engine: Engine, state_dir: str) -> str:
    return os.path.join(state_dir, os.path.basename(engine.name))
