# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 1 to 15 of docs/wrong-drives.md that need no other drive than loop devices, or one whose sysfs is a fixture:
which drive is meant.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fake_server import FakeServer
from wrong_drive import run

# --- entries that name no drive, or another than was meant
# ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def canary(bench):
    """A file that exists once a shell has read a value of the inventory."""
    return Path(bench.folder, "canary")


@pytest.fixture(scope="module")
def hostile(canary):
    """Values that a shell, a glob or a path would take for more than a name."""
    values = [
        "x; touch {0}",
        "$(touch {0})",
        "`touch {0}`",
        "x\ntouch {0}",
        "| touch {0}",
        "*",
        "?",
        "[!x]*",
        "../../etc",
        "/dev/sda",
        "-rf",
        "--help",
    ]
    return [value.format(canary) for value in values]


@pytest.fixture(scope="module")
def named(bench, hostile):
    """One play with every such entry, and the links of by-id that lead somewhere else."""
    part = bench.disk("partitioned")
    links = {
        "dangling": bench.by_id("/dev/ssdlab-fleet-gone"),
        "partition": bench.by_id(part.partitions()),
        "no block device": bench.by_id("/dev/null"),
        "file": bench.by_id(part.file),
    }
    entries = [{"by_id": link} for link in links.values()]
    entries += [{"serial": value} for value in hostile] + [
        {"backing_file": "/dev/nvme9n1"},
        {"backing_file": bench.spare.file + "x"},
    ]
    outcome = bench.play(entries=entries)
    outcome.links = links
    return outcome


@pytest.mark.case(4)
def test_case_4_a_mistyped_path_names_nothing_and_makes_no_file(named):
    for path in ("/dev/nvme9n1", named.bench.spare.file + "x"):
        named.refused(path, "not_found")
        assert not os.path.lexists(path)


@pytest.mark.case(7)
def test_case_7_a_link_that_leads_nowhere_or_to_a_partition(named):
    for link, code in (
        ("dangling", "not_found"),
        ("partition", "not_whole_drive"),
        ("no block device", "not_found"),
        ("file", "not_found"),
    ):
        named.refused(named.links[link], code)


@pytest.mark.case(5)
def test_case_5_no_value_is_a_pattern_or_a_command(named, hostile, canary):
    for value in hostile:
        assert named.codes(value) | {"not_found"} == {"not_found"}
    told = named.output
    # One with a newline is no name at all.
    assert all(
        f"{value}: not_found:" in told if value.isprintable() else f"bad_selector: serial is {value!r}" in told
        for value in hostile
    )
    named.nothing_happened()
    assert not canary.exists()


# --- whole lists, types and templates
# -------------------------------------------------------------------------------------------------

