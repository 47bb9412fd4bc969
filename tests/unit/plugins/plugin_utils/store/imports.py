# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run folders put into a store, and what it has then."""

from __future__ import annotations

import json
import shutil

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer, schema


def put(url, run_dir, raw=False):
    with database.opened(url, make=True) as store:
        return importer.import_run(store, str(run_dir), raw)


def rows(url, name):
    """A table of the store without its keys' order: texts of all rows."""
    with database.opened(url) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.select(getattr(schema.tables(), name)))]


def everything(url):
    return {name: rows(url, name) for name in schema.Tables._fields if name != "metadata"}


def verdicts(url):
    return {row.label: row.verdict for row in read(url, "campaign")}


def read(url, name):
    with database.opened(url) as store, store.reading() as connection:
        return connection.execute(sa.select(getattr(schema.tables(), name))).all()


def slice_of(run_dir, target, hosts):
    """A folder of the same run with some of its hosts."""
    folder = target / run_dir.name
    folder.mkdir(parents=True)
    run = json.loads((run_dir / "run.json").read_text())
    run["asked"] = [entry for entry in run["asked"] if entry["host"] in hosts]
    (folder / "run.json").write_text(json.dumps(run))
    lines = [line for line in (run_dir / "results.jsonl").read_text().splitlines() if json.loads(line)["host"] in hosts]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    for host in hosts:
        if (run_dir / "raw" / host).exists():
            shutil.copytree(run_dir / "raw" / host, folder / "raw" / host)
    return folder


def change(run_dir, how, host, kind):
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [how(record) if (record["host"], record["kind"]) == (host, kind) else record for record in records]
    path.write_text("".join(json.dumps(record) + "\n" for record in changed))
