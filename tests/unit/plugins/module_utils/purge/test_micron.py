# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

"""Purging a P320h or P420m: the framework's Work with a stand-in for the held drive, rssdm by its emulator."""

import contextlib
from dataclasses import replace

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, micron
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Done, PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge

IDENTITY = Identity(
    kernel_name="rssda", serial="S1", size_bytes=1 << 20, path="/dev/rssda", logical_block_size_bytes=512
)
AUTO = PlannedPurge("auto")
ERASE = ["rssdm", "-X", "-p", "ffff", "-n", "1"]


class Work:
    """What `run` uses of purge_method.Work."""

    def __init__(self, host, identity):
        self.host, self.identity, self.options = host, identity, AUTO
        self.size_bytes = identity.size_bytes
        self.sleep = lambda _seconds: None
        self.closed = []

    def tick(self, share):
        pass

    def command(self, argv, timeout, stdin=None, share=None):
        return self.host.run(argv, timeout_s=timeout, stdin=stdin)

    @contextlib.contextmanager
    def lend(self, may_change=()):
        self.closed.append(tuple(may_change))
        yield


@pytest.fixture
def server(emulated, tmp_path):
    """A P420m that is the second of rssdm's list, with a file for its media."""
    media = tmp_path / "media"
    media.write_bytes(b"old data" * 4096)
    host = emulated(
        rssdm=[emulator.p420m(0, "OTHER", pci="09:00.0"), emulator.p420m(1, "S1", pci="04:00.0", media=str(media))]
    )
    host.block("rssda", "252:0", "04:00.0")
    host.media = media
    return host


def erases(host):
    return [command for command in host.commands if command[1] == "-X"]


def test_it_erases_the_drive_with_that_serial_number(server):
    found = micron.capabilities(server, IDENTITY)
    assert (found.drive_id, found.family, found.pci_address) == ("1", "P420m", "04:00.0")
    (method,) = micron.METHODS
    assert method.supported(found) == "" and method.commands(found, AUTO) == [ERASE]
    assert method.run(Work(server, IDENTITY), found) == Done()
    assert erases(server) == [ERASE] and set(server.media.read_bytes()) == {0}
    with server.state() as machine:
        assert [drive["erases"] for drive in machine["rssdm"]["drives"]] == [0, 1]


def test_it_is_what_auto_takes(server):
    offered = methods.offers(server, replace(IDENTITY, max_discard_bytes=4096), AUTO)
    assert methods.choose("auto", offered).method == "micron_rssdm"
    assert erases(server) == []


@pytest.mark.parametrize("name", ["sda", "nvme0n1", "fioa", "rssda1"])
def test_other_drives_are_not_its_business(server, name):
    assert micron.capabilities(server, replace(IDENTITY, kernel_name=name)) is None
    assert server.commands == []


@pytest.mark.parametrize(
    "change, says",
    [
        ({"pci": "05:00.0"}, "the kernel has rssda at 0000:04:00.0"),
        ({"pci": ""}, "not stated"),
        ({"serial": "S2"}, "no drives with the serial S1"),
        ({"serial": "OTHER"}, "no drives with the serial S1"),
    ],
)
def test_a_drive_that_is_not_certain_is_not_erased(server, change, says):
    before = micron.capabilities(server, IDENTITY)
    with server.state() as machine:
        machine["rssdm"]["drives"][1].update(change)
    with pytest.raises(PurgeError, match=says):
        micron.capabilities(server, IDENTITY)
    with pytest.raises(PurgeError, match=says):
        micron.METHODS[0].run(Work(server, IDENTITY), before)
    assert erases(server) == [] and b"old data" in server.media.read_bytes()


def test_two_drives_with_one_serial_number_are_not_erased(server):
    with server.state() as machine:
        machine["rssdm"]["drives"][0]["serial"] = "S1"
    with pytest.raises(PurgeError, match="lists 2 drives"):
        micron.capabilities(server, IDENTITY)


def test_an_id_that_moved_since_the_plan_stops_it(server):
    found = micron.capabilities(server, IDENTITY)
    with server.state() as machine:
        machine["rssdm"]["drives"].reverse()
        for number, one in enumerate(machine["rssdm"]["drives"]):
            one["id"] = number
    with pytest.raises(PurgeError, match="list changed .drive_id."):
        micron.METHODS[0].run(Work(server, IDENTITY), found)
    assert erases(server) == []


def test_a_failed_erase_is_told(server):
    with server.state() as machine:
        machine["rssdm"]["drives"][1]["erase_fails"] = True
    found = micron.capabilities(server, IDENTITY)
    with pytest.raises(PurgeError, match="secure erase failed: .*ended with 8"):
        micron.METHODS[0].run(Work(server, IDENTITY), found)


def test_another_model_is_not_supported(server):
    with server.state() as machine:
        machine["rssdm"]["drives"][1]["model"] = "Micron 9100"
    (offer,) = [offer for offer in methods.offers(server, IDENTITY, AUTO) if offer.method == "micron_rssdm"]
    assert not offer.supported and "neither" in offer.reason and offer.commands == []
