# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 35 to 40 of docs/wrong-drives.md, and what of 21, 22, 26 and 27 needs another sysfs: drives that are in no
state to be erased, or none.
"""

from __future__ import annotations

import pytest
from fake_server import FakeServer, vpd80
from wrong_drive import MIB

SANITIZE = {
    "running": {"nvme": {"sprog": 21845, "sstat": {"status": "(2) Sanitize in Progress."}}},
    "failed": {"nvme": {"sprog": 65535, "sstat": {"status": "(3) Most Recent Sanitize Command Failed."}}},
}
USB = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-%d/host%d"


def hex_dump(data):
    """As nvme-cli prints what a drive returned: 16 bytes a line (nvme-print, d)."""
    rows = [data[start : start + 16] for start in range(0, len(data), 16)]
    header = "       " + "  ".join(f"{column:x}" for column in range(16)) + "\n"
    return (
        "NVME Security Receive Command Success\n"
        + header
        + "".join("{:04x}: {}\n".format(16 * row, data.hex(" ")) for row, data in enumerate(rows))
    )


def sg_dump(data):
    """As sg_raw prints it, to stderr."""
    rows = "".join(
        " {:02x}     {}\n".format(start, data[start : start + 16].hex(" ")) for start in range(0, len(data), 16)
    )
    return f"SCSI Status: Good \n\nReceived {len(data)} bytes of data:\n{rows}"


def discovery(flags):
    """TCG Level 0 discovery with the Locking feature: 01h supported, 02h enabled, 04h locked, 10h MBR enabled, 20h MBR
    done.
    """
    feature = (2).to_bytes(2, "big") + b"\x10\x0c" + bytes([flags]) + bytes(11)
    return (44 + len(feature)).to_bytes(4, "big") + bytes(44) + feature


PROTOCOLS = bytes(6) + (2).to_bytes(2, "big") + bytes([0, 1])
OPAL = {"opal locked": 0x07, "opal mbr shadow": 0x13}
SECURITY = {
    "ata enabled": {"password": "x"},
    "ata locked": {"password": "x", "locked": True},
    "ata attempts expired": {"password": "x", "locked": True, "attempts": 0},
}


@pytest.fixture(scope="module")
def bench(make_bench):
    bench = make_bench()
    server = FakeServer(bench)
    server.nvme("plain", "nvme0n1", "PLAIN")
    server.sata("plain sata", "sda", "PLAINATA")
    server.sata("frozen", "sdb", "FROZEN", security={"frozen": True}, sanitize={"operations": []})
    _sanitize(server)
    _security(server)
    _read_only(server)
    _no_capacity(server)
    _no_local_drive(server)
    _used(server)
    server.enter()
    return bench


def _sanitize(server):
    for number, (state, log) in enumerate(SANITIZE.items(), start=1):
        server.nvme("nvme sanitize " + state, f"nvme{number}n1", f"SANITIZE{number}", {"sanitize-log": log})
    server.sata(
        "ata sanitize running",
        "sdc",
        "ATASAN",
        sanitize={"state": "SD2", "running": "block_erase", "share": 0.1, "step": 0.0},
    )
    server.sata("ata sanitize failed", "sdd", "ATAFAIL", sanitize={"state": "SD3"})
    server.sas("scsi sanitize failed", "sde", "SASFAIL", sense=[3, 0x31, 0x03])
    server.sas("scsi sanitize running", "sdf", "SASSAN", sense=[2, 0x04, 0x1B])


def _security(server):
    for number, (label, security) in enumerate(SECURITY.items()):
        server.sata(label, "sdg{}".format("abc"[number]), f"SECURITY{number}", security=security)
    for number, (label, flags) in enumerate(OPAL.items(), start=3):
        server.nvme(label, f"nvme{number}n1", f"OPAL{number}", {"id-ctrl": {"oacs": 0x7}})
        for protocol, data in ((0, PROTOCOLS), (1, discovery(flags))):
            server.answer(
                "nvme",
                "security-recv",
                f"/dev/nvme{number}",
                f"--secp={protocol}",
                stdout=hex_dump(data.ljust(512, b"\0")),
            )
    server.sata("opal sata", "sdh", "OPALATA")
    for protocol, data in (("01", discovery(0x07)), ("00", PROTOCOLS)):  # 00 is in each of the commands
        server.answer("sg_raw", "/dev/sdh", protocol, stderr=sg_dump(data.ljust(512, b"\0")))


def _read_only(server):
    server.nvme("kernel's flag", "nvme5n1", "RO", ro="1")
    server.nvme("write-protected namespace", "nvme6n1", "WP", {"id-ns": {"nsattr": 1}})
    server.nvme("critical warning", "nvme7n1", "WARNING", {"smart-log": {"critical_warning": 8}})


def _no_capacity(server):
    server.bench.disk("empty", size_bytes=0)
    server.nvme("placeholder", "nvme13n1", "PLACEHOLDER", size_bytes=8 * MIB)
    server.nvme("no blocks", "nvme8n1", "NCAP", {"id-ns": {"ncap": 0}})
    server.sata("recovery mode", "sdi", "SATAFIRM", files={"device__model": "SATAFIRM   S11"})


def _no_local_drive(server):
    server.disk("usb", "sdj", USB % (1, 20), {"serial": "USB"}, **vpd80("USB"))
    server.sata("removable", "sdk", "REMOVABLE", files={"removable": "1"})
    media = {"device__vendor": "iDRAC", "device__model": "Virtual Floppy"}
    server.disk("virtual media", "sdl", USB % (2, 21), {"serial": "MEDIA"}, **media, **vpd80("MEDIA"))
    server.sas("raid level", "sdm", "HPSA", files={"device__raid_level": "RAID-5"})
    server.sas("raid model", "sdn", "PERC", files={"device__vendor": "DELL", "device__model": "PERC H740P Mini"})


def _used(server):
    tree = server.tree
    for label, name in (
        ("crypt", "nvme9n1"),
        ("zram writeback", "nvme10n1"),
        ("nvmet", "nvme11n1"),
        ("lio", "nvme12n1"),
    ):
        server.nvme(label, name, label.upper())
    (server.root / server.bench.disks["crypt"].block[1:] / "holders" / "dm-0").mkdir()
    tree.disk("dm-0", "250:0", "/sys/devices/virtual")
    tree.disk("zram0", "249:0", "/sys/devices/virtual", backing_dev="/dev/nvme10n1")
    tree.put("/sys/kernel/config/nvmet/subsystems/nqn/namespaces/1/device_path", "/dev/nvme11n1\n")
    tree.put("/sys/kernel/config/target/core/iblock_0/disk/udev_path", "/dev/nvme12n1\n")
    tree.put("/sys/bus/pci/drivers/vfio-pci/0000:81:00.0/class", "0x010802\n")


@pytest.fixture(scope="module")
def outcome(bench):
    return bench.play(entries=[*(disk.entry for disk in bench.disks.values()), {"serial": "GIVEN-TO-A-VM"}])


def test_a_drive_in_order_is_no_finding(outcome):
    fine = ("spare", "plain", "plain sata", "frozen")
    assert {name: outcome.codes(name) for name in fine} == dict.fromkeys(fine, set())
    outcome.nothing_happened()


@pytest.mark.case(21)
def test_case_21_the_writeback_of_zram(outcome):
    outcome.refused("zram writeback", "held")


@pytest.mark.case(22)
def test_case_22_an_active_mapping_is_on_it(outcome):
    outcome.refused("crypt", "held")


@pytest.mark.case(26)
@pytest.mark.parametrize("name", ["nvmet", "lio"])
def test_case_26_exported_to_other_hosts(outcome, name):
    outcome.refused(name, "exported")


@pytest.mark.case(27)
def test_case_27_given_to_user_space(outcome):
    outcome.refused("GIVEN-TO-A-VM", "not_found")
    assert "0000:81:00.0 (vfio-pci)" in outcome.message("GIVEN-TO-A-VM", "not_found")


@pytest.mark.case(35)
@pytest.mark.parametrize("name", ["nvme sanitize running", "ata sanitize running", "scsi sanitize running"])
def test_case_35_a_sanitize_that_is_not_ours(outcome, name):
    outcome.refused(name, "sanitize_running")


@pytest.mark.case(35)
@pytest.mark.parametrize("name", ["nvme sanitize failed", "ata sanitize failed", "scsi sanitize failed"])
def test_case_35_a_sanitize_that_failed(outcome, name):
    outcome.refused(name, "sanitize_failed")


@pytest.mark.case(36)
@pytest.mark.parametrize("name", SECURITY)
def test_case_36_ata_security(outcome, name):
    outcome.refused(name, "ata_security")


@pytest.mark.case(36)
def test_case_36_frozen_where_the_purge_needs_security_erase(bench):
    outcome = bench.play(
        "-e", "purge_method=ata_security_erase", playbook="purge", entries=[bench.disks["frozen"].entry]
    )
    assert outcome.codes("frozen") & {"ata_security", "purge_unsupported"}
    outcome.nothing_happened()


@pytest.mark.case(37)
@pytest.mark.parametrize("name", [*OPAL, "opal sata"])
def test_case_37_opal(outcome, name):
    outcome.refused(name, "opal_locked")


@pytest.mark.case(38)
@pytest.mark.parametrize("name", ["kernel's flag", "write-protected namespace", "critical warning"])
def test_case_38_read_only(outcome, name):
    outcome.refused(name, "read_only")


@pytest.mark.case(39)
@pytest.mark.parametrize("name", ["empty", "placeholder", "no blocks", "recovery mode"])
def test_case_39_no_capacity_or_a_placeholder(outcome, name):
    outcome.refused(name, "no_capacity")


@pytest.mark.case(40)
@pytest.mark.parametrize(
    "name, codes",
    [
        # An override lifts the transport, never what else is asked of such a drive; here nobody answers.
        ("usb", ["transport", "probe_failed"]),
        ("removable", ["removable"]),
        ("virtual media", ["transport", "removable", "probe_failed"]),
        ("raid level", ["raid_volume"]),
        ("raid model", ["raid_volume"]),
    ],
)
def test_case_40_no_drive_of_its_own(outcome, name, codes):
    outcome.refused(name, *codes)
