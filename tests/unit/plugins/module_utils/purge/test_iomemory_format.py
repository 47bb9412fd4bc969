# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from dataclasses import replace

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import iomemory_format, methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.vendor_tools import CardFormat
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory

IDENTITY = Identity(kernel_name="fiob", serial="C1", size_bytes=1 << 20, path="/dev/fiob", logical_block_size_bytes=512)
AUTO = PlannedPurge("auto")
(METHOD,) = iomemory_format.METHODS


class Work:
    """What `run` uses of purge_method.Work; `log` is shared with the host's commands."""

    def __init__(self, host, options=AUTO):
        self.host, self.identity, self.options = host, IDENTITY, options
        self.size_bytes, self.kernel_name = IDENTITY.size_bytes, IDENTITY.kernel_name
        self.sleep = lambda _seconds: None

    def tick(self, share):
        pass

    @contextlib.contextmanager
    def lend(self, may_change=()):
        self.host.commands.append(["close", *may_change])
        try:
            yield
        finally:
            self.host.commands.append(["open"])


@pytest.fixture
def server(emulated, tmp_path, monkeypatch):
    """Two cards; the second one, fiob at /dev/fct1, is meant."""
    monkeypatch.setattr(iomemory_format, "APPEAR_S", 0.0)
    media = tmp_path / "media"
    media.write_bytes(b"old data" * 4096)
    host = emulated(cards=[emulator.card(0, "C0"), emulator.card(1, "C1", media=str(media))])
    host.block("fiob", "251:16", "")
    host.media = media
    return host


def changing(host):
    """The commands that change something, in order."""
    return [command[0] for command in host.commands if command[0] not in ("fio-status", "wipefs", "blkid")]


def test_it_detaches_formats_and_attaches_while_the_drive_is_closed(server):
    found = iomemory_format.capabilities(server, IDENTITY)
    assert METHOD.supported(found) == ""
    options = PlannedPurge("auto", iomemory_sector_bytes=4096, iomemory_size_pct=80)
    assert METHOD.commands(found, options) == [
        ["fio-detach", "/dev/fct1"],
        ["fio-format", "-y", "-b", "4096", "-s", "80%", "/dev/fct1"],
        ["fio-attach", "/dev/fct1"],
    ]
    done = METHOD.run(Work(server, options), found)
    assert changing(server) == ["close", "fio-detach", "fio-format", "fio-attach", "open"]
    assert [
        command for command in server.commands if command[0].startswith("fio-") and command != ["fio-status", "-a"]
    ] == METHOD.commands(found, options)
    assert done.lba_format_before == CardFormat(512, 1205000000000, 100)
    assert (done.lba_format_after.sector_bytes, done.lba_format_after.size_pct) == (4096, 80)
    assert set(server.media.read_bytes()) == {0}
    with server.state() as machine:
        assert [card["formats"] for card in machine["iomemory"]["cards"]] == [0, 1]


def test_without_options_the_format_stays(server):
    with server.state() as machine:
        machine["iomemory"]["cards"][1].update(sector_bytes=4096, size_bytes=1084499996672)
    found = iomemory_format.capabilities(server, IDENTITY)
    assert METHOD.commands(found, AUTO)[1] == ["fio-format", "-y", "-b", "4096", "-s", "90%", "/dev/fct1"]
    assert METHOD.commands(found, replace(AUTO, lba_size_bytes=512))[1][3] == "512"


@pytest.mark.parametrize(
    "options, says",
    [({"iomemory_sector_bytes": 520}, "sector_bytes 520"), ({"iomemory_size_pct": 120}, "size_pct 120")],
)
def test_bad_options_are_refused_before_anything_is_detached(server, options, says):
    found, options = iomemory_format.capabilities(server, IDENTITY), replace(AUTO, **options)
    with pytest.raises(PurgeError, match=says):
        METHOD.run(Work(server, options), found)
    assert "fio-detach" not in changing(server)
    (offer,) = [offer for offer in methods.offers(server, IDENTITY, options) if offer.method == METHOD.name]
    assert not offer.supported and says in offer.reason


@pytest.mark.parametrize(
    "change, says, commands",
    [
        ({"busy": True}, "in use", ["close", "fio-detach", "open"]),
        ({"format_fails": True}, "format failed", ["close", "fio-detach", "fio-format", "fio-attach", "open"]),
        ({"attach_fails": True}, "failed to attach", ["close", "fio-detach", "fio-format", "fio-attach", "open"]),
    ],
)
def test_a_failed_step_is_told_and_the_card_attached_again(server, change, says, commands):
    with server.state() as machine:
        machine["iomemory"]["cards"][1].update(change)
    found = iomemory_format.capabilities(server, IDENTITY)
    with pytest.raises(PurgeError, match=says):
        METHOD.run(Work(server), found)
    assert changing(server) == commands
    assert iomemory.find(server, "C1").state == ("detached" if "attach_fails" in change else "attached")


@pytest.mark.parametrize(
    "change, says",
    [
        ({"vsu": "fioz"}, "C1 as fioz"),
        ({"serial": "X"}, "no cards with the serial C1"),
        ({"attached": False}, "C1 as None"),
    ],
)
def test_a_card_that_is_not_certain_is_not_formatted(server, change, says):
    found = iomemory_format.capabilities(server, IDENTITY)
    with server.state() as machine:
        machine["iomemory"]["cards"][1].update(change)
    with pytest.raises(PurgeError, match=says):
        iomemory_format.capabilities(server, IDENTITY)
    with pytest.raises(PurgeError):
        METHOD.run(Work(server), found)
    assert changing(server) == []


def test_a_control_device_that_moved_is_not_formatted(server):
    card = iomemory.find(server, "C1")
    with pytest.raises(PurgeError, match="was /dev/fct7 and is /dev/fct1"):
        iomemory_format.reformat(server, replace(card, control="/dev/fct7"), 512, 100, 60)
    assert changing(server) == []


def test_a_card_that_does_not_come_back_is_told(server):
    found = iomemory_format.capabilities(server, IDENTITY)
    work = Work(server)
    gone = server.exists
    server.exists = lambda path: path != "/sys/block/fiob" and gone(path)
    with pytest.raises(PurgeError, match="is not back"):
        METHOD.run(work, found)


def test_a_card_in_trouble_is_not_supported(server):
    with server.state() as machine:
        machine["iomemory"]["cards"][1]["bus_errors"] = "correctable"
    found = iomemory_format.capabilities(server, IDENTITY)
    assert METHOD.supported(found) == ""
    assert "minimal" in METHOD.supported(replace(found, trouble="minimal mode"))
    assert "format it once" in METHOD.supported(replace(found, sector_bytes=None))


def test_it_is_what_auto_takes(server):
    assert (
        methods.choose("auto", methods.offers(server, replace(IDENTITY, max_discard_bytes=4096), AUTO)).method
        == "iomemory_format"
    )
    assert changing(server) == []
