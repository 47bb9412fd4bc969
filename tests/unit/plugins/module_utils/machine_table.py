# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be said of the drives of each machine in tests/machines: what a storage engineer wants of them."""

from __future__ import annotations

import typing as t

DEALLOCATE, OVERWRITE = "deallocate", "overwrite"
NVME = ["nvme_format_crypto", "nvme_format_user_data", DEALLOCATE, OVERWRITE]
NVME_USER_DATA = NVME[1:]
# Security erase only where no adapter translates, and no BIOS has frozen it.
ATA = ["ata_sanitize_block", "ata_security_erase_enhanced", "ata_security_erase", DEALLOCATE, OVERWRITE]
ATA_FROZEN = ["ata_sanitize_block", DEALLOCATE, OVERWRITE]
BEHIND_HBA = ["ata_sanitize_block", OVERWRITE]
# Unknown to sg_opcodes, which is no no; FORMAT UNIT would need the protection type.
SAS_UNTOLD = ["scsi_sanitize_crypto", "scsi_sanitize_block", "scsi_sanitize_overwrite", OVERWRITE]
SAS = [*SAS_UNTOLD[:3], "scsi_format_unit", OVERWRITE]


class Told(t.NamedTuple):
    """What is said of a drive. None: it does not matter here.

    refusals: codes of the guard, in its order. purges: those that erase this drive alone, strongest first; auto: what
    is taken without a choice, if not the first. checks: findings on the way to it while all drives are measured at
    once; a level that is not the check's own stands behind a colon. cpus, node: where fio runs then.
    """

    transport: str | None
    refusals: str = ""
    purges: t.Sequence[str] = ()
    auto: str = ""
    checks: str | None = None
    cpus: str | None = None
    node: int | None = None


