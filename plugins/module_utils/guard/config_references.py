# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names a drive though it is not in use now: fstab and its kin, Kubernetes, Ceph, virtual machines, exports, the
hibernation target.
"""

from __future__ import annotations

import json
import re
import typing as t

from ..core.host import Host
from ..drive import attributes, entry, identity
from ..drive.device_nodes import key_at
from .device_aliases import add_tags, device_number, resolved, tag_of, unescape
from .facts import Facts, Machine, Reference, add

_TAG = re.compile(r"(UUID|LABEL|PARTUUID|PARTLABEL)=(.+)", re.IGNORECASE)
_LINK_FOLDERS = {"by-uuid": "UUID", "by-label": "LABEL", "by-partuuid": "PARTUUID", "by-partlabel": "PARTLABEL"}
_PATTERN = re.compile(r"[*?[]")
# What udev and the kernel call partitions: X-part1; nvme0n1p1; sda1.
_PARTITION = re.compile(r"(/dev/.*?)-part[0-9]+|(/dev/.*[0-9])p[0-9]+|(/dev/[a-z]+)[0-9]+")
_DEVICE = re.compile(r"/dev/[^\x00-\x20\x7f-\xff\"',;:<]+")


def _lines(text: str) -> t.Iterable[list[str]]:
    """Return the words of each line; a comment begins with a word's first letter, so that a label may hold a #."""
    for line in text.splitlines():
        words = line.split()
        end = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
        if end:
            yield words[:end]


# Options of a mount that name further devices: btrfs, the log and the realtime part of XFS, the journal of ext4.
_MORE_DEVICES = re.compile(r"(?:^|,)(?:device|logdev|rtdev|journal_path)=([^,]+)")


def _each(spec: str) -> list[str]:
    """Return the devices of a field: bcachefs has several, with colons between them."""
    return spec.split(":") if ":/dev/" in spec else [spec]


def _fstab(text: str) -> list[str]:
    """Field 1 of each line, and the further devices of a mount."""
    found = []
    for words in _lines(text):
        found += _each(unescape(words[0]).strip("\"'"))
        found += _MORE_DEVICES.findall(words[3]) if len(words) > 3 else []
    return found


def _crypttab(text: str) -> list[str]:
    """Return the device, the device that holds the key (`KEY` or `PATH:DEVICE`), and that of a detached header."""
    found = []
    for words in _lines(text):
        found += [unescape(word) for word in words[1:2]]
        found += [unescape(part) for word in words[2:3] for part in (word, word.rpartition(":")[2])]
        headers = re.findall(r"(?:^|,)header=([^,]+)", words[3]) if len(words) > 3 else []
        found += [part for header in headers for part in (header, header.rpartition(":")[2])]
    return found


def _mdadm(text: str) -> list[str]:
    """Return the UUID and devices of ARRAY lines; DEVICE lines only say where to look, and so does a pattern beside a
    name of the array's own.
    """
    found: list[str] = []
    for words in _lines(re.sub(r"\n[ \t]+", " ", text)):
        if words[0].upper().startswith("ARR"):
            keys = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            found += ["UUID=" + value for key, value in keys.items() if key.lower() == "uuid"]
            listed = [path for key, value in keys.items() if key.lower() == "devices" for path in value.split(",")]
            is_named = any(key.lower() in ("uuid", "name", "super-minor") for key in keys)
            found += [path for path in listed if not (is_named and _PATTERN.search(path))]
    return found


def _lvm_devices(text: str) -> list[str]:
    """lvmdevices(8): IDNAME is the drive's serial or WWID; DEVNAME only where it was last."""
    return re.findall(r"^\s*IDTYPE=\S+\s+IDNAME=(\S+)", text, re.MULTILINE)


