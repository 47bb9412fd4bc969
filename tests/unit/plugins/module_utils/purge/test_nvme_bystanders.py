# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A purge of NVMe hits no other namespace, no other controller and no other drive than the one that is held."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, nvme
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.purge.nvme_bed import (
    FORMATS,
    SANITIZES,
    SERIAL,
    SIZE,
)

THEIRS = {"size_bytes": SIZE, "eui64": "0025385b71b004a2"}


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("fna, hit", [(4, False), (5, True), (6, True), (7, True)])
def test_other_namespaces_attached_or_not_are_never_hit(bed, fna, hit, attached):
    drive_ = bed(fna=fna, others={"2": dict(THEIRS, attached=attached)})
    offered = drive_.offers()
    assert all("namespace 2" in offered[method].hits_others for method in SANITIZES)
    assert [bool(offered[method].hits_others) for method in FORMATS] == [hit, hit]
    for method in (*SANITIZES, *(FORMATS if hit else ())):
        with pytest.raises(PurgeError, match="would erase more than this drive") as caught:
            drive_.purge(method)
        assert caught.value.code == "purge_hits_others"
    assert drive_.erasing() == []


def test_a_format_leaves_another_namespace_alone_where_the_drive_can(bed, tmp_path):
    drive_ = bed(others={"2": dict(THEIRS, media=str(tmp_path / "media-2"))})
    before = drive_.other.read_bytes()
    assert drive_.purge("auto")["method"] == "nvme_format_crypto"
    assert drive_.other.read_bytes() == before


def test_a_subsystem_with_another_controller_is_not_sanitized(bed):
    offered = bed(controller_ids=[1, 2]).offers()
    assert (
        "2 controllers" in offered["nvme_sanitize_crypto"].hits_others and not offered["nvme_format_crypto"].hits_others
    )


@pytest.mark.parametrize("oacs, fna, hit", [(0x2, 4, False), (0x2, 6, True), (0x2, 5, True), (0xA, 6, False)])
def test_what_another_controller_keeps_for_itself_is_never_hit(bed, oacs, fna, hit):
    """Without namespace management a controller lists its own namespaces only."""
    offered = bed(controller_ids=[1, 2], cmic=2, oacs=oacs, fna=fna).offers()
    assert "2 controllers" in offered["nvme_sanitize_crypto"].hits_others
    assert [("2 controllers" in offered[method].hits_others) for method in FORMATS] == [hit, hit]


@pytest.mark.parametrize("oacs", [0xA, 0x2])
@pytest.mark.parametrize("cmic, reason", [(0, ""), (2, "nvme list-ctrl")])
def test_a_drive_without_a_list_of_controllers_must_say_that_it_is_alone(bed, cmic, reason, oacs):
    offered = bed(controller_ids=None, cmic=cmic, oacs=oacs).offers()["nvme_sanitize_crypto"]
    assert offered.supported == (not reason) and reason in offered.reason and not offered.hits_others


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sn": "S3EVNX0K100002"}, "its serial is S3EVNX0K100002"),
        ({"eui64": "0025385b71b004ff"}, "its eui64 is 0025385b71b004ff"),
        ({"size_bytes": SIZE * 2}, "its size_bytes is 2097152"),
    ],
)
def test_a_controller_that_means_another_namespace_offers_nothing(bed, change, message):
    drive_ = bed()
    facts = drive_.facts()
    facts["namespaces"]["1"].update({key: value for key, value in change.items() if key != "sn"})
    drive_.write(dict(facts, **{key: value for key, value in change.items() if key == "sn"}))
    offered = drive_.offers()
    assert all(message in offered[method].reason for method in (*SANITIZES, *FORMATS))


def test_a_uuid_has_to_be_told_by_the_controller_too(bed):
    drive_ = bed()
    uuid = "6479a751-2b0c-4fa0-9cbc-2d3d64b5d7a1"
    drive_.host.put("/sys/block/nvme3n1/uuid", uuid + "\n")
    assert "does not report the uuid" in drive_.offers()["nvme_format_crypto"].reason
    facts = drive_.facts()
    facts["namespaces"]["1"].update(uuid=uuid)
    drive_.write(facts)
    assert drive_.offers()["nvme_format_crypto"].supported


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_drive_that_changed_since_it_was_looked_at_is_left_alone(bed, method):
    drive_ = bed()
    work = drive_.work(method=method)
    found = dataclasses.replace(nvme.capabilities(drive_.host, drive_.identity()), namespaces=[1, 2])
    with pytest.raises(PurgeError, match="namespaces changed"):
        methods.METHODS[method].run(work, found)
    assert drive_.erasing() == []


def test_the_held_descriptor_decides_and_not_the_name(bed):
    """The name that the guard saw may be another drive's by now; the device number of what we hold can't."""
    drive_ = bed()
    work = drive_.work(method="nvme_format_crypto")
    found = nvme.capabilities(drive_.host, drive_.identity())
    os.unlink(drive_.host.path("/sys/dev/block/0:0"))
    with pytest.raises(PurgeError, match="cannot be identified"):
        methods.METHODS["nvme_format_crypto"].run(work, found)
    assert drive_.erasing() == []


def test_of_several_controllers_the_one_that_means_the_namespace_is_taken(bed):
    drive_ = bed()
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys7"
    mine = "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0"
    other = dict(
        drive_.facts(),
        controller="nvme1",
        namespaces={"1": {"size_bytes": SIZE, "eui64": "0025385b71b004ff"}},
        sn=SERIAL,
    )
    drive_.state.write_text(json.dumps({"drives": [other, drive_.facts()]}))
    for name in ("nvme1", "nvme0"):
        drive_.host.link(subsystem + "/" + name, mine[:-1] + name[-1])
    drive_.host.put(mine[:-1] + "1/transport", "pcie\n")
    os.unlink(drive_.host.path(mine + "/block/nvme3n1/device"))
    drive_.host.link(mine + "/block/nvme3n1/device", subsystem)
    drive_.host.link("/sys/class/nvme-subsystem/nvme-subsys7", subsystem)
    found = nvme.capabilities(drive_.host, drive_.identity())
    assert (found.controller, found.controllers) == ("/dev/nvme0", 2)
    os.unlink(drive_.host.path(subsystem + "/nvme0"))
    with pytest.raises(PurgeError, match="/dev/nvme1, namespace 1 is not /dev/nvme3n1: its eui64 is 0025385b71b004ff"):
        nvme.capabilities(drive_.host, drive_.identity())


def test_another_kind_of_drive_is_none_of_its_business(bed):
    drive_ = bed()
    assert nvme.capabilities(drive_.host, dataclasses.replace(drive_.identity(), transport="nvme-tcp")) is None
    assert drive_.argvs == []