MACHINES: dict[str, dict[str, Told]] = {
    # NVMe: paths, namespaces, formats.
    "nvme-one-path": {
        "nvme2n1": Told(
            "nvme",
            purges=["nvme_sanitize_crypto", "nvme_sanitize_block", *NVME],
            checks="",
            cpus="4-6",
            node=1,
        )
    },
    "nvme-two-paths": {"nvme0n1": Told("nvme", "shared_namespace")},
    "nvme-two-hosts": {"nvme0n1": Told("nvme", "shared_namespace")},
    "nvme-without-multipath": {
        "nvme0n1": Told("nvme", "no_identity shared_namespace"),
        "nvme1n1": Told("nvme", "no_identity shared_namespace"),
    },
    "nvme-virtual-function": {
        # A format would take the other's, too.
        "nvme0n1": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
        "nvme1n1": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
    },
    "nvme-fabrics": {
        "nvme0n1": Told("nvme-tcp", "fabric"),
        "nvme1n1": Told("nvme-rdma", "fabric"),
        "nvme2n1": Told("nvme-loop", "fabric"),
        "nvme3n1": Told("nvme-rdma+tcp", "fabric"),
    },
    "network-adapter": {
        "nvme0n1": Told("nvme", "fabric"),
        "nvme1n1": Told("nvme", "fabric"),
        "nvme2n1": Told("nvme", "fabric"),
    },
    "nvme-namespaces": {
        # A format would take the other one, too.
        "nvme0n1": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
        "nvme0n2": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
        "nvme1n1": Told("nvme", purges=NVME),
        "nvme1n2": Told("nvme", purges=NVME),
    },
    "nvme-metadata": {
        "nvme0n1": Told("nvme", purges=NVME_USER_DATA),
        "nvme1n1": Told("nvme", "no_capacity"),
    },
    "zoned-namespace": {"nvme0n2": Told("nvme", "zoned")},
    "apple-silicon": {
        "nvme0n1": Told("nvme", "root_disk mounted partition_table"),
        "nvme0n2": Told("nvme", "no_capacity"),
        "nvme0n3": Told("nvme", "no_capacity"),
    },
    # Processors, nodes, and the way to them.
    "hybrid-cpu": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="0-11")},
    "arm-server": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="8-14", node=1)},
    "arm-board": {
        "nvme0n1": Told("nvme", purges=NVME, checks="", cpus="4-7"),
        "mmcblk0": Told("mmc", "transport"),
        "mmcblk1": Told("mmc", "transport"),
    },
    "eight-nodes": {
        "nvme0n1": Told("nvme", purges=NVME, checks="", cpus="20-22,52-54", node=5),
        "nvme1n1": Told("nvme", purges=NVME, checks="", cpus="0-2,32-34", node=0),
    },
    "memory-only-node": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="0-6")},
    "sparse-nodes": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="16-27", node=8)},
    "drive-at-memory-node": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="4-6", node=1)},
    "unknown-node": {"nvme0n1": Told("nvme", purges=NVME, checks="numa_unknown", cpus="0-2,4-6")},
    "pcie-switch": {
        "nvme0n1": Told("nvme", purges=NVME, checks="pcie_oversubscribed"),
        "nvme1n1": Told("nvme", purges=NVME, checks="pcie_oversubscribed"),
    },
    "chipset-slot": {
        "nvme0n1": Told("nvme", purges=NVME, checks="chipset_slot"),
        "nvme1n1": Told("nvme", purges=NVME, checks=""),
    },
    "chipset-switch": {"nvme0n1": Told("nvme", purges=NVME, checks="chipset_slot")},
    "slow-slots": {
        "nvme0n1": Told("nvme", purges=NVME, checks="pcie_link"),
        "nvme1n1": Told("nvme", purges=NVME, checks="pcie_slot"),
    },
    "vmd": {"nvme0n1": Told("nvme", purges=NVME, checks="", cpus="0-13")},
    "vmd-array": {"nvme0n1": Told("nvme", "held"), "nvme1n1": Told("nvme", "held")},
    "remapped-nvme": {},
    "thunderbolt": {"nvme0n1": Told("nvme", "removable")},
    "mainframe": {
        "dasda": Told(None, "no_identity transport"),
        "sda": Told("fc", "fabric"),
        "nvme0n1": Told("nvme", purges=NVME, checks="pcie_slot", cpus="0-5"),
    },
    # Virtual machines and clouds.
    "virtual-machine": {
        "vda": Told("virtio", "transport"),
        "vdb": Told("virtio", "no_identity transport"),
        "sda": Told("virtio", "transport removable"),
        "nvme0n1": Told("nvme", purges=NVME_USER_DATA, checks="virtual_machine pcie_link:warning"),
    },
    "vmware": {
        "sda": Told(None, "transport removable"),
        "sdb": Told("sas", "removable"),
        "nvme0n1": Told("nvme", "removable"),
    },
    "hyper-v": {"sda": Told(None, "transport removable")},
    "emulated-sata": {"sda": Told("sata", "removable"), "sdb": Told("sata", "removable")},
    "xen": {"xvda": Told(None, "no_identity transport")},
    "cloud-ec2": {
        "nvme0n1": Told("nvme", "fabric"),
        "nvme1n1": Told("nvme", purges=[DEALLOCATE, OVERWRITE], checks="virtual_machine pcie_link:warning"),
    },
    "cloud-gcp": {
        "nvme0n1": Told("nvme", "fabric"),
        "nvme1n1": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
        "nvme1n2": Told("nvme", purges=[DEALLOCATE, OVERWRITE]),
    },
    "cloud-azure": {
        "nvme0n1": Told("nvme", "fabric"),
        "nvme0n2": Told("nvme", "fabric"),
        "nvme1n1": Told("nvme", purges=NVME_USER_DATA),
    },
    # SATA and its ports.
    "sata-frozen": {
        "sda": Told("sata", purges=ATA_FROZEN),
        "sdb": Told("sata", "ata_security"),
    },
    "sata-hot-plug": {"sda": Told("sata", purges=ATA), "sdb": Told("sata", "removable")},
    "sata-slow-port": {"sda": Told("sata", purges=ATA, checks="sata_port")},
    "sata-multiplier": {
        "sda": Told("sata", purges=ATA, checks="sata_port"),
        "sdb": Told("sata", purges=ATA, checks="sata_port"),
    },
    "raid-bridge": {"sda": Told("sata", "raid_volume")},
    "block-sizes": {"sda": Told("sas", "no_capacity"), "sdb": Told("sata", purges=ATA)},
    "hard-disk": {"sda": Told("sata", "hard_disk")},
    "hard-disk-old-kernel": {
        "sda": Told("sata", "hard_disk"),
        "sdb": Told("sas", "hard_disk"),
        "sdc": Told("sata", purges=BEHIND_HBA),
        "sdd": Told("sata", "hard_disk"),
    },
    "hard-disk-zoned": {"sda": Told("sata", "zoned hard_disk")},
    "boot-mirror-sata": {"sda": Told("sata", "raid_volume")},
    "boot-mirror-nvme": {"nvme0n1": Told("nvme", "raid_volume")},
    # Adapters, RAID controllers, networks of storage.
    "sas-adapter": {"sda": Told("sas", purges=SAS), "sdb": Told(None, "transport raid_volume")},
    "sas-expander": {
        "sda": Told("sata", purges=BEHIND_HBA, checks=""),
        "sdb": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE, checks=""),
    },
    "sas-multipath": {
        "sda": Told("sas", "no_identity held fabric"),
        "sdb": Told("sas", "no_identity held fabric"),
        "sdc": Told("sas", "no_identity fabric"),
        "sdd": Told("sas", "no_identity fabric"),
    },
    "megaraid-jbod": {
        "sda": Told("sata", purges=BEHIND_HBA),
        "sdb": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE),
    },
    "perc-volumes": {"sda": Told(None, "transport raid_volume"), "sdb": Told(None, "transport raid_volume")},
    "tri-mode": {
        # As any behind it: the adapter translates.
        "sda": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE),
        "sdb": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE),
        "sdc": Told(None, "transport raid_volume"),
    },
    "smart-array": {
        "sda": Told("sata", purges=BEHIND_HBA),
        "sdb": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE),
        "sdc": Told(None, "transport raid_volume"),
    },
    "smart-array-old": {
        "sda": Told("sas", purges=SAS_UNTOLD, auto=OVERWRITE),
        "sdb": Told(None, "transport raid_volume"),
    },
    "aacraid": {"sda": Told(None, "transport raid_volume"), "sdb": Told("sata", purges=BEHIND_HBA)},
    "power-adapters": {"sda": Told(None, "transport"), "sdb": Told(None, "transport raid_volume")},
    "sas-array": {"sda": Told("sas", "raid_volume"), "sdb": Told("sas", "raid_volume")},
    "san": {"sda": Told("fc", "fabric"), "sdb": Told("iscsi", "fabric")},
    # What is no drive, or none to qualify.
    "usb": {
        "sda": Told("usb", "transport"),
        "sdb": Told("usb", "transport"),
        "sdc": Told("usb", "transport removable"),
        "sdd": Told("usb", "transport removable"),
    },
    "pmem": {"pmem0": Told(None, "no_identity transport")},
    "ufs": {"sda": Told(None, "no_identity transport"), "sdb": Told(None, "no_identity transport")},
    "kernel-target": {"sda": Told(None, "transport")},
    "software": {
        "nbd0": Told("nbd", "no_identity transport"),
        "nullb0": Told(None, "no_identity transport"),
        "ublkb0": Told(None, "no_identity transport"),
    },
    "stacked": {"sda": Told("sata", purges=ATA), "sdb": Told("sata", "held"), "sdc": Told("sata", "held")},
}
