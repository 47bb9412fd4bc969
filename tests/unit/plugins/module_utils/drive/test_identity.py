# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity


def test_serials_are_compared_as_a_whole(fake):
    fake.nvme("nvme1n1", "259:1", "SN1  ")
    fake.nvme("nvme10n1", "259:2", "SN10")
    assert identity.find(fake, parse({"serial": "SN1"})) == ["nvme1n1"]
    assert identity.find(fake, parse({"serial": " SN10 "})) == ["nvme10n1"]
    for other in ("SN", "sn1", "SN1*", "N1", "SN[0-9]", "all"):
        assert identity.find(fake, parse({"serial": other})) == []


def test_an_empty_serial_matches_nothing(fake):
    fake.nvme("nvme0n1", "259:1", "   ")
    assert identity.serial(fake, "nvme0n1") is None


def test_two_drives_with_one_serial_are_both_found(fake):
    fake.nvme("nvme0n1", "259:1", "SAME")
    fake.nvme("nvme1n1", "259:2", "SAME")
    assert identity.find(fake, parse({"serial": "SAME"})) == ["nvme0n1", "nvme1n1"]


@pytest.mark.parametrize(
    "spelling",
    [
        "eui.0025385B71B00EB0",
        "0x0025385b71b00eb0",
        "0025385b71b00eb0",
        "00 25 38 5b 71 b0 0e b0",
        "nvme-eui.0025385b71b00eb0",
        "wwn-0x0025385b71b00eb0",
    ],
)
def test_a_wwn_is_a_number_however_it_is_written(fake, spelling):
    fake.nvme("nvme0n1", "259:1", "A", wwid="eui.0025385b71b00eb0")
    fake.nvme("nvme1n1", "259:2", "B", wwid="eui.0025385b71b00eb1")
    assert identity.find(fake, parse({"wwn": spelling})) == ["nvme0n1"]


def test_every_name_of_a_namespace_counts_but_zeros_do_not(fake):
    fake.nvme(
        "nvme0n1", "259:1", "A", nguid="00000000-0000-0000-0000-000000000000", eui="00 25 38 5b 71 b0 0e b0", uuid=""
    )
    assert identity.find(fake, parse({"wwn": "eui.0025385b71b00eb0"})) == ["nvme0n1"]
    assert identity.find(fake, parse({"wwn": "uuid.11111111-2222-3333-4444-555555555555"})) == []
    assert identity.wwn(fake, "nvme0n1") is None  # no wwid of its own: unknown, not made up


def test_scsi_serial_comes_from_its_page_and_only_its_length(fake):
    fake.disk("sda", "8:0", device__vpd_pg80=b"\x00\x80\x00\x08  S3R1AL" + b"garbage")
    assert identity.serial(fake, "sda") == "S3R1AL"


def test_udev_is_asked_last(fake):
    fake.disk("sda", "8:0")
    fake.put(
        "/run/udev/data/b8:0",
        "S:disk/by-id/x\nE:ID_SERIAL_SHORT=FROMUDEV\nE:ID_WWN=0x5000c500a1b2c3d4\n"
        "E:ID_MODEL_ENC=Big\\x20Disk\\x20\\x20\n",
    )
    assert identity.find(fake, parse({"serial": "FROMUDEV"})) == ["sda"]
    assert identity.find(fake, parse({"wwn": "naa.5000C500A1B2C3D4"})) == ["sda"]
    assert identity.identity(fake, "sda").model == "Big Disk"


@pytest.mark.parametrize(
    "claims, expected",
    [
        ({}, ["sda"]),
        ({"8:0": "ata-X"}, ["sda"]),
        (
            {"8:0": "ata-X", "8:16": "ata-X"},
            ["sda", "sdb"],
        ),  # two drives with one serial: the link may lead to the other after the next boot
        ({"8:16": "ata-X"}, ["sda", "sdb"]),  # a link that is stale, or was made by hand
        ({"8:0": "ata-X", "8:16": "ata-X-part1"}, ["sda"]),
        ({"8:0": "ata-Y"}, []),  # it leads to a drive that came after: udev knows no such name of it
    ],
)
def test_a_link_that_udev_gives_another_drive_too_is_ambiguous(fake, claims, expected):
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        fake.put(f"/sys/class/block/{name}/dev", number)
    fake.link("/dev/disk/by-id/ata-X", "/dev/sda")
    for number, link in claims.items():
        fake.put("/run/udev/data/b" + number, f"I:1\nS:disk/by-id/{link}\nE:ID_BUS=ata\n")
    assert identity.find(fake, parse({"by_id": "ata-X"})) == expected


