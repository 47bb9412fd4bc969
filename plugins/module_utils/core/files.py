# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a reader may find half written, or that survive a power loss: names, times, atomic and appended text."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import re
import tempfile
import time
import typing as t

SCHEMA_VERSION: t.Final = 1
# Where a host keeps runs and records, unless ssd_state_dir says otherwise.
STATE_DIR = "/var/lib/ssdlab-fleet"
# What a killed process left is swept once nobody wrote to it for so long; and after a day whoever its number belongs to
# by now.
IDLE_S, LONGEST_IDLE_S = 600.0, 86400.0
# Of 255 letters that a file system takes; what stands around it needs some too.
LONGEST_SLUG = 200


def slug(text: str) -> str:
    """Return the text as one safe file name: everything but A-Za-z0-9._- becomes _."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    return safe if safe.strip(".") else "_" * max(1, len(safe))


def own_slug(text: str, others: t.Iterable[str] = ()) -> str:
    """Return the slug, with a digest where it would be too long for a file system, or that of one of the `others` too,
    also for one that ignores case.
    """
    name = slug(text)
    if len(name) <= LONGEST_SLUG and name.lower() not in {slug(other).lower() for other in others if other != text}:
        return name
    return "{0}-{1}".format(name[:LONGEST_SLUG], hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12])


def now() -> str:
    """Return the time in UTC with milliseconds, as every record carries it: 2026-11-21T13:00:00.123Z."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def make_folders(path: str, mode: int = 0o755) -> None:
    """Make a folder and all that is missing above it, each with exactly these rights, whatever the umask is. Raises
    OSError.

    os.makedirs gives its mode to the last one alone, and the umask's to those above.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        make_folders(parent, mode)
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        os.chmod(path, mode)


def write_atomic(path: str, text: str) -> None:
    """Replace a file so that a reader, or a power loss, sees the old or the new text and never a part. Raises OSError,
    which names the file.
    """
    try:
        _write_atomic(path, text)
    except OSError as error:
        raise name_file(error, path) from None


def name_file(error: OSError, path: str) -> OSError:
    """Return the same error with the path, which a write to a descriptor does not know: a full disk is to be found by
    its message.
    """
    return OSError(error.errno, error.strerror, path)


def _write_atomic(path: str, text: str) -> None:
    folder = os.path.dirname(path)
    handle, aside = tempfile.mkstemp(dir=folder, prefix="." + os.path.basename(path))
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
            out.flush()
            os.fchmod(out.fileno(), 0o644)
            os.fsync(out.fileno())
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
    sync_folder(folder)


def remove_asides(folder: str, names: t.Iterable[str]) -> None:
    """Remove what killed writers of these files left beside them. Only for who keeps all other writers out."""
    prefixes = tuple("." + name for name in names)
    for name in os.listdir(folder):
        if name.startswith(prefixes):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


def aside_prefix(name: str) -> str:
    """Return how the name of something temporary begins that stands beside `name` while this process works on it:
    .name.<pid>. (for mkstemp, mkdtemp).
    """
    return f".{name}.{os.getpid()}."


def left_behind(folder: str, name: str) -> list[str]:
    """Return paths in a folder that killed processes left beside `name`, under `aside_prefix`.

    Nobody wrote there for some minutes and the process is gone, or for a day: a number may be another process by now,
    and one of another container is not seen.
    """
    pattern = re.compile(rf"\.{re.escape(name)}\.(?P<pid>[0-9]+)\.[A-Za-z0-9_]+")
    found = []
    for each in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        match, path = pattern.fullmatch(each), os.path.join(folder, each)
        idle_s = time.time() - _last_written(path) if match else 0.0
        gone = match is not None and not _is_process(int(match.group("pid")))
        if idle_s > LONGEST_IDLE_S or (gone and idle_s > IDLE_S):
            found.append(path)
    return found


def _last_written(path: str) -> float:
    """When a file, or a folder or anything right in it, was last written; now where it is gone."""
    try:
        below = (
            [os.path.join(path, name) for name in os.listdir(path)]
            if os.path.isdir(path) and not os.path.islink(path)
            else []
        )
        return max(os.lstat(each).st_mtime for each in [path, *below])
    except OSError:
        return time.time()


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


def sync_folder(folder: str) -> None:
    """Make a rename in this folder survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Damaged(ValueError):
    """A file of ours does not hold what we write; the message names it."""

    def __init__(self, path: str, why: t.Any) -> None:
        super().__init__(f"{path} is damaged ({why}); repair it or move it away")


def read_json(path: str) -> dict[str, t.Any] | None:
    """Return a JSON file with a mapping, or None when it is not there. Raises Damaged for anything else."""
    try:
        with open(path) as source:
            data = json.load(source)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise Damaged(path, error) from None
    if not isinstance(data, dict):
        raise Damaged(path, "no mapping")
    return data


def sha256(path: str) -> str:
    """Return the digest of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as source:
        for block in iter(lambda: source.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def append_line(path: str, text: str) -> None:
    """Add a line to a file in one write(2), so that lines of several processes never mix. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, (text + "\n").encode("utf-8"))
    finally:
        os.close(handle)
