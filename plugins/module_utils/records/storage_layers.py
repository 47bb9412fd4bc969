# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made between a test and its drive: an array of all drives of the host, or a file system; as it is planned,
and as it was made.

Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Commands, Label, Limits, NotNegative, Positive, Text

_ShortName = t.Optional[Annotated[str, Limits(max_length=256)]]


@dataclass(frozen=True)
class PlannedArray:
    """An array of all drives of the host, made for a test."""

    level: t.Literal[0]
    chunk_bytes: Positive
    # As this plan names them.
    members: Annotated[t.List[Label], Limits(min_items=2)]


@dataclass(frozen=True)
class Member:
    """A drive of an array."""

    drive: Label
    path: Annotated[str, Limits(max_length=4096)]
    serial: _ShortName
    wwn: _ShortName
    model: _ShortName
    firmware: _ShortName
    size_bytes: Positive


@dataclass(frozen=True)
class ArrayDetails:
    """An array that was made for a test, of drives of the host."""

    level: t.Literal[0]
    chunk_bytes: Annotated[int, Limits(minimum=4096, maximum=1048576)]
    device: Annotated[str, Limits(pattern="^/dev/md[0-9]{1,4}$")]
    size_bytes: Positive
    commands: Commands
    seconds: NotNegative


@dataclass(frozen=True)
class AssembledArray(ArrayDetails):
    """An array with its drives."""

    # In the order of the stripes.
    members: Annotated[t.List[Member], Limits(min_items=2, max_items=1000)]


@dataclass(frozen=True)
class Stripe:
    """How a file system is laid over the stripes of an array, in blocks of its own."""

    stride: Positive
    stripe_width: Positive


@dataclass(frozen=True)
class PlannedFilesystem:
    """A file system that is made for a test."""

    type: t.Literal["ext4", "xfs"]
    block_size_bytes: Positive
    mount_options: t.List[str]
    stripe: t.Optional[Stripe]


@dataclass(frozen=True)
class FilesystemDetails:
    """A file system that was made for a test."""

    type: t.Literal["ext4", "xfs"]
    uuid: Annotated[str, Limits(pattern="^[0-9a-f-]{36}$")]
    block_size_bytes: Positive
    # As asked.
    mount_options: Annotated[t.List[Annotated[str, Limits(max_length=40)]], Limits(max_items=20)]
    # In force.
    options: Annotated[t.List[Annotated[str, Limits(max_length=200)]], Limits(max_items=100)]
    stripe: t.Optional[Stripe]
    commands: Commands
    file_bytes: Positive
    seconds: NotNegative


@dataclass(frozen=True)
class FilesystemEnd:
    """What became of a file system."""

    uuid: Text
    wiped: bool
    # Why it was not wiped.
    reason: str
    seconds: NotNegative