@pytest.mark.parametrize("selector", [{"serial": "OLD"}, {"wwn": "0x5000c500a1b2c3d4"}, {"by_id": "ata-OLD"}])
def test_what_udev_knows_of_the_drive_before_names_no_other_drive(fake, selector):
    """A drive was pulled and another put in its place, under its name, while udev had yet to hear of it."""
    fake.disk("sda", "8:0", diskseq="7")
    fake.link("/dev/disk/by-id/ata-OLD", "/dev/sda")
    known = "S:disk/by-id/ata-OLD\nS:disk/by-diskseq/{}\nE:ID_SERIAL_SHORT=OLD\nE:ID_WWN=0x5000c500a1b2c3d4\n"
    fake.put("/run/udev/data/b8:0", known.format(7))
    assert identity.find(fake, parse(selector)) == ["sda"]
    fake.put("/run/udev/data/b8:0", known.format(3))
    assert identity.find(fake, parse(selector)) == []
    seen = identity.identity(fake, "sda")
    assert (seen.serial, seen.wwn, seen.model) == (None, None, None)


def test_a_name_that_udev_tells_counts_only_where_the_kernel_has_none(fake):
    path = "/sys/devices/pci0000:00/0000:00:03.0/host4"
    block = fake.disk("sda", "8:0", path)
    fake.link(block + "/device", path)
    fake.put("/run/udev/data/b8:0", "E:ID_WWN=0x5000c500a1b2c3d4\n")
    assert identity.find(fake, parse({"wwn": "0x5000c500a1b2c3d4"})) == ["sda"]
    fake.put(path + "/wwid", "t10.ATA     EXAMPLE SN7")
    assert identity.find(fake, parse({"wwn": "0x5000c500a1b2c3d4"})) == ["sda"]
    fake.put(path + "/wwid", "naa.5000c500ffffffff")
    assert identity.find(fake, parse({"wwn": "0x5000c500a1b2c3d4"})) == []


def test_by_id_follows_the_link_to_a_disk_or_a_partition(fake):
    block = fake.disk("sda", "8:0")
    fake.partition(block, "sda1", "8:1")
    fake.link("/dev/disk/by-id/ata-X", "/dev/sda")
    fake.link("/dev/disk/by-id/ata-X-part1", "/dev/sda1")
    fake.link("/dev/disk/by-id/ata-GONE", "/dev/sdz")
    fake.link("/dev/disk/by-id/odd", "/dev/null")
    assert identity.find(fake, parse({"by_id": "ata-X"})) == ["sda"]
    assert identity.find(fake, parse({"by_id": "/dev/disk/by-id/ata-X"})) == ["sda"]
    assert identity.find(fake, parse({"by_id": "ata-X-part1"})) == ["sda1"]
    for name in ("ata-GONE", "odd", "ata-*", "nothing"):
        assert identity.find(fake, parse({"by_id": name})) == []


def test_a_loop_device_is_found_by_its_file_and_only_when_attached(fake):
    fake.loop(0)
    fake.loop(1, "/srv/a.img")
    fake.loop(2, "/srv/a.img.old")
    fake.loop(3, "/srv/b.img")
    fake.loop(4, "/srv/b.img")
    fake.put("/srv/a.img", "")
    fake.link("/srv/link.img", "/srv/a.img")
    assert identity.find(fake, parse({"backing_file": "/srv/a.img"})) == ["loop1"]
    assert identity.find(fake, parse({"backing_file": "/srv/link.img"})) == ["loop1"]
    assert identity.find(fake, parse({"backing_file": "/srv/b.img"})) == ["loop3", "loop4"]
    assert identity.whole_drives(fake) == ["loop1", "loop2", "loop3", "loop4"]


def test_only_whole_drives_are_drives(fake):
    for index, name in enumerate(
        [
            "dm-0",
            "md127",
            "zram0",
            "ram0",
            "sr0",
            "fd0",
            "zd0",
            "drbd1",
            "bcache0",
            "mmcblk0boot0",
            "mmcblk0",
            "sda",
            "vda",
        ]
    ):
        fake.disk(name, f"9:{index}")
    fake.disk("nvme0c0n1", "259:9", hidden="1")
    fake.disk("nbd0", "43:0", size=0)
    assert identity.whole_drives(fake) == ["mmcblk0", "sda", "vda"]


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ({"metadata_bytes": "8"}, 8),
        ({"metadata_bytes": "0", "integrity/format": "nop"}, 0),
        ({"integrity/format": "none"}, 0),
        ({"integrity/format": "T10-DIF-TYPE1-CRC"}, 8),
        ({"integrity/format": "EXT-DIF-TYPE1-CRC64"}, 16),
        ({"integrity/format": "nop"}, None),
        ({}, None),
    ],
)
def test_the_metadata_of_a_block(fake, files, size):
    fake.nvme("nvme0n1", "259:3", "SN")
    for name, text in files.items():
        fake.put(f"/sys/class/block/nvme0n1/{name}", text + "\n")
    assert identity.identity(fake, "nvme0n1").metadata_bytes == size


