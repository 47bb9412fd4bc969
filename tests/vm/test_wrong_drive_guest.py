# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of docs/wrong-drives.md that need a real kernel with NVMe drives, device-mapper and md. Most are staged at
once, and played at once.
"""

from __future__ import annotations

import contextlib

import pytest
from guest_drives import Namespace, Nvme
from hardware import PLAIN, SHARED, STAGED, TWIN, TWO_NAMESPACES, wwn
from lab import Lab, overwritable, wait_for

MIRROR, MIRROR_TWIN, BTRFS, BTRFS_TWIN, CRYPT, VOLUME, PATH, EXPORTED, OPENED, GIVEN_AWAY = STAGED[:10]
FABRIC = "SSDQTCP"
LUKS = "cryptsetup -q {0} --key-file /root/key"
FORMAT_LUKS = LUKS.format("luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000")

# (what it is, the drives that its script takes as $1, $2 …, how to make it, how to take it apart)
STAGES = (
    # Both halves of a root disk's usual cake: md below LUKS below LVM, and btrfs, of which a mount names one member
    # only. Without lazy_…=0, ext4 would go on writing inode tables when the drives are sealed.
    (
        (MIRROR, MIRROR_TWIN),
        f"mdadm --create /dev/md7 --run --quiet --level=1 --raid-devices=2 $1 $2 && {FORMAT_LUKS} /dev/md7 && "
        f"{LUKS.format('open')} /dev/md7 cake"
        " && pvcreate -q /dev/mapper/cake && vgcreate -q cake /dev/mapper/cake && lvcreate -qy -n boot -l 90%FREE cake"
        " && mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/cake/boot"
        " && mount /dev/cake/boot /boot && mkdir /boot/efi",
        "umount /boot; vgchange -qan cake; cryptsetup close cake; mdadm --stop --quiet /dev/md7",
    ),
    ((BTRFS, BTRFS_TWIN), "mkfs.btrfs -q -f -m single -d single $1 $2 && mount $1 /boot/efi", "umount /boot/efi"),
    ((CRYPT,), f"{FORMAT_LUKS} $1 && {LUKS.format('open')} $1 plain", "cryptsetup close plain"),
    (
        (VOLUME,),
        "pvcreate -q $1 && vgcreate -q volumes $1 && lvcreate -qy -n one -l 50%FREE volumes",
        "vgchange -qan volumes",
    ),
    (
        (PATH,),
        (
            "modprobe dm-multipath && echo 0 $(blockdev --getsz $1) multipath 0 0 1 1 service-time 0 1 2 $1 1 1 | "
            "dmsetup create paths --uuid mpath-paths"
        ),
        "dmsetup remove paths",
    ),
    # Exported, and taken in again over TCP: a drive that looks like any other but is a network away.
    (
        (EXPORTED,),
        "modprobe nvmet-tcp nvme-tcp; modprobe nvme-tcp; cd /sys/kernel/config/nvmet && mkdir subsystems/away "
        "subsystems/away/namespaces/1 ports/1"
        f" && echo 1 > subsystems/away/attr_allow_any_host && echo {FABRIC} > subsystems/away/attr_serial"
        " && echo -n $1 > subsystems/away/namespaces/1/device_path && echo 1 > subsystems/away/namespaces/1/enable"
        " && echo ipv4 > ports/1/addr_adrfam && echo tcp > ports/1/addr_trtype && echo 127.0.0.1 > ports/1/addr_traddr"
        " && echo 4420 > ports/1/addr_trsvcid && ln -s $PWD/subsystems/away ports/1/subsystems/away"
        " && nvme connect -t tcp -a 127.0.0.1 -s 4420 -n away && udevadm settle",
        "nvme disconnect -n away; cd /sys/kernel/config/nvmet; rm ports/1/subsystems/away; echo 0 > "
        "subsystems/away/namespaces/1/enable;"
        " rmdir ports/1 subsystems/away/namespaces/1 subsystems/away",
    ),
    # As a VM has its disk: open, without excluding anybody.
    (
        (OPENED,),
        'systemd-run --quiet --unit=machine sh -c "exec 9<>$1; exec sleep infinity" && sleep 1',
        "systemctl stop machine",
    ),
    # To a driver in user space, as SPDK does: no block device is left.
    (
        (GIVEN_AWAY,),
        "modprobe uio_pci_generic; pci=$(readlink -f /sys/block/${1#/dev/}/device/device); echo $pci > "
        "/run/given-away; cd $pci"
        " && echo uio_pci_generic > driver_override && echo ${pci##*/} > driver/unbind && echo ${pci##*/} > "
        "/sys/bus/pci/drivers_probe && ls uio",
        "cd $(cat /run/given-away); echo ${PWD##*/} > driver/unbind; echo > driver_override; echo ${PWD##*/} > "
        "/sys/bus/pci/drivers_probe;"
        " udevadm settle",
    ),
)


# A subsystem has the number of the controller that the kernel probed first, and it probes them all at once. $1: the
# controller that should not be the first, $2: the other.
PROBE_IN_ORDER = """
driver=/sys/bus/pci/drivers/nvme
last=$(basename $(readlink -f /sys/class/nvme/$1/device)); first=$(basename $(readlink -f /sys/class/nvme/$2/device))
echo $last > $driver/unbind && echo $first > $driver/unbind || exit
for address in $first $last; do
    echo $address > $driver/bind
    until ls -d $driver/$address/nvme/nvme*/nvme*n* > /dev/null 2>&1; do sleep 0.2; done
