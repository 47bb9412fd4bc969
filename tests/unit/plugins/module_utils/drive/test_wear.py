# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import wear
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import worlds

NVME = {"transport": "nvme", "path": "/dev/nvme0n1"}
SMART = {"data_units_written": "2000000", "percent_used": 3}


class Tools:
    """A host whose tools answer so: {two words: JSON or None}."""

    def __init__(self, **answers):
        self._answers = answers

    def run(self, argv, **_more):
        told = self._answers.get("_".join(argv[:2]).replace("-", "_").replace("=", "_"))
        return Result(argv, 0 if told is not None else 1, json.dumps(told or {}), "no such log")


@pytest.mark.parametrize(
    ("log", "media"),
    [
        ({"Physical media units written": {"hi": 0, "lo": 5}}, 5),
        ({"Physical media units written": {"hi": 1, "lo": 5}}, (1 << 64) + 5),
        ({"physical_media_units_written": "7"}, 7),
        ({"Physical media units written": {"hi": "x"}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_an_nvme_drive_tells_both_where_it_has_the_log(log, media):
    seen = wear.read(Tools(nvme_smart_log=SMART, nvme_ocp=log), NVME)
    assert seen == {"host_bytes": 2_000_000 * 512_000, "media_bytes": media, "used_pct": 3}


def test_sata_and_sas_tell_what_the_host_wrote():
    rows = [{"name": "Logical Sectors Written", "value": 1000}]
    sata = {"logical_block_size": 4096, "ata_device_statistics": {"pages": [{"table": rows}]}}
    sas = {"scsi_error_counter_log": {"write": {"gigabytes_processed": "12.500"}}}
    for transport, told, written in (("sata", sata, 4_096_000), ("sas", sas, 12_500_000_000), ("sas", {}, None)):
        seen = wear.read(Tools(smartctl___json_c=told), {"transport": transport, "path": "/dev/sda"})
        assert seen["host_bytes"] == written and seen["media_bytes"] is None


def test_a_drive_that_tells_nothing_spent_nothing_that_is_known():
    nothing = wear.read(Tools(), {"transport": "loop", "path": "/dev/loop0"})
    assert wear.spent(nothing, nothing) is None and worlds.wear({"wear": None}) == worlds.wear({}) == []


@pytest.mark.parametrize(
    ("host", "media", "quotient"), [(2 * 10**9, 5 * 10**9, 2.5), (10**8, 5 * 10**8, None), (2 * 10**9, None, None)]
)
def test_what_a_test_cost(host, media, quotient):
    before = {"host_bytes": 10**12, "media_bytes": 10**12, "used_pct": 3}
    now = {"host_bytes": 10**12 + host, "media_bytes": None if media is None else 10**12 + media, "used_pct": 4}
    found = wear.spent(before, now)
    assert found == {"host_bytes": host, "media_bytes": media, "write_amplification": quotient, "used_pct": 4}
    assert wear.spent(now, dict(now, host_bytes=1))["host_bytes"] is None, "a count that began anew"
    (said,) = worlds.wear({"wear": found})
    assert ("write amplification 2.5" in said) == bool(quotient) and "4 % of its rated life" in said
