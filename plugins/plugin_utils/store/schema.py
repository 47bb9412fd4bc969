# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a store; docs/store.md explains them.

A measurement's figures are one vector of doubles beside a layout, which says what each of them is and which most
measurements share: 18 million values as rows of their own would take SQLite about 90 s to read, as vectors 3 s
(docs/store.md).
"""

from __future__ import annotations

import functools
import typing as t

from .store_requirements import sa

# A store of another version is refused: it is made again from the folders of runs.
VERSION = 1


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


@functools.cache
def tables() -> Tables:
    """Return the tables. What changes them changes VERSION."""
    make = _Maker()
    return Tables(
        metadata=make.metadata, **_of_names(make), **_of_runs(make), **_of_records(make), **_of_decisions(make)
    )


class _Maker:
    """Makes tables and columns."""

    def __init__(self) -> None:
        self.metadata = sa.MetaData()

    def table(self, name: str, *columns: t.Any) -> t.Any:
        return sa.Table("ssd_" + name, self.metadata, sa.Column("id", sa.Integer, primary_key=True), *columns)

    @staticmethod
    def text(name: str, null: bool = False, unique: bool = False) -> t.Any:
        return sa.Column(name, sa.Text, nullable=null, unique=unique)

    @staticmethod
    def link(name: str, null: bool = False) -> t.Any:
        return sa.Column(name + "_id", sa.Integer, sa.ForeignKey(f"ssd_{name}.id"), nullable=null)

    @staticmethod
    def packed(name: str, null: bool = False) -> t.Any:
        return sa.Column(name, sa.LargeBinary, nullable=null)


def _of_names(make: _Maker) -> dict[str, t.Any]:
    """Return what others link to: runs, and each name once."""
    return dict(
        store=make.table("store", sa.Column("version", sa.Integer, nullable=False)),
        run=make.table(
            "run",
            make.text("run_id", unique=True),
            make.text("name"),
            make.text("started", null=True),
            make.packed("content"),
        ),
        host=make.table("host", make.text("name", unique=True)),
        drive=make.table(
            "drive",
            make.text("identity", unique=True),
            make.text("serial", null=True),
            make.text("wwn", null=True),
            make.text("model", null=True),
        ),
        test=make.table("test", make.text("name", unique=True)),
        layout=make.table("layout", make.text("digest", unique=True), make.packed("content")),
    )


def _of_runs(make: _Maker) -> dict[str, t.Any]:
    """Return what was measured."""
    return dict(
        # A host's part of a run: what is written in one transaction.
        part=make.table(
            "part",
            make.link("run"),
            make.link("host"),
            make.text("state", null=True),
            make.text("message", null=True),
            make.text("source"),
            make.text("digest"),
            sa.UniqueConstraint("run_id", "host_id", name="ssd_part_key"),
        ),
        campaign=make.table(
            "campaign",
            make.link("part"),
            make.text("label"),
            make.link("drive", null=True),
            make.text("firmware", null=True),
            sa.Column("capacity_bytes", sa.BigInteger),
            make.text("link", null=True),
            # What else has to be alike before figures are compared; null: unknown.
            sa.Column("lba_bytes", sa.Integer),
            sa.Column("metadata_bytes", sa.Integer),
            make.text("engine", null=True),
            sa.Column("preferred_write_bytes", sa.BigInteger),
            make.text("outcome", null=True),
            make.text("verdict"),
            sa.UniqueConstraint("part_id", "label", name="ssd_campaign_key"),
        ),
        measurement=make.table(
            "measurement",
            make.link("campaign"),
            make.link("test"),
            sa.Column("attempt", sa.Integer),
            make.text("outcome", null=True),
            make.text("verdict"),
            # Whether its figures count for others (judge.valid_tests).
            sa.Column("counts", sa.Integer, nullable=False),
            make.text("started", null=True),
            make.text("finished", null=True),
            sa.Column("rounds", sa.Integer),
            # Of a test whose threads follow the CPUs (comparability.load); null: any other.
            make.text("load", null=True),
            make.link("layout", null=True),
            make.packed("figures", null=True),
            sa.UniqueConstraint("campaign_id", "test_id", name="ssd_measurement_key"),
        ),
    )


def _of_records(make: _Maker) -> dict[str, t.Any]:
    """Return how it was judged, and the records and files that all this was read from."""
    return dict(
        judgement=make.table(
            "judgement",
            make.link("campaign"),
            make.packed("content"),
            sa.UniqueConstraint("campaign_id", name="ssd_judgement_key"),
        ),
        record=make.table(
            "record",
            make.link("part"),
            make.text("kind"),
            make.text("label"),
            make.text("test"),
            make.text("time"),
            make.packed("content"),
            sa.UniqueConstraint("part_id", "kind", "label", "test", name="ssd_record_key"),
        ),
        raw_file=make.table(
            "raw_file",
            make.link("part"),
            make.text("path"),
            sa.Column("size_bytes", sa.BigInteger, nullable=False),
            make.text("sha256"),
            make.packed("content"),
            sa.UniqueConstraint("part_id", "path", name="ssd_raw_file_key"),
        ),
    )


def _of_decisions(make: _Maker) -> dict[str, t.Any]:
    """Return what somebody decided: not made from folders."""
    return dict(
        # identity, serial: "" where the drive has none.
        quarantine=make.table(
            "quarantine",
            make.text("run_name"),
            make.text("identity"),
            make.text("serial"),
            make.text("host"),
            make.text("drive"),
            sa.Column("nights", sa.Integer, nullable=False),
            make.text("last_run"),
            make.text("reason"),
            make.text("marked"),
            make.text("released", null=True),
        ),
    )
