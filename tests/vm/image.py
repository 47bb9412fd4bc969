# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's disk: a bootable Debian, made from its packages alone, without a loop device or a mount of ours.

    python image.py     builds it if it is not there yet, and prints its folder

Needs root, mmdebstrap, e2fsprogs, fdisk, grub-common, grub-pc-bin and qemu-utils; about a minute and 1 GB. The
folder is named by the hash of what builds it, so an old image is never taken for a new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("SSDLAB_FLEET_CACHE") or "/var/cache/ssdlab-fleet")
KEPT_BYTECODE = HERE.parent / "kept_bytecode/sitecustomize.py"
RECIPE = (HERE / "image.py", HERE / "packages.txt", HERE / "setup", KEPT_BYTECODE)
SUITE = "bookworm"
MIB = 1 << 20
DISK_BYTES = 4096 * MIB
PARTITION_START_BYTES = 1 * MIB
TOOLS = ("mmdebstrap", "mkfs.ext4", "sfdisk", "grub-mkimage", "qemu-img", "ssh-keygen")
GRUB_MODULES = (
    "biosdisk part_msdos ext2 serial terminal normal search search_label linux configfile echo test minicmd".split()
)
# A small initial RAM disk, as emulation makes every megabyte slow to load and unpack. Said before the kernel's package
# comes, which makes one at once: to make that of a whole Debian, twice, took a third of the image's time.
RAM_DISK = """\
cd "$1" && mkdir -p etc/initramfs-tools/conf.d usr/share/initramfs-tools/modules.d &&
echo MODULES=list > etc/initramfs-tools/conf.d/guest &&
printf '%s\\n' virtio_pci virtio_blk ext4 > usr/share/initramfs-tools/modules.d/guest"""
# The first grub.cfg; the guest's own update-grub may rewrite it.
GRUB_CFG = """\
serial --unit=0 --speed=115200
terminal_output serial
set timeout=0
menuentry Debian {{
  search --set=root --label root
  linux /boot/vmlinuz-{kernel} root=LABEL=root ro console=ttyS0 net.ifnames=0 quiet
  initrd /boot/initrd.img-{kernel}
}}
"""


class BedError(Exception):
    """The guest cannot be made or does not work; the message says what to do."""


def run(argv: list[str], check: bool = True, **kwargs) -> str:
    """Run one command and return its output; BedError carries the end of stderr when it fails."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False, **kwargs)
    if check and done.returncode:
        raise BedError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def folder() -> Path:
    """Where the image of this recipe is, or will be."""
    recipe = hashlib.sha256(SUITE.encode())
    for path in RECIPE:
        recipe.update(path.read_bytes())
    return CACHE / f"guest-{recipe.hexdigest()[:12]}"


def ensure() -> Path:
    """The folder with disk.qcow2, the key id_ed25519 and the guest's host_key.pub; built first when it is not there.
    Other recipes' images go.
    """
    wanted = folder()
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "image.lock"):
        if not wanted.exists():
            missing = [tool for tool in TOOLS if not shutil.which(tool)]
            if missing:
                raise BedError(f"install {', '.join(missing)} (scripts/setup test does)")
            if os.geteuid() != 0:
                raise BedError("the guest's disk is built as root")
            for old in CACHE.glob("guest-*"):
                shutil.rmtree(old)
            _build(wanted)
    return wanted


@contextlib.contextmanager
def locked(path: Path):
    """Hold an exclusive lock on a file while the block runs."""
    with path.open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(wanted: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="building-") as name:
        work = Path(name)
        made = work / "made"
        made.mkdir(mode=0o755)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f", made / "id_ed25519"])
        root = work / "root"
        _bootstrap(root, made / "id_ed25519.pub")
        shutil.copy(root / "etc/ssh/ssh_host_ed25519_key.pub", made / "host_key.pub")
        raw = _disk(root, work)
        run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, made / "disk.qcow2"])
        made.rename(wanted)


def _bootstrap(root: Path, public_key: Path) -> None:
    packages = ",".join((HERE / "packages.txt").read_text(encoding="utf-8").split())
    run(
        [
            "mmdebstrap",
            "--quiet",
            "--mode=root",
            "--format=directory",
            "--variant=minbase",
            f"--include={packages}",
            '--aptopt=Acquire::Languages "none"',
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            f"--essential-hook={RAM_DISK}",
            f"--customize-hook=upload {public_key} /root/guest.pub",
            f"--customize-hook=upload {HERE / 'setup'} /root/setup",
            '--customize-hook=mkdir "$1/usr/local/lib/kept-bytecode"',
            f"--customize-hook=copy-in {KEPT_BYTECODE} /usr/local/lib/kept-bytecode",
            '--customize-hook=chroot "$1" sh /root/setup',
            '--customize-hook=rm "$1/root/setup"',
            SUITE,
            root,
        ]
    )


def _disk(root: Path, work: Path) -> Path:
    """One MBR partition with the file system, and GRUB's core image in the gap before it."""
    (kernel,) = [path.name for path in (root / "lib/modules").iterdir()]
    (root / "boot/grub/grub.cfg").write_text(GRUB_CFG.format(kernel=kernel), encoding="utf-8")
    raw = work / "disk.raw"
    with raw.open("wb") as out:
        out.truncate(DISK_BYTES)
    run(["sfdisk", "-q", raw], input="start=2048, type=83, bootable\n")
    # GRUB 2.06 cannot read the two features that are switched off.
    features = ["-O", "^metadata_csum_seed,^orphan_file", "-E", f"lazy_itable_init=0,offset={PARTITION_START_BYTES}"]
    blocks = (DISK_BYTES - PARTITION_START_BYTES) // 4096
    run(["mkfs.ext4", "-q", "-F", "-b", "4096", "-L", "root", *features, "-d", root, raw, str(blocks)])
    grub = root / "usr/lib/grub/i386-pc"
    run(
        [
            "grub-mkimage",
            "-d",
            grub,
            "-O",
            "i386-pc",
            "-o",
            work / "core.img",
            "-p",
            "(hd0,msdos1)/boot/grub",
            *GRUB_MODULES,
        ]
    )
    with raw.open("r+b") as out:
        out.write((grub / "boot.img").read_bytes()[:440])  # the partition table follows
        out.seek(512)
        out.write((work / "core.img").read_bytes())
    return raw


if __name__ == "__main__":
    try:
        print(ensure())
    except BedError as error:
        sys.exit(f"guest image: {error}")
