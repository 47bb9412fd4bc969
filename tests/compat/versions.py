# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons at hand, and virtual environments with the oldest and the newest ansible-core that requirements.txt
allows.
"""

from __future__ import annotations

import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import subprocess
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache/compat"
REQUIREMENTS = ROOT / "requirements.txt"
# What the modules and the engine are written for, whatever an ansible-core takes beside it.
OLDEST_ON_HOSTS = (3, 8)
PIN = re.compile(r"^ansible-core>=(\d+)\.(\d+),<(\d+)\.(\d+)$", re.MULTILINE)
ROW = re.compile(
    r"^\| ((?:\d\.\d+(?:, )?)+) \| (\d)\.(\d+) to (\d)\.(\d+) \| (\d)\.(\d+) to (\d)\.(\d+) \|$", re.MULTILINE
)
ASK = """import json
from ansible.release import __version__
from ansible_test._util.target.common import constants
print(json.dumps([__version__, constants.CONTROLLER_PYTHON_VERSIONS, constants.REMOTE_ONLY_PYTHON_VERSIONS]))"""

Version = t.Tuple[int, int]


class Missing(Exception):
    """This machine lacks a Python that the check needs; the message names it."""


class Supported(t.NamedTuple):
    """The oldest and the newest Python, on the controller and on hosts."""

    controller: tuple[Version, Version]
    hosts: tuple[Version, Version]


class Core(t.NamedTuple):
    """An installed ansible-core: its version, its programs' folder, and what it says that it supports."""

    version: str
    tools: Path
    supported: Supported


def text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


@functools.lru_cache(maxsize=None)
def pythons() -> dict[Version, str]:
    """A Python of each minor version at hand: in PATH, else of pyenv. One that is only a shim does not start and does
    not count.
    """
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    folders = [*os.get_exec_path(), *sorted(glob.glob(f"{pyenv}/versions/*/bin"))]
    found: dict[Version, str] = {}
    for path in (path for folder in folders for path in sorted(glob.glob(f"{folder}/python3.*"))):
        if re.fullmatch(r"python3\.\d+", os.path.basename(path)):
            asked = subprocess.run(
                [path, "-c", "import sys, ensurepip; print(*sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
            if asked.returncode == 0:
                major, minor = asked.stdout.split()
                found.setdefault((int(major), int(minor)), path)
    return found


def documented() -> dict[Version, Supported]:
    """The table of docs/install.md: for each ansible-core the Pythons that it takes."""
    table = {}
    for row in ROW.finditer((ROOT / "docs/install.md").read_text(encoding="utf-8")):
        numbers = [int(number) for number in row.groups()[1:]]
        pairs = [(numbers[index], numbers[index + 1]) for index in range(0, len(numbers), 2)]
        for name in row.group(1).split(", "):
            major, minor = name.split(".")
            table[int(major), int(minor)] = Supported((pairs[0], pairs[1]), (pairs[2], pairs[3]))
    return table


def pinned() -> dict[str, Version]:
    """The oldest and the newest ansible-core of requirements.txt."""
    match = PIN.search(REQUIREMENTS.read_text(encoding="utf-8"))
    assert match, f"{REQUIREMENTS} does not say ansible-core>=X.Y,<X.Z"
    low, high = (int(match.group(1)), int(match.group(2))), (int(match.group(3)), int(match.group(4)) - 1)
    return {"oldest": low, "newest": high}


def oldest_within(limits: tuple[Version, Version]) -> Version | None:
    """The oldest Python at hand that is not outside the limits."""
    return min((version for version in pythons() if limits[0] <= version <= limits[1]), default=None)


def _install(python: str, place: Path, ansible_core: str) -> None:
    """Install requirements.txt at `place`, unless it is there: once, though two checks ask for it at a time."""
    stamp, requirements = place / "requirements", hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == requirements:
            return
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS), ansible_core], check=True)
        stamp.write_text(requirements, encoding="utf-8")


def core(which: str) -> Core:
    """The `oldest` or the `newest` ansible-core, installed below .cache with the other requirements. Raises Missing."""
    wanted = pinned()[which]
    limits = documented()[wanted].controller
    python = oldest_within(limits)
    if python is None:
        raise Missing(
            f"ansible-core {text(wanted)} needs Python {text(limits[0])} to {text(limits[1])} on the controller, "
            "which this machine has not"
        )
    place = KEPT / f"core-{text(wanted)}-python-{text(python)}"
    _install(pythons()[python], place, f"ansible-core=={text(wanted)}.*")
    said = subprocess.run([place / "bin/python", "-c", ASK], check=True, capture_output=True, text=True).stdout
    version, controllers, others = json.loads(said)
    on_controller, on_hosts = (
        sorted(_numbers(name) for name in names) for names in (controllers, controllers + others)
    )
    supported = Supported((on_controller[0], on_controller[-1]), (max(on_hosts[0], OLDEST_ON_HOSTS), on_hosts[-1]))
    return Core(version, place / "bin", supported)


def _numbers(name: str) -> Version:
    major, minor = name.split(".")
    return int(major), int(minor)
