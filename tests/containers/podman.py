# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run podman, and make the image of a test server without a container registry."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "containers"
RECIPE = ("packages.txt", "setup")
SUITE = "bookworm"
PODMAN_NOFILE = 1048576  # what podman asks for when nothing else is configured


class BedError(Exception):
    """The test bed cannot be made; the message says what to do."""


def run(argv: list[str], check: bool = True, **kwargs) -> subprocess.CompletedProcess:
    """Run one command and return it with its output as text; BedError carries stderr when it fails."""
    kwargs.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False, **kwargs)
    if check and done.returncode:
        raise BedError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done


def podman_env() -> dict[str, str]:
    """The environment for podman: our containers.conf only where the machine needs it."""
    env = dict(os.environ)
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    hard_nofile = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    low = hard_nofile != resource.RLIM_INFINITY and hard_nofile < PODMAN_NOFILE
    if "CONTAINERS_CONF" not in env and (not unified or low):
        env["CONTAINERS_CONF"] = str(HERE / "containers.conf")
    return env


def podman(*args: str, check: bool = True, **kwargs) -> subprocess.CompletedProcess:
    """Run podman with the arguments given."""
    return run(["podman", *args], check=check, env=podman_env(), **kwargs)


def image_name() -> str:
    """The image's name; its tag is the hash of all that goes into it."""
    recipe = hashlib.sha256(SUITE.encode())
    for name in RECIPE:
        recipe.update((HERE / name).read_bytes())
    return f"localhost/ssdlab-fleet-server:{recipe.hexdigest()[:12]}"


def missing_tools() -> list[str]:
    """The commands that the bed needs and this machine lacks."""
    return [tool for tool in ("podman", "losetup", "blockdev", "ssh-keygen", "ssh") if not shutil.which(tool)]


def ensure_image() -> str:
    """Return the image's name; build the image first when there is none for this recipe."""
    name = image_name()
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "image.lock"):
        if podman("image", "exists", name, check=False).returncode == 0:
            return name
        tarball = CACHE / f"{name.rpartition(':')[2]}.tar"
        if not tarball.exists():
            bootstrap(tarball)
        podman("import", "--change", 'CMD ["/sbin/init"]', "--change", "STOPSIGNAL SIGRTMIN+3", str(tarball), name)
        remove_other_images(name)
    return name


def remove_other_images(name: str) -> None:
    """Images of older recipes go, unless a container still uses one."""
    repository = name.rpartition(":")[0]
    listed = podman("images", "--format", "{{.Repository}}:{{.Tag}}", repository).stdout.split()
    for old in set(listed) - {name}:
        podman("image", "rm", old, check=False)


def bootstrap(tarball: Path) -> None:
    """Make the root filesystem from Debian's packages; about 40 s and 280 MB. Older tarballs are removed."""
    if not shutil.which("mmdebstrap"):
        raise BedError(f"install mmdebstrap, or build the image yourself: podman build -t {image_name()} {HERE}")
    for old in CACHE.glob("*.tar"):
        old.unlink()
    part = tarball.with_suffix(".part")
    packages = ",".join((HERE / "packages.txt").read_text().split())
    try:
        run(
            [
                "mmdebstrap",
                "--quiet",
                "--format=tar",
                "--variant=minbase",
                f"--include={packages}",
                '--aptopt=Acquire::Languages "none"',
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                f"--customize-hook=copy-in {HERE / 'setup'} /root",
                '--customize-hook=chroot "$1" /root/setup',
                '--customize-hook=rm "$1/root/setup"',
                SUITE,
                str(part),
            ],
            stdout=sys.stderr,
        )
        part.rename(tarball)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path):
    """Hold an exclusive lock on a file while the block runs."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
