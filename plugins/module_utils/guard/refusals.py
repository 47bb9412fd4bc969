# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard says for each of its codes, and what lifts it. Words alone: rules.py judges."""

from __future__ import annotations

import typing as t

from ..drive.entry import OVERRIDES


class Text(t.NamedTuple):
    """What is wrong (`{detail}` is the finding), what the operator can do, and the option of the drive's entry that
    lifts it ("": none does). found: what counts, where the problem does not say it.
    """

    problem: str
    remedy: str
    overridable: str = ""
    found: str = ""


_KEEP_OUT = "or take the drive out of ssd_drives."
# All that lifts what lies on a drive, at once: what is found next is then no further refusal.
_GIVE_UP = (
    "If nothing on it is needed, set retired: true in this drive's entry, which lifts all that is the drive's own "
    "alone, or allow: [partition_table, efi_system_partition, signature] and ssd_overwrite_data: true, which lift "
    "whatever it is, "
)
ALLOW, OVERWRITE, RELEASE, RETIRED = OVERRIDES
REFUSALS: dict[str, Text] = {
    "bad_selector": Text(
        "this entry of ssd_drives is invalid: {detail}",
        'Write it as discover.yml prints it, such as - serial: "22123A4F5B6C".',
    ),
    "not_found": Text(
        "this host has no such drive{detail}",
        (
            "Compare it with the output of discover.yml (the whole value must match, letter case included), and look "
            "for a drive that dropped off the bus."
        ),
    ),
    "ambiguous": Text(
        "several block devices match: {detail}", "Name the drive by wwn or by_id instead; discover.yml proposes one."
    ),
    "duplicate": Text("other entries of ssd_drives name the same drive: {detail}", "Keep only one of them."),
    "in_service": Text(
        "ssd_service_drives names it too, whose drives hold data and are only read: {detail}",
        "Take it out of ssd_drives if what is on it is to stay, else out of ssd_service_drives.",
        found="it is in both lists of the host",
    ),
    "no_identity": Text(
        "it has no serial, wwn, by_id or backing_file of its own{detail}",
        "It cannot be named safely, so it cannot be qualified.",
    ),
    "not_whole_drive": Text("it is not a whole drive: {detail}", "Name the whole drive; discover.yml lists them."),
    "no_capacity": Text(
        "its capacity is {detail}",
        "Check the drive's health and the kernel log: it may be in recovery mode, or have blocks that the kernel "
        "cannot use (520 bytes, metadata in them), and then needs a format.",
        found="0 bytes, or a placeholder that drives show in recovery mode",
    ),
    "read_only": Text(
        "it is read-only: {detail}",
        "Find the cause (worn out, write-protected); if only the kernel's flag is set, clear it with blockdev --setrw.",
        found="the kernel's flag, a write-protected namespace, critical_warning's read-only bit",
    ),
    "root_disk": Text(
        "the running system is on it: {detail}",
        "Take the drive out of ssd_drives: this host runs from it.",
        found="/, /boot, /boot/efi, /usr or /var lies on it, through any number of layers",
    ),
    "mounted": Text(
        "it is mounted: {detail}",
        "Unmount it everywhere, containers included, if nothing on it is needed, " + _KEEP_OUT,
    ),
    "swap": Text("it is used as swap: {detail}", "Run swapoff on it if the host can do without, " + _KEEP_OUT),
    "hibernation": Text(
        "the host resumes from it: {detail}",
        "Remove resume= from the kernel command line and the initramfs, " + _KEEP_OUT,
        found="the target of resume=",
    ),
    "held": Text(
        "another device is built on it: {detail}",
        "Take that device apart first (vgchange -an, mdadm --stop, cryptsetup close, losetup -d), " + _KEEP_OUT,
    ),
    "busy": Text(
        "another process holds it exclusively{detail}",
        "Find that process (lsof, fuser -v) and stop it, " + _KEEP_OUT,
    ),
    "opened": Text(
        "it is open in {detail}",
        "Stop what uses the drive (a virtual machine, a database), "
        + _KEEP_OUT
        + " A program that only looks at drives can be named in ssd_passing_programs.",
        found=(
            "a process has it open, mapped or registered with io_uring, by any of its nodes, or has "
            "the file behind a loop device open"
        ),
    ),
    "unseen_users": Text(
        "this host cannot see who uses it: {detail}",
        "Run the play on the machine itself, as root; if nothing outside can use the drive, set allow: [unseen_users], "
        + _KEEP_OUT,
        ALLOW,
        found="a container, or processes that may not be inspected",
    ),
    "exported": Text(
        "it is exported by {detail}",
        "Remove the export (nvmetcli, targetcli), " + _KEEP_OUT,
        found="by nvmet, LIO, SCST or a USB gadget",
    ),
    "configured": Text(
        "the host is configured to use it: {detail}",
        "If nothing on the drive is needed, remove that entry, " + _KEEP_OUT,
        found=(
            "fstab, crypttab, mdadm.conf, zpool.cache, LVM and its devices file, a mount unit, a "
            "Kubernetes local volume, a Ceph OSD, a machine of libvirt or Proxmox, a container or a "
            "volume of Docker, LXC or podman, Pacemaker, LINSTOR or DRBD (below /var/lib), an export "
            "saved by LIO, nvmet or tgt"
        ),
    ),
    "mentioned": Text(
        "a file on the host names it: {detail}",
        (
            "Check what the file is for; remove the line or, if nothing uses the drive through it, set "
            "allow: [mentioned], "
        )
        + _KEEP_OUT,
        ALLOW,
        found=(
            "for whatever purpose: a line of a file below /etc, a link or a unit's name there, a "
            "crontab, or the boot configuration"
        ),
    ),
    "partition_table": Text(
        "it has a partition table: {detail}",
        _GIVE_UP + _KEEP_OUT,
        ALLOW,
    ),
    "efi_system_partition": Text(
        "it has an EFI system partition: {detail}",
        "A system may boot from it. " + _GIVE_UP + _KEEP_OUT,
        ALLOW,
    ),
    "signature": Text(
        "it holds data: {detail}",
        _GIVE_UP + _KEEP_OUT,
        ALLOW,
        found=(
            "also a table that is neither GPT nor MBR, or lies in a partition: what its partitions "
            "hold is not known, or is somebody's"
        ),
    ),
    "shared_filesystem": Text(
        "it has a file system that several hosts may share: {detail}",
        "Ask who uses it; wipe it there (wipefs --all), " + _KEEP_OUT,
        found="VMFS, GFS2, OCFS2, GPFS …",
    ),
    "unsigned_data": Text(
        "it holds data of an unknown kind, and no run of this collection left it there: {detail}",
        "It may be the raw device of a database. If nothing on it is needed, set retired: true, or "
        "ssd_overwrite_data: true, in this drive's entry, " + _KEEP_OUT,
        OVERWRITE,
        found="blocks that were read are not blank, and not proved to be what a run of ours left there",
    ),
    "not_given_up": Text(
        "its entry's retired does not cover what is on it: {detail}",
        "Mend by hand what the sentence names (wipefs --all empties a drive that nobody needs), " + _KEEP_OUT,
        found="what retired may not give up: formats that are not known to be the drive's own, members of something "
        "that is not wholly retired, a statement that is used up",
    ),
    "evidence": Text(
        "it is kept as evidence: {detail}",
        "Once you have examined it, add release_evidence with that run's id to this drive's entry, " + _KEEP_OUT,
        RELEASE,
        found="kept as that run left it",
    ),
    "shared_namespace": Text(
        "more than one controller or host may reach it: {detail}",
        "Detach the namespace from the others (nvme detach-ns), " + _KEEP_OUT,
        found="NMIC, CMIC, ANA paths, attached controllers",
    ),
    "reserved": Text(
        "a host has reserved it: {detail}",
        "Find out who holds the reservation and have that host release it; what a host left that is gone clear by hand "
        "(sg_persist --out --clear, nvme resv-release), " + _KEEP_OUT,
        found="a persistent reservation or registration",
    ),
    "fabric": Text(
        "it is not local to this host, or on more than one path: {detail}",
        "Only local drives on one path are qualified: of two paths remove one for the run (unplug it, or echo 1 > "
        "/sys/block/<name>/device/delete), " + _KEEP_OUT,
        found="nvme-tcp, nvme-rdma, nvme-fc, iscsi, fc, a path of a multipath device, or a volume of a cloud or a DPU",
    ),
    "transport": Text(
        "it is not an NVMe, SATA or SAS drive; its transport is {detail}",
        "If it is a drive to test, set allow: [transport], " + _KEEP_OUT,
        ALLOW,
        found="usb, mmc, virtio, nbd or unknown: not those of a local drive",
    ),
    "removable": Text(
        "it is removable or virtual media: {detail}",
        "If it is a drive to test, set allow: [removable], " + _KEEP_OUT,
        ALLOW,
        found="removable or virtual media, or a drive on a cable (Thunderbolt, USB4)",
    ),
    "raid_volume": Text(
        "it is a volume of a RAID controller or a storage system: {detail}",
        "Set the controller to HBA or JBOD mode, if it has one, so that it shows the drives themselves, " + _KEEP_OUT,
        found=(
            "a RAID controller's or a storage system's volume, or a boot device's mirror (Dell BOSS, HPE NS204i, "
            "Lenovo M.2 kits)"
        ),
    ),
    "zoned": Text(
        "it is zoned: {detail}",
        "It takes writes in sequence by zone alone: for ssd_plan: zoned, or tests of yours with zoned: true, set "
        "allow: [zoned], " + _KEEP_OUT,
        ALLOW,
        found="host-managed zones (ZNS, SMR)",
    ),
    "wrong_zones": Text(
        "the plan is not for this drive: {detail}",
        "Give drives with and without zones hosts or runs of their own.",
        found="a zoned drive with tests for others, or the other way round",
    ),
    "hard_disk": Text(
        "it is a hard disk: {detail}",
        "The tests are for SSDs; to run them on it all the same, set allow: [hard_disk], " + _KEEP_OUT,
        ALLOW,
        found="a rotation rate that the drive reports; where none is known, what the kernel takes it for",
    ),
    "sanitize_running": Text(
        "a sanitize is running that this run did not start: {detail}",
        "Wait until it ends (nvme sanitize-log), then start again.",
        found="one that this run did not start",
    ),
    "sanitize_failed": Text(
        "its last sanitize failed: {detail}",
        (
            "Repeat the sanitize by hand until it succeeds; if the drive accepts writes anyway, set "
            "allow: [sanitize_failed]."
        ),
        ALLOW,
    ),
    "ata_security": Text(
        "ATA security is on: {detail}",
        "Unlock it and disable its password (hdparm --security-disable), or power-cycle it, " + _KEEP_OUT,
        found="locked, enabled, or attempts expired; frozen where the purge method needs security erase",
    ),
    "opal_locked": Text(
        "Opal hides its data: {detail}",
        "Unlock or revert it with its owner's password, or, as all on it is lost anyway, with the PSID on its label "
        "(sedutil-cli), " + _KEEP_OUT,
        found="or an MBR shadow that hides the data",
    ),
    "identity_changed": Text(
        "it is not the same drive as before: {detail}", "Start over with preflight; never force this one."
    ),
    "locked": Text(
        "another run or check is using this drive: {detail}", "Wait for it (watch.yml), or end the run (stop.yml)."
    ),
    "not_held": Text(
        "this job does not hold it{detail}", "Nothing was written. Report this, and attach the run's journal."
    ),
    "purge_unsupported": Text(
        "this purge cannot be used: {detail}",
        "Choose another purge_method, or auto.",
        found="the named purge method is not offered",
    ),
    "purge_hits_others": Text(
        "the purge would erase more than this drive: {detail}",
        "Choose another purge_method, or auto.",
        found="other namespaces",
    ),
    "untrusted_state": Text(
        "this collection's state folders cannot be trusted: {detail}",
        "Users other than root could put records or programs there, or delete the record that keeps a drive as "
        "evidence. Find out who changed them. Check in the reports of earlier runs that the drive need not be kept. "
        "Then make root the only writer "
        "(chown root, chmod go-w), or move a damaged file away.",
        found=(
            "somebody other than root may write to the state folder, a folder above it, the drive's "
            "ledger entry or the folder of our locks, or the entry is damaged"
        ),
    ),
    "probe_failed": Text(
        "it could not be checked: {detail}",
        "Mend what the sentence names, and try again: what a drive was busy with passes. The check needs root, "
        "util-linux (wipefs, blkid) and a drive that answers.",
    ),
}

# The same code, where the ledger says more: a run of ours that died, or gave up a drive that hung.
UNFINISHED = Text(
    "run {run_id} was writing to it and never released it{reason}: {detail}",
    "Resume that run (qualify.yml), or end it (stop.yml; if it has already ended, collect.yml and then cleanup.yml), "
    "each with -e ssd_run_id={run_id}; then a later run may erase what it left, if that is recognised as ours. Check "
    "the kernel log for a drive that hung. Or set ssd_overwrite_data: true in this drive's entry, " + _KEEP_OUT,
)
