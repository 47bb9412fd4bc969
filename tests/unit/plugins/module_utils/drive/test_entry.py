# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import NO_OPTIONS, parse


@pytest.mark.parametrize(
    "selector, says",
    [
        ({}, "exactly one of"),
        (None, "not a mapping"),
        ("all", "not a mapping"),
        ({"serial": "a", "wwn": "b"}, "exactly one of"),
        ({"path": "/dev/sda"}, "exactly one of"),
        ({"serial": ""}, "may be undefined"),
        ({"serial": " \n"}, "may be undefined"),
        ({"serial": 0o123}, "put it in quotes"),  # YAML: 0123
        ({"serial": 1e5}, "put it in quotes"),
        ({"serial": False}, "put it in quotes"),  # YAML: NO
        ({"serial": None}, "put it in quotes"),
        ({"wwn": "0x0000"}, "names no drive"),
        ({"wwn": "eui.ffffffffffffffff"}, "names no drive"),
        ({"serial": "0"}, "a placeholder"),  # what follows: bridges, controllers and blank flash
        ({"serial": "0000 0000-0000"}, "a placeholder"),
        ({"serial": "FFFFFFFFFFFF"}, "a placeholder"),
        ({"serial": "0123456789ABCDEF"}, "a placeholder"),
        ({"serial": "123456789012"}, "a placeholder"),
        ({"serial": " To be filled by O.E.M. "}, "a placeholder"),
        ({"serial": "unknown"}, "a placeholder"),
        ({"by_id": "/dev/"}, "is not a valid name"),
        ({"by_id": "/dev/disk/by-id/"}, "is not a valid name"),
        ({"by_id": "/dev/disk/by-id/../../sda"}, "is not a valid name"),
        ({"by_id": ".."}, "is not a valid name"),
        ({"by_id": "/dev/sda"}, "is not a valid name"),
        ({"backing_file": "disk.img"}, "not an absolute path"),
        ({"serial": "A\0B"}, "cannot be printed"),
        ({"backing_file": "/x\n"}, "cannot be printed"),
        ({"allow": ["partition_table"]}, "exactly one of"),
        ({"serial": "a", "Allow": []}, "exactly one of"),
        ({"serial": "a", 5: []}, "exactly one of"),
        ({"serial": "a", "allow": "partition_table"}, "a list of the guard's codes"),
        ({"serial": "a", "allow": [5]}, "a list of the guard's codes"),
        ({"serial": "a", "ssd_overwrite_data": "yes"}, "true or false"),
        ({"serial": "a", "ssd_overwrite_data": 1}, "true or false"),
        ({"serial": "a", "retired": "yes"}, "true, or the date of the day"),
        ({"serial": "a", "retired": "2026-13-01"}, "true, or the date of the day"),
        ({"serial": "a", "retired": ""}, "true, or the date of the day"),
        ({"serial": "a", "retired": 1}, "true, or the date of the day"),
        ({"serial": "a", "retired": None}, "true, or the date of the day"),
        ({"serial": "a", "numa_node": "1"}, "a NUMA node"),
        ({"serial": "a", "numa_node": True}, "a NUMA node"),
        ({"serial": "a", "numa_node": -1}, "a NUMA node"),
        ({"serial": "a", "cpus": "0-"}, "a list of CPUs"),
        ({"serial": "a", "cpus": "0-3\n"}, "a list of CPUs"),
        ({"serial": "a", "cpus": [0, 1]}, "a list of CPUs"),
        ({"serial": "a", "write_cache": "auto"}, "on or off"),
        ({"serial": "a", "release_evidence": ""}, "the id of the run"),
        ({"serial": "a", "release_evidence": True}, "the id of the run"),
        ({"serial": "a", "write_cache": None}, "on or off"),
        ({"serial": "a", "passing_programs": ["/usr/sbin/smartctl"]}, "a list of programs by path"),
        ({"serial": "a", "passing_programs": [{"path": "smartctl"}]}, "a list of programs by path"),
        ({"serial": "a", "passing_programs": [{"path": "/a", "opens_for_writing": "yes"}]}, "a list of programs"),
        ({"serial": "a", "passing_programs": [{"path": "/a", "writes": True}]}, "a list of programs by path"),
    ],
)
def test_a_malformed_selector_is_told(fake, selector, says):
    entry = parse(selector)
    assert says in entry.problem and entry.given == selector
    with pytest.raises(ValueError, match=says):
        identity.find(fake, entry)
    assert (entry.kind, entry.options) == ("", NO_OPTIONS)
    assert entry.label == (str(selector) if isinstance(selector, dict) else repr(selector))


def test_all_mistakes_of_an_entry_are_told_at_once():
    problem = parse({"serial": 123, "retyred": True, "allow": "signature", "write_cache": "auto"}).problem
    for text in ("its keys are serial, retyred, allow", "serial is 123, not a string", "its option allow", "on or off"):
        assert text in problem


@pytest.mark.parametrize(
    "text, safe",
    [("S4-a.b_9", "S4-a.b_9"), ("/dev/shm/a b", "_dev_shm_a_b"), ("..", "__"), (".", "_"), ("", "_"), ("é/..", "__..")],
)
def test_a_slug_is_one_safe_file_name(text, safe):
    assert files.slug(text) == safe


def test_the_label_is_the_value():
    assert parse({"serial": " S1 "}).label == "S1"
    assert parse({"allow": ["signature"], "wwn": "eui.01"}).label == "eui.01"


@pytest.mark.parametrize(
    "given, wanted",
    [
        ({}, {}),
        ({"allow": ["signature"]}, {"allow": ["signature"]}),
        ({"ssd_overwrite_data": True, "numa_node": 0}, {"ssd_overwrite_data": True, "numa_node": 0}),
        ({"cpus": 4}, {"cpus": "4"}),
        ({"cpus": "0-3,8"}, {"cpus": "0-3,8"}),
        ({"retired": True}, {"retired": "true"}),
        ({"retired": False}, {"retired": None}),
        ({"retired": "2026-11-28"}, {"retired": "2026-11-28"}),
        ({"write_cache": True}, {"write_cache": "on"}),  # YAML: on
        ({"write_cache": False}, {"write_cache": "off"}),
        ({"write_cache": "off"}, {"write_cache": "off"}),
    ],
)
def test_options_stand_beside_the_selector(fake, given, wanted):
    fake.nvme("nvme0n1", "259:1", "A")
    entry = parse(dict(given, serial=" A "))
    assert entry.problem is None and entry.given == dict(given, serial=" A ")
    assert (entry.kind, entry.label) == ("serial", "A")
    assert identity.find(fake, entry) == ["nvme0n1"]
    assert entry.options == NO_OPTIONS._replace(**wanted)
