# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools.nvme import nvme_number

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "health"
NVME = Identity(transport="nvme", path="/dev/nvme0n1")
SATA = Identity(transport="sata", path="/dev/sda")


def recorded(name):
    return json.loads((FIXTURES / (name + ".json")).read_text())


class Tools:
    """Answers of nvme and smartctl by the words of their command; what is not there is not installed."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def run(self, argv, timeout_s=60, stdin=None):
        self.asked.append(argv)
        key = argv[1].replace("-", "_") if argv[0] == "nvme" else argv[0]
        rc, stdout, stderr = self.answers.get(key, (127, "", "cannot run " + argv[0]))
        return type(
            "Result",
            (),
            {"rc": rc, "stdout": stdout if isinstance(stdout, str) else json.dumps(stdout), "stderr": stderr},
        )


def test_nvme_counts_in_kelvin_and_its_warning_may_be_a_mapping():
    found = health.from_nvme(recorded("nvme-smart-log-2.11"))
    expected = {
        "temperature_c": 51,
        "critical_warning": 0,
        "passed": True,
        "spare_pct": 100,
        "spare_threshold_pct": 5,
        "used_pct": 30,
    }
    assert {key: getattr(found, key) for key in expected} == expected and found.media_errors == 0
    assert found.throttle_counts == {"t1": 3, "t2": 0} and found.throttle_s == {"t1": 1474, "t2": 0}
    assert health.from_nvme(recorded("nvme-smart-log-1")).temperature_c == 28


def test_nvme_cli_and_smartctl_agree_about_one_drive():
    nvme = vars(
        health.merge(
            health.from_nvme(recorded("nvme-smart-log-qemu")), health.nvme_limits(recorded("nvme-id-ctrl-qemu"))
        )
    )
    expected = {
        "temperature_c": 50,
        "warning_temperature_c": 70,
        "critical_temperature_c": 100,
        "volatile_write_cache": True,
        "spare_pct": 0,
    }
    assert {key: nvme[key] for key in expected} == expected and nvme["spare_threshold_pct"] == 0
    smartctl = vars(health.from_smartctl(recorded("smartctl-nvme-qemu")))
    same = [key for key, value in smartctl.items() if value is not None and key != "source"]
    assert {key: nvme[key] for key in same} == {key: smartctl[key] for key in same} and "media_errors" in same


def test_large_numbers_are_texts():
    log = dict(recorded("nvme-smart-log-1"), media_errors="36893488147419103232", percent_used="3")
    assert health.from_nvme(log).media_errors == 2**65 and health.from_nvme(log).used_pct == 3


@pytest.mark.parametrize("told", [7, "7", 7.0, "7.000000", "7.0"])
def test_counters_are_whole_numbers_however_nvme_cli_writes_them(told):
    """nvme-cli 1.13 to 1.16 makes doubles of its 128-bit counters (json_object_new_double), 2.0 texts by %Lf, later
    ones integers.
    """
    assert health.from_nvme(dict(recorded("nvme-smart-log-1"), media_errors=told)).media_errors == 7


@pytest.mark.parametrize("told", [7.5, "7.5", "0x7", "", "nan", float("inf"), float("nan"), True, None, [7]])
def test_what_is_no_whole_number_is_unknown(told):
    assert nvme_number(told) is None


def test_what_is_not_reported_is_unknown_not_zero():
    found = health.from_nvme({"critical_warning": 4, "temperature": 0})
    assert found.passed is False and found.temperature_c is found.throttle_counts is found.media_errors is None
    assert health.nvme_limits({"wctemp": 0, "vwc": 6}) == health.Health(volatile_write_cache=False)
    assert health.nvme_limits({"wctemp": 343, "cctemp": 353, "vwc": 7}).warning_temperature_c == 70


@pytest.mark.parametrize(
    "file, expected",
    [
        (
            "smartctl-nvme-micron-7450",
            {
                "temperature_c": 33,
                "critical_warning": 0,
                "passed": True,
                "spare_pct": 100,
                "media_errors": 0,
                "used_pct": 0,
            },
        ),
        ("smartctl-nvme-media-errors", {"temperature_c": 35, "spare_pct": 99, "media_errors": 7, "used_pct": 3}),
        (
            "smartctl-sat-sm843t",
            {"temperature_c": 27, "passed": True, "media_errors": 0, "spare_pct": None, "failing": ()},
        ),
        ("smartctl-scsi", {"temperature_c": 38, "passed": True, "media_errors": 0, "critical_temperature_c": None}),
    ],
)
def test_smartctl_tells_the_same_of_every_kind_of_drive(file, expected):
    found = health.from_smartctl(recorded(file))
    assert {key: getattr(found, key) for key in expected} == expected and found.error == ""


def test_smartctl_newer_keys_and_failing_attributes():
    ata = recorded("smartctl-sat-sm843t")
    ata["ata_smart_attributes"]["table"][0]["when_failed"] = "now"
    ata["ata_smart_attributes"]["table"][3]["raw"]["value"] = 4
    ata["ata_device_statistics"] = {
        "pages": [{"number": 7, "table": [{"offset": 8, "name": "Percentage Used Endurance Indicator", "value": 12}]}]
    }
    ata["temperature"].update(op_limit_max=70, limit_max=85)
    found = health.from_smartctl(ata)
    assert (found.failing, found.media_errors, found.used_pct) == (("Reallocated_Sector_Ct",), 4, 12)
    assert (found.warning_temperature_c, found.critical_temperature_c) == (70, 85)
    assert (found.interface_gbit_s, found.interface_max_gbit_s) == (6.0, 6.0)
    nvme = dict(
        recorded("smartctl-nvme-micron-7450"), nvme_composite_temperature_threshold={"warning": 77, "critical": 85}
    )
    assert (
        health.from_smartctl(nvme).warning_temperature_c,
        health.from_smartctl(nvme).critical_temperature_c,
    ) == (77, 85)


def test_a_verdict_without_figures_is_no_error():
    found = health.from_smartctl({"smart_status": {"passed": True}})
    assert found.passed is True and found.error == ""


def test_a_drive_without_smart_says_so():
    told = {
        "smartctl": {"messages": [{"string": "/dev/sda: Unknown USB bridge", "severity": "error"}], "exit_status": 1}
    }
    assert health.from_smartctl(told).error == "smartctl reports no health of this drive: /dev/sda: Unknown USB bridge"


def test_nvme_cli_is_asked_first_and_smartctl_where_it_is_missing():
    tools = Tools(smart_log=(0, recorded("nvme-smart-log-1"), ""), id_ctrl=(0, {"wctemp": 343, "vwc": 1}, ""))
    found = health.read(tools, NVME)
    assert found.source == "nvme smart-log" and found.warning_temperature_c == 70 and found.volatile_write_cache is True
    assert (
        len(tools.asked) == 2
        and health.read(tools, NVME, limits=False).warning_temperature_c is None
        and len(tools.asked) == 3
    )
    # smartctl's exit code tells of the drive, so its JSON counts whatever it is.
    only = Tools(smartctl=(64, recorded("smartctl-nvme-micron-7450"), ""))
    assert health.read(only, NVME).source == "smartctl"


@pytest.mark.parametrize(
    "tools, identity, error",
    [
        (Tools(), SATA, "smartctl is not installed"),
        (Tools(), NVME, "nvme is not installed; smartctl is not installed"),
        (
            Tools(smart_log=(1, "", "NVMe status: X\nmore")),
            NVME,
            "nvme smart-log failed with exit code 1: NVMe status: X; smartctl is not installed",
        ),
        (
            Tools(smart_log=(1, '{\n  "error": "identify failed: NVMe status"\n}\n', "")),
            NVME,
            "nvme smart-log failed with exit code 1: identify failed: NVMe status; smartctl is not installed",
        ),
        (Tools(smartctl=(2, "no json", "")), SATA, "smartctl --json=c failed with exit code 2: no json"),
        (Tools(), Identity(transport="loop", path="/dev/loop0"), "loop drives report no health"),
    ],
)
def test_why_there_is_no_health(tools, identity, error):
    found = health.read(tools, identity)
    assert found.error == error and found.passed is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    {
                        "critical_warning",
                        "temperature",
                        "value",
                        "current",
                        "table",
                        "raw",
                        "id",
                        "pages",
                        "passed",
                        "smart_status",
                        "ata_smart_attributes",
                        "nvme_smart_health_information_log",
                        "scsi_error_counter_log",
                        "ata_device_statistics",
                        "thm_temp1_trans_count",
                        "smartctl",
                        "messages",
                    }
                )
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


KEYS = [
    "temperature",
    "ata_smart_attributes",
    "nvme_smart_health_information_log",
    "scsi_error_counter_log",
    "smart_status",
]


@given(st.dictionaries(st.text(max_size=4) | st.sampled_from(KEYS), JSON))
def test_any_json_gives_a_temperature_or_none(data):
    for found in (health.from_nvme(data), health.from_smartctl(data)):
        assert found.temperature_c is None or isinstance(found.temperature_c, int)


def test_bits_of_the_critical_warning():
    assert health.critical_texts(0) == health.critical_texts(None) == []
    assert health.critical_texts(0x3F) == [text for _bit, text in health.CRITICAL_WARNINGS]
    assert health.critical_texts(0x04) == ["its reliability is degraded"]