done
udevadm settle
"""


def namesake_and_path(guest):
    """Of the namespace that only the second of two controllers reaches: the controller of its name, and its own."""
    name = guest.device(SHARED, 2)[len("/dev/") :]
    namesake = name[: name.rindex("n")]
    (path,) = guest.run(f"ls -d /sys/class/nvme/nvme*/{namesake}c*n2").stdout.split()
    return namesake, path.split("/")[4]


@pytest.fixture(scope="module")
def staged(guest):
    """All stages, made; taken apart and blanked afterwards."""
    with contextlib.ExitStack() as undo:
        namesake, only = namesake_and_path(guest)
        if namesake == only:
            both = guest.run(f"grep -l {SHARED} /sys/class/nvme/nvme*/serial").stdout.split()
            (other,) = {path.split("/")[4] for path in both} - {only}
            guest.run(f"set -- {only} {other}; {PROBE_IN_ORDER}")
        guest.run("echo -n secret > /root/key")
        found = guest.namespaces()
        blank = [found[serial, 1] for serials, *_scripts in STAGES for serial in serials]
        undo.callback(
            guest.run,
            f"udevadm settle; for node in {' '.join(blank)}; do wipefs -qaf $node; blkdiscard -f $node; done",
            check=False,
        )
        for serials, make, take_apart in STAGES:
            nodes = [found[serial, 1] for serial in serials]
            undo.callback(guest.run, take_apart, check=False)
            guest.run(f"set -- {' '.join(nodes)}; {make}")
        yield guest


@pytest.fixture(scope="module")
def played(staged, tmp_path_factory):
    """One destructive play at all of them, and at a drive with nothing staged."""
    staged.blank(PLAIN)
    lab = Lab(staged, tmp_path_factory.mktemp("played"), "played")
    lab.host["ssd_drives"] = [
        *({"serial": serial} for serial in (PLAIN, *STAGED[:10], FABRIC, TWIN, TWO_NAMESPACES)),
        *({"wwn": wwn(*which)} for which in ((TWO_NAMESPACES, 3), (SHARED, 1), (SHARED, 2))),
    ]
    return lab.outcome("purge")


def test_a_drive_with_nothing_staged_has_no_refusal(played):
    assert played.codes(PLAIN) == set()


@pytest.mark.case(3)
def test_case_03_namespace_that_its_namesake_controller_does_not_have(played, guest):
    """Its name has the number of the subsystem's first controller, which cannot reach it."""
    namesake, only = namesake_and_path(guest)
    assert only != namesake
    played.refused(wwn(SHARED, 2), "shared_namespace")