def test_identity_of_an_nvme_drive(fake):
    fake.nvme("nvme0n1", "259:3", "SN", wwid="eui.0025385b71b00eb0")
    assert identity.identity(fake, "nvme0n1") == Identity(
        serial="SN",
        wwn="eui.0025385b71b00eb0",
        model="EXAMPLE 9000",
        firmware="FW1",
        size_bytes=32 << 20,
        logical_block_size_bytes=512,
        metadata_bytes=None,
        physical_block_size_bytes=4096,
        minimum_io_size_bytes=16384,
        transport="nvme",
        numa_node=1,
        diskseq=3,
        kernel_name="nvme0n1",
        path="/dev/nvme0n1",
        major_minor="259:3",
        backing_file=None,
        backing=None,
        max_discard_bytes=2147450880,
        queue_depth=1023,
        rotational=False,
        io_poll=None,
    )


@pytest.mark.parametrize(
    "transports, nodes, transport, node",
    [
        (["pcie", "pcie"], ["0", "0"], "nvme", 0),
        (["pcie", "tcp"], ["0", "1"], "nvme-tcp", None),
        (["tcp", "rdma"], ["-1", "-1"], "nvme-rdma+tcp", None),
        (["pcie", ""], ["0", "0"], None, 0),
        (["tcp"], ["-1"], "nvme-tcp", None),
    ],
)
def test_native_multipath_asks_every_controller(fake, transports, nodes, transport, node):
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    fake.put(subsystem + "/serial", "SN")
    for index, (kind, place) in enumerate(zip(transports, nodes)):
        controller = f"/sys/devices/pci{index}/nvme/nvme{index + 3}"  # a controller's number is not its namespace's
        for file, content in (("transport", kind), ("numa_node", place), ("sqsize", str(127 + index))):
            fake.put(f"{controller}/{file}", content)
        fake.link(f"{subsystem}/nvme{index + 3}", controller)
    block = fake.disk("nvme0n1", "259:0", subsystem)
    fake.link(block + "/device", subsystem)
    seen = identity.identity(fake, "nvme0n1")
    assert (seen.serial, seen.transport, seen.numa_node, seen.queue_depth) == ("SN", transport, node, 127)


def ata_page(model, firmware):
    """VPD page 89h with an IDENTIFY DEVICE, whose texts have their bytes swapped."""

    def words(text, size):
        padded = text.ljust(size).encode()
        return b"".join(padded[i + 1 : i + 2] + padded[i : i + 1] for i in range(0, size, 2))

    return bytes(60 + 46) + words(firmware, 8) + words(model, 40)


@pytest.mark.parametrize(
    "path, vendor, transport",
    [
        ("/sys/devices/pci0/ata3/host2/target2:0:0/2:0:0:0", "ATA", "sata"),
        ("/sys/devices/pci0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0", "SEAGATE", "sas"),
        ("/sys/devices/pci0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0", "ATA", "sata"),
        ("/sys/devices/pci0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0", "WD", "usb"),
        ("/sys/devices/platform/host9/session1/target9:0:0/9:0:0:0", "LIO-ORG", "iscsi"),
        ("/sys/devices/pci0/virtio2", None, "virtio"),
        ("/sys/devices/pci0/host0/target0:2:0/0:2:0:0", "AVAGO", None),  # a RAID controller's volume: unknown, no guess
    ],
)
def test_transport_is_read_from_the_place_in_sysfs(fake, path, vendor, transport):
    fake.put(path + "/vendor", vendor or "")
    block = fake.disk("sda", "8:0", path)
    fake.link(block + "/device", path)
    assert identity.identity(fake, "sda").transport == transport


def test_the_full_ata_model_and_firmware_are_read(fake):
    page = ata_page("EXAMPLE SSD 5000 PRO 960GB", "REV1.23")
    fake.disk(
        "sda",
        "8:0",
        device__model="EXAMPLE SSD 5000",
        device__rev="REV1",
        device__vpd_pg89=page,
        device__queue_depth="32",
    )
    seen = identity.identity(fake, "sda")
    assert (seen.model, seen.firmware, seen.queue_depth) == ("EXAMPLE SSD 5000 PRO 960GB", "REV1.23", 32)


def test_what_sysfs_does_not_tell_is_none(fake):
    fake.put("/sys/block/sdz/size", "junk")
    seen = identity.identity(fake, "sdz")
    assert {key for key, value in vars(seen).items() if value is not None} == {"kernel_name", "path"}


def test_the_best_selector_is_the_first_that_names_one_drive(fake):
    fake.nvme("nvme0n1", "259:0", "SAME", wwid="eui.0025385b71b00eb0")
    fake.nvme("nvme1n1", "259:1", "SAME")
    fake.link("/dev/disk/by-id/nvme-second", "/dev/nvme1n1")
    fake.nvme("nvme2n1", "259:2", "0123")
    fake.disk("vda", "254:0")
    fake.loop(0, "/srv/a.img")
    best = [identity.best_entry(fake, name) for name in ("nvme0n1", "nvme1n1", "nvme2n1", "vda", "loop0")]
    assert [entry and entry.given for entry in best] == [
        {"wwn": "eui.0025385b71b00eb0"},
        {"by_id": "nvme-second"},
        {"serial": "0123"},
        None,
        {"backing_file": "/srv/a.img"},
    ]
