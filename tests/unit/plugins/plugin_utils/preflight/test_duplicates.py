# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import duplicates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers


def view(name="h1", drives=None, facts=None, **variables):
    return host_answers.of(name, variables, (), facts, drives)


def drive_of(serial="S1", refusals=(), **identity):
    who = {"serial": serial, "model": "M", "wwn": None, "diskseq": 1, "major_minor": "7:0", **identity}
    return {
        "drive": serial or "loop",
        "identity": who,
        "refusals": [{"code": code, "message": code} for code in refusals],
    }


def texts(found):
    return [finding.text() for finding in found]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"serial": "A"}, {"serial": "A"}, True),
        ({"serial": "A"}, {"serial": "B"}, False),
        ({"serial": "A", "model": "X"}, {"serial": "A", "model": "Y"}, False),
        ({"serial": "A", "wwn": "eui.1"}, {"serial": "A", "wwn": "eui.2"}, False),
        ({"serial": None, "wwn": "eui.1"}, {"serial": None, "wwn": "eui.1"}, True),
        # One machine's controller or kernel tells less of a drive in a shelf than the other's.
        ({"serial": "A", "wwn": "eui.1"}, {"serial": "A"}, True),
        ({"serial": "A", "wwn": "eui.1"}, {"serial": None, "wwn": "eui.1"}, True),
        ({"serial": "A", "wwn": "naa.5000AB"}, {"serial": "A", "wwn": "0x5000ab"}, True),
        ({"serial": "A", "wwn": "eui.1"}, {"serial": "A", "wwn": "eui.1", "model": "of the SAS controller"}, True),
        ({"serial": "A", "model": "EXAMPLE SSD 3840"}, {"serial": "A", "model": "EXAMPLE SSD 3840GB"}, True),
        ({"serial": "A"}, {"serial": "A", "model": None}, True),
        # Drives that were made with one name; their serial numbers tell them apart.
        ({"serial": "A", "wwn": "eui.1"}, {"serial": "B", "wwn": "eui.1"}, False),
        ({"serial": None, "diskseq": 9}, {"serial": None, "diskseq": 9}, True),
        ({"serial": None, "diskseq": 9}, {"serial": None, "diskseq": 8}, False),
        ({"serial": None, "diskseq": None}, {"serial": None, "diskseq": None}, True),
    ],
)
def test_one_drive_under_two_hosts(one, other, alike):
    facts = {"boot_id": "b1"}
    found = texts(
        duplicates.same_drives(
            [view("h1", drives=[drive_of(**one)], facts=facts), view("h2", drives=[drive_of(**other)], facts=facts)]
        )
    )
    assert bool(found) is alike
    assert not alike or (found[0].startswith("h1: drive ") and "h2" in found[0])


def test_drives_without_a_serial_on_two_machines_are_two_drives():
    views = [view(name, drives=[drive_of(None)], facts={"boot_id": name}) for name in ("h1", "h2")]
    assert duplicates.same_drives(views) == []


@pytest.mark.parametrize(
    ("other", "alike"),
    [({}, True), ({"boot_id": "b2"}, False), ({"machine_id": "m2"}, False), ({"hostname": "n2"}, False)],
)
def test_one_machine_under_two_names(other, alike):
    facts = {"boot_id": "b", "machine_id": "m", "hostname": "n"}
    found = texts(duplicates.same_machines([view("h1", facts=facts), view("h2", facts={**facts, **other}), view("h3")]))
    expected = ["h1: same_machine: is the same machine as h2 (host name n); name all its drives under one of them"]
    assert found == (expected if alike else [])


def test_each_pair_of_hosts_is_told_once():
    drives = [drive_of("A", wwn="eui.1"), drive_of("A"), drive_of(None, wwn="eui.1")]
    found = texts(duplicates.same_drives([view(f"h{number}", drives=[one]) for number, one in enumerate(drives)]))
    assert len(found) == 1 and "h1 (A) and h2 (loop)" in found[0]


def test_two_selectors_of_one_host_are_the_guards_matter():
    assert duplicates.same_drives([view("h1", drives=[drive_of("A"), drive_of("A")])]) == []


@pytest.mark.parametrize(
    ("parallel", "serials", "refusals", "step", "state", "count"),
    [
        ("2", ("A", "A"), (), "qualify", "", 1),
        ("1", ("A", "A"), (), "qualify", "", 0),
        (2, ("A", "B"), (), "qualify", "", 0),
        (2, (None, None), (), "qualify", "", 0),
        (2, ("A", "A"), ("duplicate",), "qualify", "", 0),
        (2, ("A", "A"), (), "tune", "", 0),
        ("auto", ("A", "A"), (), "qualify", "", 0),
        ("auto", ("A", "B"), (), "qualify", "", 0),
        (2, ("A", "A"), (), "qualify", "running", 0),
        (2, ("A", "A"), (), "qualify", "stopped", 1),
    ],
)
def test_namespaces_of_one_drive_side_by_side(parallel, serials, refusals, step, state, count):
    host = view(
        "h1", ssd_parallel_drives=parallel, ssd_step=step, drives=[drive_of(serial, refusals) for serial in serials]
    )
    found = texts(duplicates.side_by_side(host, Run("r1", "qualify", {"h1": state} if state else {})))
    assert len(found) == count
    assert not count or found[0].startswith("h1: ssd_parallel_drives: A and A have one serial number (A)")


NVME = {"serial": "A", "wwn": "eui.0025385000000001"}


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"serial": "A"}, True),
        ({"serial": " A "}, True),
        ({"serial": "B"}, False),
        ({"wwn": "0x0025385000000001"}, True),
        ({"by_id": "nvme-x"}, True),
        ({"by_id": "/dev/disk/by-id/nvme-x"}, True),
        ({"serial": "A", "allow": ["signature"]}, True),
        # A file has its own meaning on each machine.
        ({"backing_file": "/a"}, False),
        ({"serial": "{{ lookup('x') }}"}, False),
        ("A", False),
        (None, False),
    ],
)
def test_a_drive_that_a_host_names_which_was_not_looked_at(entry, found):
    seen = {**drive_of(**NVME), "selector": {"by_id": "nvme-x"}}
    views = [view("h1", drives=[seen]), host_answers.of("h2", {"ssd_drives": [entry]}, unreachable="gone")]
    told = texts(duplicates.named_elsewhere(views))
    assert bool(told) is found and all("h2 names it too and is unreachable" in line for line in told)
    told = texts(duplicates.named_elsewhere(views[:1], {"h3": [entry]}))
    assert bool(told) is found and all(line.startswith("h1: drive A: duplicate: h3 names it") for line in told)


@pytest.mark.parametrize("entries", [None, "{{ drives }}", {"serial": "A"}, []])
def test_hosts_without_a_list_of_drives_keep_nobody_away(entries):
    seen = {**drive_of(**NVME), "selector": {"serial": "A"}}
    assert duplicates.named_elsewhere([view("h1", drives=[seen])], {"h2": entries}) == []


def test_a_host_that_was_looked_at_is_compared_by_what_it_tells():
    seen = {**drive_of(**NVME), "selector": {"serial": "A"}}
    views = [view("h1", drives=[seen]), view("h2", drives=[seen], ssd_drives=[{"serial": "A"}])]
    assert duplicates.named_elsewhere(views) == []