@pytest.mark.case(8)
def test_case_08_two_drives_with_one_serial(played):
    played.refused(TWIN, "ambiguous")


@pytest.mark.case(9)
def test_case_09_the_serial_of_two_namespaces(played):
    played.refused(TWO_NAMESPACES, "ambiguous")


@pytest.mark.case(9)
def test_case_09_a_namespace_that_the_drive_does_not_have(played):
    played.refused(wwn(TWO_NAMESPACES, 3), "not_found")


@pytest.mark.case(16)
@pytest.mark.parametrize("serial", [MIRROR, MIRROR_TWIN])
def test_case_16_root_disk_behind_lvm_luks_and_md(played, serial):
    played.refused(serial, "root_disk", "mounted", "held", "busy", "signature")


@pytest.mark.case(16)
@pytest.mark.parametrize("serial", [BTRFS, BTRFS_TWIN])
def test_case_16_root_disk_on_btrfs_of_two_drives(played, serial):
    """A mount names the first member only."""
    played.refused(serial, "root_disk", "mounted", "busy", "signature")


@pytest.mark.case(22)
@pytest.mark.parametrize(
    "serial, codes",
    [
        (CRYPT, ["held", "busy", "signature"]),
        (VOLUME, ["held", "busy", "signature"]),
        (PATH, ["held", "busy", "fabric"]),
    ],
)
def test_case_22_active_device_mapper(played, serial, codes):
    played.refused(serial, *codes)


@pytest.mark.case(26)
def test_case_26_exported_by_nvmet(played):
    played.refused(EXPORTED, "exported")


@pytest.mark.case(26)
def test_case_26_opened_as_by_a_virtual_machine(played):
    # The unit that opened it names it too.
    played.refused(OPENED, "opened", "mentioned")


@pytest.mark.case(27)
def test_case_27_given_to_a_driver_in_user_space(played):
    played.refused(GIVEN_AWAY, "not_found")


@pytest.mark.case(29)
def test_case_29_namespace_of_two_controllers(played):
    played.refused(wwn(SHARED, 1), "shared_namespace")


@pytest.mark.case(30)
def test_case_30_nvme_over_tcp(played):
    played.refused(FABRIC, "fabric")


@pytest.mark.long
@pytest.mark.case(10)
def test_case_10_drives_pulled_between_plan_and_run(lab, guest):
    """One is replaced by another, which gets its name; one is put back, and might have been written elsewhere
    meanwhile.
    """
    # A drive gets the lowest number that is free, and the tests before this one left gaps.
    guest.stop()
    guest.start()
    replaced, put_back = STAGED[10:]
    names = {serial: guest.device(serial) for serial in (replaced, put_back)}
    newcomer = Nvme("SSDQ0999", [Namespace()])

    def swap():
        guest.plug(newcomer, in_place_of=guest.unplug(replaced))
        pulled = guest.unplug(put_back)
        guest.plug(pulled, in_place_of=pulled)
        wait_for("drives", lambda: {(newcomer.serial, 1), (put_back, 1)} <= guest.namespaces().keys())

    lab.host["ssd_drives"] = [{"serial": replaced}, {"serial": put_back}]
    outcome = lab.outcome_between(swap)
    assert guest.device(newcomer.serial) == names[replaced]
    outcome.refused(replaced, "not_found")
    outcome.refused(put_back, "identity_changed")
    assert not any(newcomer.namespaces[0].file.read_bytes())


@pytest.mark.long
@pytest.mark.case(34)
def test_case_34_sanitize_of_a_drive_with_two_namespaces(lab, guest, stand_in):
    stand_in({"serial": TWO_NAMESPACES})
    entry = overwritable({"wwn": wwn(TWO_NAMESPACES, 1)})
    outcome = lab.refused(entry, "purge_hits_others", args=("-e", "purge_method=nvme_sanitize_block"))
    assert "namespace 2" in outcome.message(wwn(TWO_NAMESPACES, 1), "purge_hits_others")
