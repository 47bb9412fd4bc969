# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import wear
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.health import Wear
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import environment

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "wear"
NVME = Identity(transport="nvme", path="/dev/nvme0n1", kernel_name="nvme0n1")
SATA = Identity(transport="sata", path="/dev/sda")
SMART = {"data_units_written": "2000000", "percent_used": 3}
MIB32 = 32 << 20


def recorded(name):
    return json.loads((FIXTURES / (name + ".json")).read_text(encoding="utf-8"))


class Tools:
    """A host whose tools answer so: {two words: JSON or None}. vendor: what sysfs has of an NVMe drive."""

    def __init__(self, vendor=None, **answers):
        self._answers, self._vendor, self.asked = answers, vendor, []

    def exists(self, path):
        return path == "/sys/block/nvme0n1/device/transport"

    def get(self, path):
        return self._vendor if path == "/sys/block/nvme0n1/device/device/vendor" else None

    def run(self, argv, **_more):
        self.asked.append(" ".join(argv[1:3]))
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
    assert (seen.host_bytes, seen.media_bytes, seen.used_pct) == (2_000_000 * 512_000, media, 3)


def test_sata_and_sas_tell_what_the_host_wrote():
    rows = [{"name": "Logical Sectors Written", "value": 1000}]
    sata = {"logical_block_size": 4096, "ata_device_statistics": {"pages": [{"table": rows}]}}
    sas = {"scsi_error_counter_log": {"write": {"gigabytes_processed": "12.500"}}}
    for transport, told, written in (("sata", sata, 4_096_000), ("sas", sas, 12_500_000_000), ("sas", {}, None)):
        seen = wear.read(Tools(smartctl___json_c=told), Identity(transport=transport, path="/dev/sda"))
        assert seen.host_bytes == written and seen.media_bytes is None


def of_intel(raw):
    return {"Device stats": {"nand_bytes_written": {"normalized": 100, "raw": raw}}}


def of_micron(text):
    return {"Extended Smart Log Page : 0xD0": [{"NAND Writes (Bytes Written)": text, "Erase Failures": "0x1"}]}


@pytest.mark.parametrize(
    ("vendor", "answers", "media"),
    [
        # facebook/CacheLib's test has the same bytes for these units.
        ("0x8086", {"nvme_intel": recorded("nvme-intel-smart-log-add")}, 7_547_837_550_166_016),
        ("0x025e", {"nvme_solidigm": of_intel(7)}, 7 * MIB32),
        ("0x1344", {"nvme_micron": of_micron("0x1F0000000000")}, 0x1F0000000000),
        # All of a drive that has no such log: nvme-cli shows zeros.
        ("0x8086", {"nvme_intel": of_intel(0)}, None),
        ("0x1344", {"nvme_micron": of_micron("0xzz")}, None),
        ("0x1344", {"nvme_micron": {"Extended Smart Log Page : 0xFB": []}}, None),
        ("0x8086", {"nvme_intel": {"Device stats": {"nand_bytes_written": {"raw": {"min": 1}}}}}, None),
        ("0x8086", {}, None),
        # Another vendor's log page of that number has another layout: it is not asked for.
        ("0x144d", {"nvme_intel": of_intel(7), "nvme_micron": of_micron("0x7")}, None),
        (None, {"nvme_intel": of_intel(7)}, None),
    ],
)
def test_without_ocps_log_a_vendors_own_is_asked(vendor, answers, media):
    tools = Tools(vendor, nvme_smart_log=SMART, **answers)
    assert wear.read(tools, NVME).media_bytes == media
    ocp = Tools(vendor, nvme_smart_log=SMART, nvme_ocp={"physical_media_units_written": "9"}, **answers)
    assert wear.read(ocp, NVME).media_bytes == 9 and not {"intel smart-log-add"} & set(ocp.asked)


def of_sata(told):
    return wear.read(Tools(smartctl___json_c=told), SATA)


def later(told, **grown):
    """The same drive, whose attributes and statistics of these names have grown."""
    then = json.loads(json.dumps(told))
    for row in [*then["ata_smart_attributes"]["table"], *then["ata_device_statistics"]["pages"][0]["table"]]:
        more = grown.get(row["name"].replace(" ", "_"), 0)
        if "raw" in row:
            row["raw"]["value"] += more
        else:
            row["value"] += more
    return then


