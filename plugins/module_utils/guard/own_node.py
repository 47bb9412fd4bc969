# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device node of our own, for tools that take only a path: made by device number, in a folder that only root enters.

Whatever is laid over the drive's own name, it leads to the drive. `/proc/PID/fd/N` won't do: mount resolves it to the
name. It lies below /dev, as /run and state folders may be mounted nodev, where no node can be opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t

from ..core import ownership
from ..core.host import Host
from . import probe
from .facts import Names

FOLDER = "/dev/ssdlab-fleet"


@contextlib.contextmanager
def made(host: Host, handle: int, refused: t.Callable[[str], Exception]) -> t.Iterator[str]:
    """The path of a node, while inside, that leads to the block device behind an open descriptor, which keeps its
    number as long as it is open. Raises what `refused` makes of the reason why there is none.
    """
    number = os.fstat(handle).st_rdev
    path = f"{FOLDER}/{os.major(number)}-{os.minor(number)}"
    real = host.path(path)
    try:
        _make_private(os.path.dirname(real), refused)
        with contextlib.suppress(FileNotFoundError):  # a job that was killed left it
            os.unlink(real)
        os.mknod(real, stat.S_IFBLK | 0o600, number)
        os.close(host.open(path, os.O_RDONLY))
    except OSError as error:
        raise refused(f"no node of ours in {FOLDER} can be made and opened ({error.strerror}); is it nodev?") from None
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(real)


def differences(host: Host, path: str, identity: Names) -> list[str]:
    """Return how what a node leads to differs from a drive, by number, size and diskseq; or why it can't be opened."""
    try:
        handle = host.open(path, os.O_RDONLY)
    except OSError as error:
        return [f"{path} cannot be opened ({error.strerror})"]
    try:
        return probe.differences(host, handle, identity)
    finally:
        os.close(handle)


def _make_private(folder: str, refused: t.Callable[[str], Exception]) -> None:
    """Raises OSError, and what `refused` makes of others who could put a node there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    wrong = ownership.alone_problems(folder, folder=True)
    if wrong:
        raise refused("; ".join(wrong))
    os.chmod(folder, 0o700)
