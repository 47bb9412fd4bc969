# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two ways users have: a bare clone, and the collection installed elsewhere. Without any of our scripts or
settings.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from bed import Bed, attach, run, why_not
from play import REPO, STATE_DIR, Fleet, clean_env, left_behind

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.skipif(not (REPO / ".git").exists(), reason="needs a git checkout to clone"),
]

CALLBACK_LINE = "callbacks_enabled = ssdlab.fleet.fleet"
FACTS_LINE = "inject_facts_as_vars = False"
CELL = {"access": "random", "block_size": "4KiB", "read_pct": 0, "queue_depth": 4, "runtime_s": 1, "rate_iops": 1000}
PLAN = [
    {"name": "one", "purge": {"method": "deallocate"}, "precondition": False, "cells": [CELL], "rounds": {"max": 1}}
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A machine where nobody used Ansible yet: an empty home, a clone, and what requirements.txt asks for."""
    folder = tmp_path_factory.mktemp("fresh")
    run(["git", "clone", "--quiet", str(REPO), str(folder / "clone")])
    run([sys.executable, "-m", "venv", str(folder / "venv")])
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-r", str(folder / "clone/requirements.txt")])
    return folder


@pytest.fixture(scope="module")
def installed(home):
    """The collection, built from the clone and installed where nothing else is."""
    galaxy = str(home / "venv/bin/ansible-galaxy")
    built = command(
        home, home, galaxy, "collection", "build", str(home / "clone"), "--output-path", str(home / "built")
    )
    assert built.returncode == 0, built.stderr
    tarball = next((home / "built").glob("ssdlab-fleet-*.tar.gz"))
    with tarfile.open(tarball) as packed:
        names = packed.getnames()
    assert "qualify.yml" in names and not [name for name in names if "ansible_collections" in name]
    done = command(
        home,
        home,
        galaxy,
        "collection",
        "install",
        str(tarball),
        "--no-deps",
        "--offline",
        "-p",
        str(home / "elsewhere"),
    )
    assert done.returncode == 0, done.stderr
    return home / "elsewhere"


@pytest.fixture(scope="module")
def bed():
    """One server with one drive."""
    made = Bed("install")
    try:
        yield made.up(servers=1, drives=1)
    finally:
        made.down()


@pytest.fixture
def drive():
    """A loop device of this machine with something on it."""
    folder = Path("/dev/shm") / f"ssdlab-fleet-install-{os.getpid()}"
    folder.mkdir(mode=0o700)
    made = None
    try:
        made = attach(folder / "drive.img")
        made.backing_file.write_bytes(b"\xa5" * made.backing_file.stat().st_size)
        yield made
    finally:
        if made:
            run(["losetup", "--detach", made.device])
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def command(home: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess:
    """Run a command as on the fresh machine: no environment variables of Ansible's, another home."""
    env = {**clean_env(), "HOME": str(home), "PATH": f"{home}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    env.pop("VIRTUAL_ENV", None)
    env.pop("PYTHONPATH", None)
    return run(list(argv), check=False, cwd=cwd, env=env)


def project(folder: Path, collections: Path, callback: bool) -> Path:
    """A user's own folder with an ansible.cfg."""
    folder.mkdir()
    lines = ["[defaults]", f"collections_path = {collections}", FACTS_LINE, *([CALLBACK_LINE] if callback else [])]
    (folder / "ansible.cfg").write_text("\n".join(lines) + "\n")
    return folder


def plan_mode(home: Path, clone: Path, playbook: str, drive, tmp_path: Path) -> None:
    """The default mode shows what would be erased, and erases nothing."""
    hosts = {
        "here": {
            "ansible_connection": "local",
            "ssd_drives": [{"backing_file": str(drive.backing_file), "ssd_overwrite_data": True}],
        }
    }
    inventory = tmp_path / "inventory.json"
    inventory.write_text(
        json.dumps({"all": {"children": {"ssd_servers": {"hosts": hosts, "vars": {"ssd_plan": PLAN}}}}})
    )
    done = command(home, clone, "ansible-playbook", playbook, "-i", str(inventory))
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(drive.backing_file) in done.stdout
    assert "changed=0" in done.stdout
    content = drive.backing_file.read_bytes()
    assert content.count(b"\xa5") == len(content)


@pytest.mark.parametrize("playbook", ["playbooks/qualify.yml", "qualify.yml"])
def test_plan_mode_from_a_bare_clone(home, drive, tmp_path, playbook):
    """In the root as AWX does it, too."""
    plan_mode(home, home / "clone", playbook, drive, tmp_path)


def test_from_the_root_of_a_clone_without_the_links(home, installed, drive, tmp_path):
    """A checkout that lost its links (a zip file, Windows) takes the collection from where it is installed."""
    clone = tmp_path / "clone"
    run(["git", "clone", "--quiet", str(home / "clone"), str(clone)])
    for link in clone.glob("**/ansible_collections/ssdlab/fleet"):
        link.unlink()
    missing = command(home, clone, "ansible-playbook", "qualify.yml", "-i", "localhost,")
    assert missing.returncode != 0 and "ssdlab.fleet" in missing.stdout + missing.stderr
    settings = re.sub(
        "^collections_path = .*$",
        f"collections_path = {installed}",
        (clone / "ansible.cfg").read_text(),
        flags=re.MULTILINE,
    )
    (clone / "ansible.cfg").write_text(settings)
    plan_mode(home, clone, "qualify.yml", drive, tmp_path)


def test_installed_collection(home, installed, bed, tmp_path):
    """By its full name from another directory: modules, callback and report come from the tarball."""
    fleet = Fleet(bed, tmp_path, "installed", PLAN)
    folder = project(tmp_path / "mine", installed, callback=True)
    done = command(home, folder, "ansible-playbook", "ssdlab.fleet.qualify", "-i", str(fleet.inventory))
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in (fleet.results / "results.jsonl").read_text().splitlines()]
    assert {"drive", "test"} <= {record["kind"] for record in records}
    assert fleet.verdicts() == {"server1": ["pass"]}
    assert left_behind(bed, bed.servers[0]) == []


def test_without_the_callback_nothing_is_erased(home, installed, bed, tmp_path):
    """Preflight stops with the line to add, before any drive is touched."""
    fleet = Fleet(bed, tmp_path, "no-callback", PLAN)
    folder = project(tmp_path / "mine", installed, callback=False)
    done = command(home, folder, "ansible-playbook", "ssdlab.fleet.qualify", "-i", str(fleet.inventory))
    assert done.returncode != 0, done.stdout
    assert CALLBACK_LINE in done.stdout + done.stderr
    assert bed.exec(bed.servers[0], "test", "-e", f"{STATE_DIR}/runs/no-callback", check=False).returncode != 0
