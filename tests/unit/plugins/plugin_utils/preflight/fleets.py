# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet that preflight decides over."""

from __future__ import annotations

import datetime

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision

NOW = datetime.datetime(2026, 11, 21, 13, 0, 0, tzinfo=datetime.timezone.utc)
FACTS = {"boot_id": "b", "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}}}

TB = 10**12
# What an NVMe drive reports of itself.
NVME = {
    "path": "/dev/nvme0n1",
    "size_bytes": TB,
    "controller": "/dev/nvme4",
    "serial": "S1",
    "namespace_id": 1,
    "eui64": "",
    "nguid": "",
    "uuid": "",
    "namespaces": [1],
    "controllers": 1,
    "shows_all": False,
    "can_format": True,
    "fna": 4,
    "sanicap": 0,
    "flbas": 0,
    "dps": 0,
    "format_left_pct": None,
    "lba_format": 0,
    "lba_formats": [
        {"index": 0, "data_bytes": 512, "metadata_bytes": 0, "performance": 0},
        {"index": 1, "data_bytes": 4096, "metadata_bytes": 0, "performance": 0},
    ],
}


def decide(*views, check=False):
    return decision.decide(decision.Request(views, check, NOW))


QUICK = {
    "name": "quick",
    "cells": [{"block_size": "4KiB", "read_pct": 0, "runtime_s": 2}],
    "rounds": {"max": 5},
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "min_capacity_multiple": 0,
        "confirm_windows": 0,
    },
    "precondition": False,
}


def recorded(decided):
    """Return run.json as it would be written; empty where nothing would be."""
    return base.to_json(decided.record) or {}