# What a host's whole list may be instead of one.
LISTS = {
    "empty": ([], "no drive is named"),
    "null": (None, "no drive is named"),
    "all": ("all", "is not a list"),
    "mapping": ({"serial": "S1"}, "is not a list"),
    "undefined": ([{"serial": "{{ drive_serial }}"}], "could not be checked"),
}
# Entries of one list, in this order.
PLACES = [
    ({"by_path": "pci-0000:00:1f.2-ata-1"}, "bad_selector: its keys are by_path"),
    (
        {"by_id": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"},
        "bad_selector: by_id '/dev/disk/by-path/pci-0000:00:1f.2-ata-1' is not",
    ),
]
EVERYTHING = [
    ("*", "bad_selector: it is '*'"),
    ("sda", "bad_selector: it is 'sda'"),
    ({"path": "/dev/sda"}, "bad_selector: its keys are path"),
    ({"serial": "S1", "wwn": "eui.1"}, "bad_selector: its keys are serial, wwn"),
    ({"serial": "  "}, "bad_selector: serial is empty"),
    ({"by_id": "/dev/disk/by-id/"}, "bad_selector: by_id '/dev/disk/by-id/' is not a valid name"),
    ({"by_id": "../../sda"}, "bad_selector: by_id '../../sda' is not a valid name"),
    ({"wwn": "0000000000000000"}, "bad_selector: wwn"),
]
UNDEFINED = [
    ({"serial": "{{ drive_serial | default('') }}"}, "bad_selector: serial is empty"),
    (
        {"by_id": "/dev/disk/by-id/{{ drive_serial | default('') }}"},
        "bad_selector: by_id '/dev/disk/by-id/' is not a valid name",
    ),
]
OPTIONS = [
    ({"serial": "S1", "allow": "partition_table"}, "bad_selector: its option allow is 'partition_table'"),
    ({"serial": "S1", "allow": ["no_such_code"]}, "bad_selector: its option allow names 'no_such_code'"),
    ({"serial": "S1", "ssd_overwrite_data": "yes please"}, "bad_selector: its option ssd_overwrite_data is"),
]
ENTRIES = [*PLACES, *EVERYTHING, *UNDEFINED, *OPTIONS]
TYPES = {
    "octal": "0123",
    "float": "1.0e+5",
    "underscores": "1_000",
    "boolean": "NO",
    "sexagesimal": "12:30:45",
    "none": "~",
    "infinity": ".inf",
}


@pytest.fixture(scope="module")
def listed(bench):
    """One play with a host name for each list, and one for all entries; its last entry is an undefined variable behind
    a path.
    """
    hosts = {host: drives for host, (drives, _text) in LISTS.items()}
    hosts["entries"] = [*(entry for entry, _text in ENTRIES), {"backing_file": "/dev/{{ drive_serial | default('') }}"}]
    return bench.play(entries=hosts)


def told_each(listed, entries):
    """Each of these of ENTRIES was told its text."""
    for entry, text in entries:
        listed.told("entries", f"ssd_drives[{ENTRIES.index((entry, text))}]: {text}")


@pytest.mark.case(2)
def test_case_2_a_place_is_no_identity(listed):
    told_each(listed, PLACES)


@pytest.mark.case(14)
@pytest.mark.parametrize("host", [host for host in LISTS if host != "undefined"])
def test_case_14_nothing_or_everything_for_a_list(listed, host):
    listed.told(host, LISTS[host][1])


@pytest.mark.case(14)
def test_case_14_nothing_or_everything_named(listed):
    told_each(listed, EVERYTHING)


@pytest.mark.case(15)
def test_case_15_an_undefined_variable(listed):
    listed.told("undefined", LISTS["undefined"][1])
    told_each(listed, UNDEFINED)


@pytest.mark.case(15)
def test_case_15_an_undefined_variable_behind_a_path(listed):
    listed.refused("/dev/", "not_found")


def test_a_malformed_override_is_no_override(listed):
    told_each(listed, OPTIONS)


@pytest.mark.case(13)
def test_case_13_what_yaml_makes_of_an_unquoted_serial(bench):
    text = "ssd_drives:\n" + "".join(f"- serial: {value}\n" for value in [*TYPES.values(), "1e5"])
    path = Path(bench.folder, "types.yml")
    path.write_text(text)
    outcome = bench.play("-e", f"@{path}")
    for index in range(len(TYPES)):
        outcome.told("rack1-07", f"ssd_drives[{index}]: bad_selector: serial is ")
    assert outcome.output.count("put it in quotes") >= len(TYPES)
    outcome.refused("1e5", "not_found")  # a number for YAML 1.2, a text for the YAML that Ansible reads


# --- one machine, one drive, two names
# ------------------------------------------------------------------------------------------------


@pytest.mark.case(11)
def test_case_11_one_machine_under_two_names(bench):
    outcome = bench.play(entries={"rack1-07": [bench.spare.entry], "alias": [bench.spare.entry]})
    outcome.told("rack1-07", "duplicate: is the same drive as that of alias")
    outcome.told("rack1-07", "same_machine: is the same machine as alias")


@pytest.mark.case(11)
def test_case_11_one_drive_named_twice_or_attached_twice(bench):
    twice, alias = bench.disk("attached twice"), bench.disk("named twice")
    twice.attach()
    link = bench.by_id(alias.path)
    outcome = bench.play(entries=[twice.entry, alias.entry, {"by_id": link}])
    outcome.refused("attached twice", "ambiguous")
    outcome.refused("named twice", "duplicate")
    outcome.refused(link, "duplicate")


# --- drives whose sysfs is a fixture
# --------------------------------------------------------------------------------------------------


def vpd80(serial):
    return b"\0\x80" + len(serial).to_bytes(2, "big") + serial


@pytest.fixture(scope="module")
def server(make_bench):
    """A server with drives whose names and serials are alike, each named as the inventory would."""
    made = FakeServer(make_bench())
    made.nvme("one", "nvme1n1", "SN1")
    made.nvme("ten", "nvme10n1", "SN10")
    made.nvme("twin a", "nvme2n1", "TWIN")
    made.nvme("twin b", "nvme3n1", "TWIN")
    made.nvme("no serial", "nvme4n1", "                    ").entry = {"serial": ""}
    made.nvme("padded", "nvme5n1", "  PADDED            ").entry = {"serial": " PADDED "}
    made.nvme("letter case", "nvme6n1", "abcdef").entry = {"serial": "ABCDEF"}
    made.nvme("first namespace", "nvme7n1", "MULTI", wwid="eui.0025385b71b00001")
    made.nvme("second namespace", "nvme7n2", "MULTI", wwid="eui.0025385b71b00002").entry = {
        "wwn": "eui.0025385b71b00002"
    }
    made.nvme("left", "nvme8n1", "LEFT")
    made.nvme("right", "nvme9n1", "RIGHT")
    made.sata("sda", "sda", "ATA1")
    made.sata("sdaa", "sdaa", "ATA11")
    for name in ("ten", "sdaa"):
        run("mkfs.ext4", "-q", made.bench.disks[name].path)
        made.bench.disks[name].mount()
    made.enter()
    return made


@pytest.fixture(scope="module")
def alike(server):
    return server.bench.play()


@pytest.mark.case(1)
def test_case_1_two_names_that_were_swapped(server):
    """Between preflight and the job, as after a reset of both controllers: each serial is found, but not as the drive
    that was looked at.
    """
    bench = server.bench
    one, other = (
        server.tree.path(f"/sys/devices/pci0000:80/0000:80:01.0/nvme/{name}/serial") for name in ("nvme8", "nvme9")
    )
    swap = ("sh", "-ec", 'mv "$0" "$0.was"; mv "$1" "$0"; mv "$0.was" "$1"', one, other)
    outcome = bench.play_between(swap, entries=[bench.disks[name].entry for name in ("left", "right")])
    for name, node in (("left", "/dev/nvme9n1"), ("right", "/dev/nvme8n1")):
        outcome.refused(name, "identity_changed")
        assert node in outcome.message(name, "identity_changed")


@pytest.mark.case(5)
def test_case_5_a_name_of_two_digits(alike):
    alike.refused("ten", "mounted", "signature", "busy")


@pytest.mark.case(6)
def test_case_6_names_that_begin_like_another(alike):
    alike.refused("sdaa", "mounted", "signature", "busy")
    assert {name: alike.codes(name) for name in ("one", "sda")} == {"one": set(), "sda": set()}


@pytest.mark.case(8)
def test_case_8_serials_that_are_the_same_or_nearly(alike):
    for name in ("twin a", "twin b"):
        alike.refused(name, "ambiguous")
    alike.told("rack1-07", "bad_selector: serial is empty")
    alike.refused("letter case", "not_found")
    assert alike.codes("padded") == set()  # blanks at both ends are no part of a serial


@pytest.mark.case(9)
def test_case_9_a_serial_with_several_namespaces(alike):
    alike.refused("first namespace", "ambiguous")
    assert "shared" not in str(alike.codes("second namespace"))
    assert not alike.codes("second namespace") & {"ambiguous", "not_found"}


CLONE = """#!/bin/sh
exec unshare --uts --mount --propagation private sh -ec '
hostname {name}
mount --bind {boot} /proc/sys/kernel/random/boot_id
mount --bind {machine} /etc/machine-id
exec {python} "$@"' sh "$@"
"""


@pytest.mark.case(12)
def test_case_12_cloned_machines_that_see_one_drive(server):
    """Two machines with one machine id and boot ids of their own: not taken for one, but for two that share a drive."""
    folder = Path(server.bench.folder)
    (folder / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    variables = {}
    for name in ("clone-a", "clone-b"):
        (folder / (name + ".boot")).write_text(f"{name}-0000-4000-8000-000000000000\n")
        python = folder / name
        python.write_text(
            CLONE.format(
                name=name, boot=folder / (name + ".boot"), machine=folder / "machine-id", python=sys.executable
            )
        )
        python.chmod(0o755)
        variables[name] = {"ansible_python_interpreter": str(python)}
    one = [server.bench.disks["one"].entry]
    outcome = server.bench.play(entries={"clone-a": one, "clone-b": one}, variables=variables)
    outcome.told("clone-a", "duplicate: is the same drive as that of clone-b")
    assert "same_machine" not in outcome.output
