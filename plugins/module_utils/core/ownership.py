# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can anybody but root change what a folder or a file holds, or put another in its place?"""

from __future__ import annotations

import os
import stat
import typing as t


def problems(path: str) -> list[str]:
    """Return why a folder, or one that is still to be made, is not root's alone to write: texts that name the place;
    none where it is.

    Everything on the way counts, links too. In a sticky folder such as /tmp nobody can move what root made there, so it
    is no fault of an ancestor. This process's own user counts as root.
    """
    found = []
    for place in sorted(_on_the_way(os.path.abspath(path)), key=lambda place: (place.count("/"), place)):
        try:
            status = os.stat(place)
        except OSError:
            continue  # it is still to be made, and its parent says by whom
        if not stat.S_ISDIR(status.st_mode):
            found.append(f"{place} is not a folder")
        elif status.st_uid not in (0, os.geteuid()):
            found.append(f"{place} belongs to user {status.st_uid}")
        elif others_write(status) and (place == os.path.realpath(path) or not status.st_mode & stat.S_ISVTX):
            found.append(f"users other than root may write to {place} (mode {stat.S_IMODE(status.st_mode):04o})")
    return found


def alone_problems(path: str, folder: bool = False) -> list[str]:
    """Return why one plain file, or one folder itself, is not root's alone to write, whatever the group is; none where
    it is, or is not there.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path} cannot be examined: {error.strerror}"]
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(status.st_mode):
        return ["{} is not a {}".format(path, "folder" if folder else "plain file")]
    found = [] if status.st_uid in (0, os.geteuid()) else [f"{path} belongs to user {status.st_uid}"]
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found.append(f"users other than root may write to {path} (mode {stat.S_IMODE(status.st_mode):04o})")
    return found


def others_write(status: os.stat_result) -> bool:
    """Return whether its rights let anybody write who is neither its owner nor of root's group."""
    return bool(status.st_mode & stat.S_IWOTH) or (bool(status.st_mode & stat.S_IWGRP) and status.st_gid != 0)


def _on_the_way(path: str) -> set[str]:
    """Return each folder that leads to a path, with what links on the way lead to."""
    found: set[str] = set()
    for place in _prefixes(path):
        found.update(_prefixes(os.path.realpath(place)))
        if os.path.islink(place):
            target = os.path.join(os.path.dirname(place), os.readlink(place))
            found.update(os.path.realpath(each) for each in _prefixes(os.path.abspath(target)))
    return found


def _prefixes(path: str) -> t.Iterable[str]:
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[:count]) for count in range(len(parts) + 1)]
