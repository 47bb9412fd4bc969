# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a store, as of migrations.NEWEST; docs/store.md explains them.

A measurement's figures are one vector of doubles beside a layout, which says what each of them is and which most
measurements share: 18 million values as rows of their own would take SQLite about 90 s to read, as vectors 3 s
(docs/store.md).
"""

from __future__ import annotations

import functools
import typing as t

from .packages import sa


class Tables(t.NamedTuple):
    """The tables by their names, without the prefix ssd_."""

    metadata: t.Any
    store: t.Any
    run: t.Any
    host: t.Any
    drive: t.Any
    test: t.Any
    layout: t.Any
    part: t.Any
    campaign: t.Any
    measurement: t.Any
    judgement: t.Any
    record: t.Any
    raw_file: t.Any
    quarantine: t.Any


@functools.lru_cache(maxsize=None)
def tables() -> Tables:
    """The tables; a column that is added here is added by a migration too."""
    metadata = sa.MetaData()

    def table(name: str, *columns: t.Any) -> t.Any:
        return sa.Table("ssd_" + name, metadata, sa.Column("id", sa.Integer, primary_key=True), *columns)

    def text(name: str, null: bool = False, unique: bool = False) -> t.Any:
        return sa.Column(name, sa.Text, nullable=null, unique=unique)

    def link(name: str, null: bool = False) -> t.Any:
        return sa.Column(name + "_id", sa.Integer, sa.ForeignKey(f"ssd_{name}.id"), nullable=null)

    def packed(name: str, null: bool = False) -> t.Any:
        return sa.Column(name, sa.LargeBinary, nullable=null)

    return Tables(
        metadata=metadata,
        store=table("store", sa.Column("version", sa.Integer, nullable=False)),
        run=table("run", text("run_id", unique=True), text("name"), text("started", null=True), packed("content")),
        host=table("host", text("name", unique=True)),
        drive=table(
            "drive",
            text("identity", unique=True),
            text("serial", null=True),
            text("wwn", null=True),
            text("model", null=True),
        ),
        test=table("test", text("name", unique=True)),
        layout=table("layout", text("digest", unique=True), packed("content")),
        # A host's part of a run: what is written in one transaction.
        part=table(
            "part",
            link("run"),
            link("host"),
            text("state", null=True),
            text("message", null=True),
            text("source"),
            text("digest"),
            sa.UniqueConstraint("run_id", "host_id", name="ssd_part_key"),
        ),
        campaign=table(
            "campaign",
            link("part"),
            text("label"),
            link("drive", null=True),
            text("firmware", null=True),
            sa.Column("capacity_bytes", sa.BigInteger),
            text("link", null=True),
            # What else has to be alike before figures are compared; null: unknown, or written by an older version.
            sa.Column("lba_bytes", sa.Integer),
            text("engine", null=True),
            sa.Column("preferred_write_bytes", sa.BigInteger),
            text("outcome", null=True),
            text("verdict"),
            sa.UniqueConstraint("part_id", "label", name="ssd_campaign_key"),
        ),
        measurement=table(
            "measurement",
            link("campaign"),
            link("test"),
            sa.Column("attempt", sa.Integer),
            text("outcome", null=True),
            text("verdict"),
            # Whether its figures count for others (judge.valid_tests); null: written by an older version.
            sa.Column("counts", sa.Integer),
            text("started", null=True),
            text("finished", null=True),
            sa.Column("rounds", sa.Integer),
            link("layout", null=True),
            packed("figures", null=True),
            sa.UniqueConstraint("campaign_id", "test_id", name="ssd_measurement_key"),
        ),
        judgement=table(
            "judgement",
            link("campaign"),
            packed("content"),
            sa.UniqueConstraint("campaign_id", name="ssd_judgement_key"),
        ),
        record=table(
            "record",
            link("part"),
            text("kind"),
            text("label"),
            text("test"),
            text("time"),
            packed("content"),
            sa.UniqueConstraint("part_id", "kind", "label", "test", name="ssd_record_key"),
        ),
        raw_file=table(
            "raw_file",
            link("part"),
            text("path"),
            sa.Column("size_bytes", sa.BigInteger, nullable=False),
            text("sha256"),
            packed("content"),
            sa.UniqueConstraint("part_id", "path", name="ssd_raw_file_key"),
        ),
        # Not made from folders: what somebody decided. identity, serial: "" where the drive has none.
        quarantine=table(
            "quarantine",
            text("run_name"),
            text("identity"),
            text("serial"),
            text("host"),
            text("drive"),
            sa.Column("nights", sa.Integer, nullable=False),
            text("last_run"),
            text("reason"),
            text("marked"),
            text("released", null=True),
        ),
    )
