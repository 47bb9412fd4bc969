# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's raw files in the store, for where files do not survive (an execution environment): compressed, and given
back as they were.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import typing as t

from ..report.host_journal import folder_of
from ..run_folder import unpack
from .database import Store, upsert
from .schema import tables
from .store_requirements import StoreError, sa

# One value of a row; PostgreSQL takes 1 GiB, and all of it is held in memory.
MOST_BYTES = 256 << 20


class Written(t.NamedTuple):
    """left_out: the files that are too large, by their paths."""

    changed: bool
    left_out: list[str]


def write(connection: t.Any, part_key: int, run_dir: str, host: str) -> Written:
    """Bring raw/<host> of a run's folder into the store, within the transaction of the host's part."""
    folder = folder_of(run_dir, host)
    if folder is None or not os.path.isdir(folder):
        return Written(False, [])
    table = tables().raw_file
    there = dict(connection.execute(sa.select(table.c.path, table.c.sha256).where(table.c.part_id == part_key)).all())
    changed, left_out = False, []
    for line in unpack.manifest_lines(folder):
        sha256, path = line.split("  ", 1)
        if there.get(path) == sha256:
            continue
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            left_out.append(path)
            continue
        stored = content if path.endswith(".gz") else gzip.compress(content, 6, mtime=0)
        row = {"part_id": part_key, "path": path, "size_bytes": len(content), "sha256": sha256, "content": stored}
        upsert(connection, table, [row], ["part_id", "path"])
        changed = True
    return Written(changed, left_out)


def extract(store: Store, run_id: str, target: str) -> list[str]:
    """Write a run's raw files to <target>/<host>/…, each checked; returns their paths. Raises StoreError, OSError."""
    part, table, host, run = tables().part, tables().raw_file, tables().host, tables().run
    joined = (
        table.join(part, table.c.part_id == part.c.id)
        .join(host, part.c.host_id == host.c.id)
        .join(run, part.c.run_id == run.c.id)
    )
    query = (
        sa.select(host.c.name, table.c.path, table.c.sha256, table.c.content)
        .select_from(joined)
        .where(run.c.run_id == run_id)
    )
    done = []
    with store.reading() as connection:
        for name, path, sha256, stored in connection.execution_options(yield_per=1).execute(
            query.order_by(host.c.name, table.c.path)
        ):
            folder = folder_of("", name)
            if folder is None or os.path.isabs(path) or ".." in path.split("/"):
                raise StoreError(f"the store has a raw file {path!r} of host {name!r}, which would be outside {target}")
            content = stored if path.endswith(".gz") else gzip.decompress(stored)
            if hashlib.sha256(content).hexdigest() != sha256:
                raise StoreError(f"the raw file {path} of {name} is damaged in the store: its SHA-256 is not {sha256}")
            place = os.path.join(target, name, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(content)
            done.append(place)
    return done