def _unit(text: str) -> list[str]:
    return re.findall(r"^[ \t]*What[ \t]*=[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)


def _any_device(text: str) -> list[str]:
    return _DEVICE.findall(text)


def _libvirt(text: str) -> list[str]:
    """Return a machine's disks: devices, and files that may be behind a loop device too."""
    return _any_device(text) + re.findall(r"""<source\s[^>]*\bfile=["']([^"']+)""", text)


def _podman(text: str) -> list[str]:
    """Return the devices of a container as it was started last. A privileged one has all of the machine's, and uses
    none for that.
    """
    annotations = json.loads(text).get("annotations") or {}
    return [] if annotations.get("io.podman.annotations.privileged") == "TRUE" else _any_device(text)


# Where units are that systemd starts by itself once their device is there: also those that fstab was made into, before
# it was changed.
_UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.control",
    "/run/systemd/system.attached",
    "/run/systemd/transient",
    "/run/systemd/generator*",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_GENERATED = "/run/systemd/generator"
# Instead of the line, of a unit that systemd made from one.
OF_TABLE = "made from its line in fstab or crypttab"
_UNITS = ("*.mount", "*.swap", "*.mount.d/*.conf", "*.swap.d/*.conf")
# (files, how each names devices)
_FILES: tuple[tuple[str, t.Callable[[str], list[str]]], ...] = (
    ("/etc/fstab", _fstab),
    ("/etc/crypttab", _crypttab),
    ("/etc/mdadm/mdadm.conf", _mdadm),
    ("/etc/mdadm.conf", _mdadm),
    ("/etc/mdadm.conf.d/*", _mdadm),
    ("/etc/lvm/devices/system.devices", _lvm_devices),
    *((f"{folder}/{name}", _unit) for folder in _UNIT_FOLDERS for name in _UNITS),
    ("/etc/zfs/zpool.cache", _any_device),  # an XDR list; its paths are plain text
    ("/etc/kubernetes/manifests/*", _any_device),
    ("/var/lib/rancher/*/server/manifests/*", _any_device),
    # Machines of libvirt and Proxmox that are shut off, and exports that are not loaded now.
    ("/etc/libvirt/qemu/*.xml", _libvirt),
    ("/etc/libvirt/storage/*.xml", _any_device),
    ("/etc/pve/qemu-server/*.conf", _any_device),
    ("/etc/target/saveconfig.json", _any_device),
    ("/etc/rtslib-fb-target/saveconfig.json", _any_device),
    ("/etc/nvmet/config.json", _any_device),
    ("/etc/tgt/conf.d/*", _any_device),
    # Containers that are stopped now.
    ("/var/lib/docker/containers/*/hostconfig.json", _any_device),
    # A volume of Docker's that is mounted once a container gets it.
    ("/var/lib/docker/volumes/*/opts.json", _any_device),
    ("/var/lib/lxc/*/config", _any_device),
    ("/var/lib/containers/storage/overlay-containers/*/userdata/config.json", _podman),
    # What a cluster uses on one of its machines at a time, and what LINSTOR makes for DRBD.
    ("/var/lib/pacemaker/cib/cib.xml", _any_device),
    ("/var/lib/linstor.d/*.res", _any_device),
    ("/var/lib/drbd.d/*.res", _any_device),
)
# Links to, or nodes of, the devices that something will use again.
_LINKS = (
    # Local volumes that the static provisioner and the local storage operator offer, and the raw block volumes of
    # kubelet.
    "/mnt/disks/*",
    "/mnt/fast-disks/*",
    "/mnt/local-storage/*",
    "/mnt/local-storage/*/*",
    "/var/lib/kubelet/plugins/kubernetes.io~local-volume/volumeDevices/*/*",
    "/var/lib/kubelet/plugins/kubernetes.io/local-volume/volumeDevices/*/*",
    "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/*/dev/*",
    "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/*/*",
    "/var/lib/kubelet/pods/*/volumeDevices/*/*",
    # OSDs of Ceph: by packages, by cephadm, by Rook.
    "/var/lib/ceph/osd/*/block*",
    "/var/lib/ceph/*/osd.*/block*",
    "/var/lib/rook/*/*/block*",
)
_RESUME_FILES = ("/etc/initramfs-tools/conf.d/resume", "/etc/default/grub")


def parsed(host: Host) -> set[str]:
    """Return the files that are read by their own rules: `mentions` tells only what of them these do not."""
    return {path for pattern, _parse in _FILES for path in host.glob(pattern)}


def read_machine(host: Host, facts: Machine) -> None:
    """Every device that a file of the host names."""
    seen = set()
    for pattern, parse in _FILES:
        for path in host.glob(pattern):
            if host.realpath(path) in seen:  # /lib is a link on most systems
                continue
            seen.add(host.realpath(path))
            try:
                facts.configured += _references(path, host.read(path), parse)
            except IsADirectoryError:
                continue
            except (OSError, ValueError, IndexError, AttributeError, RecursionError) as error:
                facts.failures.append(f"{path} cannot be read: {error}")
    for pattern in _LINKS:
        for path in host.glob(pattern):
            target = host.readlink(path)
            facts.configured += [
                Reference(path, spec) for spec in (host.realpath(path) if target else path, target or "") if spec
            ]
    facts.resume = [
        ("/proc/cmdline", spec) for spec in re.findall(r"(?:^|\s)resume=(\S+)", host.get("/proc/cmdline") or "")
    ]
    for path in _RESUME_FILES:
        facts.resume += [
            (path, spec) for spec in re.findall(r"\b(?:RESUME|resume)=[\"']?([^\s\"']+)", host.get(path) or "")
        ]
    chosen = host.get("/sys/power/resume")
    if chosen and chosen != "0:0":
        facts.resume.append(("/sys/power/resume", chosen))


def _references(path: str, text: str, parse: t.Callable[[str], list[str]]) -> list[Reference]:
    """Return what a file names; of a table of lines each with its line, where that names no other device."""
    if parse not in (_fstab, _crypttab, _mdadm):
        made = path.startswith(_GENERATED) and re.search(r"^SourcePath=/etc/(fstab|crypttab)$", text, re.MULTILINE)
        return [Reference(path, spec, OF_TABLE if made else "") for spec in parse(text)]
    found = []
    for line in re.sub(r"\n[ \t]+", " ", text).splitlines() if parse is _mdadm else text.splitlines():
        specs = parse(line)
        devices = {spec for spec in specs if spec.startswith("/dev/") or _TAG.fullmatch(spec) or "=" in spec}
        alone = " ".join(line.split()) if len(devices) < 2 else ""
        found += [Reference(path, spec, alone) for spec in specs]
    return found


def read_tags(host: Host, facts: Facts) -> None:
    """By which tags and links udev knows the drive and all that is on it."""
    for member in facts.family:
        text = host.get("/run/udev/data/b{}".format(host.get(f"/sys/class/block/{member}/dev"))) or ""
        facts.tags |= set(attributes.udev_links(host, member))
        add_tags(
            facts, dict(line[2:].split("=", 1) for line in text.splitlines() if line.startswith("E:") and "=" in line)
        )
    names = (attributes.udev(host, facts.name).get(key) for key in ("ID_SERIAL", "ID_SERIAL_SHORT", "ID_WWN"))
    facts.tags |= {name for name in (*names, facts.identity.serial, facts.identity.wwn) if name}


def probe_configured(host: Host, facts: Facts, shared: Machine) -> None:
    """Whether a file of the host, or the next resume, will want the drive or anything on it."""
    nodes = {identity.node(member) for member in facts.family}
    for known in shared.configured:  # what a line of crypttab opens is the drive's too, also while it is closed
        if known.where == "/etc/crypttab" and known.line and _names(host, facts, nodes, known.spec):
            facts.tags.add("/dev/mapper/" + known.line.split(" ")[0])
    for known in shared.configured:
        if _names(host, facts, nodes, known.spec):
            told = f"{known.where} ({known.spec})"
            add(facts.lines if known.line else facts.configured, f"{told}: {known.line}" if known.line else told)
    if all(line.endswith(OF_TABLE) for line in facts.lines):  # of an fstab that was changed since
        add(facts.configured, *facts.lines)
        facts.lines.clear()
    add(facts.hibernation, *(f"{where} ({spec})" for where, spec in shared.resume if _names(host, facts, nodes, spec)))


def _names(host: Host, facts: Facts, nodes: set[str], spec: str) -> bool:
    if spec.startswith("ID="):  # fstab(5): a name below by-id
        spec = entry.BY_ID + spec[len("ID=") :]
    match = _TAG.fullmatch(spec)
    if match:
        return tag_of(match.group(1).upper(), match.group(2)) in facts.tags
    if spec in facts.numbers or spec in facts.tags:
        return True
    if not spec.startswith("/"):
        return False
    if _PATTERN.search(spec):  # mdadm.conf(5)
        return any(_leads(host, facts, nodes, path) for path in host.glob(spec))
    folder, _slash, name = spec.rpartition("/")
    kind = _LINK_FOLDERS.get(folder.rpartition("/")[2])
    if kind and tag_of(kind, name) in facts.tags:
        return True
    return any(_leads(host, facts, nodes, path) for path in (spec, _whole_of(host, spec)) if path)


def _leads(host: Host, facts: Facts, nodes: set[str], path: str) -> bool:
    """Return whether a path is the drive's or that of anything on it, by name, by number, or as the file behind it."""
    return (
        path in facts.tags
        or resolved(host, path) in nodes
        or device_number(host, path) in facts.numbers
        or key_at(host, path) in facts.keys
    )


def _whole_of(host: Host, path: str) -> str:
    """Return the drive of a partition that is not there now, as its table is lost or was not read; "" for any other
    path.
    """
    match = _PARTITION.fullmatch(path)
    return match.group(match.lastindex or 0) if match and not host.exists(path) else ""