def test_an_intel_sata_drive_counts_units_of_32_mib():
    told = recorded("smartctl-intel-s3520")
    seen = of_sata(told)
    assert (seen.host_bytes, seen.media_bytes) == (95_817_817_043 * 512, 6_639_976 * MIB32)
    sectors = 10**12 // 512
    after = later(told, Logical_Sectors_Written=sectors, NAND_Writes_32MiB=2 * 10**12 // MIB32)
    cost = wear.spent(seen, of_sata(after))
    assert cost.media_bytes == pytest.approx(2e12, rel=1e-4) and cost.write_amplification == 2.0


def test_micron_counts_pages_of_a_size_that_it_does_not_tell():
    """TN-FD-23: (247 + 248) / 247."""
    told = recorded("smartctl-micron-5300")
    seen = of_sata(told)
    assert (seen.host_bytes, seen.media_bytes) == (696_613_897 * 512, None)
    after = later(told, Logical_Sectors_Written=10**8, Host_Program_Page_Count=3 * 10**6, Bckgnd_Program_Page_Cnt=10**6)
    cost = wear.spent(seen, of_sata(after))
    assert cost == Wear(512 * 10**8, None, 1.333, 0)
    renamed = json.loads(json.dumps([told, after]).replace("Bckgnd_Program_Page_Cnt", "FTL_Program_Page_Count"))
    assert wear.spent(*map(of_sata, renamed)) == cost


def test_an_attribute_that_smartctl_does_not_know_stays_unknown():
    told = recorded("smartctl-micron-5300-not-in-database")
    after = json.loads(json.dumps(told).replace("2479737366", "3479737366"))
    cost = wear.spent(of_sata(told), of_sata(later(after, Logical_Sectors_Written=10**8)))
    assert cost.host_bytes and cost.media_bytes is cost.write_amplification is None


@pytest.mark.parametrize(
    ("rows", "host", "media"),
    [
        ([("Total_Writes_GiB", 3), ("Total_NAND_Writes_GiB", 7)], 3 << 30, 7 << 30),
        ([("Lifetime_Writes_GiB", 3), ("Flash_Writes_GiB", 7)], 3 << 30, 7 << 30),
        ([("Host_Writes_32MiB", 3), ("NAND_Writes_1GiB", 7)], 3 * MIB32, 7 << 30),
        # The same name twice, with two values: nobody knows which.
        ([("Flash_Writes_32MiB", 3), ("Flash_Writes_32MiB", 4)], None, None),
        ([("NAND_Writes", 7), ("Total_LBAs_Written", 3)], None, None),
        ([("NAND_Writes_GiB", "x")], None, None),
    ],
)
def test_attributes_by_name_where_there_are_no_statistics(rows, host, media):
    table = [{"id": number, "name": name, "raw": {"value": value}} for number, (name, value) in enumerate(rows, 230)]
    seen = of_sata({"ata_smart_attributes": {"table": table}})
    assert (seen.host_bytes, seen.media_bytes) == (host, media)


@pytest.mark.parametrize(("grown_mib", "told"), [(99 * 1024, False), (100 * 1024, True)])
def test_a_count_in_large_units_needs_many_of_them(grown_mib, told):
    """A unit more or less at each end would be most of the quotient."""
    before = {"ata_smart_attributes": {"table": [{"id": 249, "name": "NAND_Writes_1GiB", "raw": {"value": 1000}}]}}
    before["ata_device_statistics"] = {"pages": [{"table": [{"name": "Logical Sectors Written", "value": 0}]}]}
    after = later(before, NAND_Writes_1GiB=2 * grown_mib // 1024, Logical_Sectors_Written=grown_mib * 2048)
    cost = wear.spent(of_sata(before), of_sata(after))
    assert cost.media_bytes == 2 * grown_mib << 20 and cost.write_amplification == (2.0 if told else None)


def test_a_count_that_stands_still_says_nothing():
    before = wear.Lifetime(host_bytes=10**12, media_bytes=5, used_pct=1)
    cost = wear.spent(before, before._replace(host_bytes=3 * 10**12))
    assert cost.media_bytes is cost.write_amplification is None
    little = wear.spent(before, before._replace(host_bytes=10**12 + 10**6))
    assert little.media_bytes == 0 and little.write_amplification is None


@pytest.mark.parametrize("ocp_first", [True, False])
def test_a_log_that_was_not_read_once_is_not_subtracted_from_another_one(ocp_first):
    """OCP's log timed out at one end, and the vendor's own was asked instead: it counts in another way."""
    smart = {"nvme_smart_log": {**SMART, "data_units_written": "9000000"}}
    ocp = wear.read(Tools("0x8086", nvme_smart_log=SMART, nvme_ocp={"physical_media_units_written": "9"}), NVME)
    vendors = wear.read(Tools("0x8086", **smart, nvme_intel=of_intel(10**6)), NVME)
    cost = wear.spent(
        *((ocp, vendors) if ocp_first else (vendors._replace(host_bytes=0), ocp._replace(media_bytes=10**15)))
    )
    assert cost.media_bytes is cost.write_amplification is None and cost.host_bytes


def test_a_statistic_that_was_not_read_once_is_not_subtracted_from_an_attribute():
    table = {"ata_smart_attributes": {"table": [{"id": 241, "name": "Host_Writes_GiB", "raw": {"value": 9000}}]}}
    statistics = {"ata_device_statistics": {"pages": [{"table": [{"name": "Logical Sectors Written", "value": 1}]}]}}
    assert wear.spent(of_sata({**table, **statistics}), of_sata(table)) is None
    assert wear.spent(of_sata(table), of_sata(table)).host_bytes == 0


def test_a_drive_that_tells_nothing_spent_nothing_that_is_known():
    nothing = wear.read(Tools(), Identity(transport="loop", path="/dev/loop0"))
    assert wear.spent(nothing, nothing) is None and environment.wear({"wear": None}) == environment.wear({}) == []


@pytest.mark.parametrize(
    ("host", "media", "quotient"), [(2 * 10**9, 5 * 10**9, 2.5), (10**8, 5 * 10**8, None), (2 * 10**9, None, None)]
)
def test_what_a_test_cost(host, media, quotient):
    before = wear.Lifetime(host_bytes=10**12, media_bytes=10**12, used_pct=3)
    now = wear.Lifetime(10**12 + host, media_bytes=None if media is None else 10**12 + media, used_pct=4)
    found = wear.spent(before, now)
    assert found == Wear(host, media, quotient, 4)
    assert wear.spent(now, now._replace(host_bytes=1)).host_bytes is None, "a count that began anew"
    (said,) = environment.wear({"wear": base.to_json(found)})
    assert ("write amplification 2.5" in said) == bool(quotient) and "4 % of its rated life" in said
