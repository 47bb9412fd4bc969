# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installation of docs/offline.md, in a network namespace without any interface."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs/offline.md").read_text()
(ONLINE, OFFLINE, WITHOUT) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
GENERAL = REPO / ".ansible/collections/ansible_collections/community/general"
# What a user may keep in a checkout.
OWN = ("inventory.yml", "inventory/hosts.yml", "inventories/prod/hosts.yml", "inventories/dc1/hosts.yml", "vault.yml")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a network namespace"),
    pytest.mark.skipif(not GENERAL.is_dir(), reason="needs community.general in .ansible"),
    pytest.mark.skipif(not (REPO / ".git").exists(), reason="needs a git checkout to clone"),
]


def line(page, start):
    """The line of a snippet that begins like this."""
    (found,) = [each for each in page.splitlines() if each.startswith(start)]
    return found


def sh(folder, command, alone=True):
    """A command of the page in a folder, with nothing of Ansible's set; alone: without any network."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    argv = ["/bin/sh", "-c", command]
    return subprocess.run(
        ["unshare", "--net", *argv] if alone else argv,
        cwd=folder,
        env={**kept, "HOME": str(folder / "home"), "ANSIBLE_NOCOLOR": "1"},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A clone with a user's own files in it, what was carried over, and the environment of this test as its own."""
    made = tmp_path_factory.mktemp("offline") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(REPO), str(made)], check=True)
    # What is not committed yet counts as well.
    for name in (
        "galaxy.yml",
        ".gitignore",
        "ansible.cfg",
        "plugins/test/collections.py",
        "plugins/test/installed.yml",
    ):
        shutil.copy(REPO / name, made / name)
    (made / ".venv").symlink_to(Path(sys.executable).parent.parent)
    (made / "home").mkdir()
    for name in OWN:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("secret: yes\n")
    built = sh(made, f"mkdir -p offline && PATH=$PWD/.venv/bin:$PATH {line(ONLINE, 'ansible-galaxy collection build')}")
    assert built.returncode == 0, built.stdout + built.stderr
    # In place of `ansible-galaxy collection download`. Set-up unpacks a part of its files: it has to be built anew.
    about = json.loads((GENERAL / "MANIFEST.json").read_text())["collection_info"]
    kept = {key: about[key] for key in ("namespace", "name", "version", "readme", "authors")}
    shutil.copytree(GENERAL, made.parent / "general", ignore=shutil.ignore_patterns("MANIFEST.json", "FILES.json"))
    (made.parent / "general/galaxy.yml").write_text(json.dumps(kept))
    built = sh(made, f"{made}/.venv/bin/ansible-galaxy collection build ../general --output-path offline")
    assert built.returncode == 0, built.stdout + built.stderr
    return made


def test_nothing_of_a_users_own_gets_into_the_collection_or_a_commit(folder):
    (made,) = folder.glob("offline/ssdlab-fleet-*.tar.gz")
    with tarfile.open(made) as packed:
        names = set(packed.getnames())
    assert not names & set(OWN) and {"inventories/lab/hosts.yml", "inventories/cmdb/1-servers.yml"} <= names
    assert {"playbooks/awx.yml", "extensions/molecule/inventory.yml"} <= names
    seen = subprocess.run(["git", "status", "--short"], cwd=folder, text=True, capture_output=True, check=True).stdout
    assert [name for name in OWN if name.split("/", maxsplit=1)[0] in seen] == []


def test_both_collections_are_installed_from_files_and_a_playbook_is_found(folder):
    done = sh(folder, line(OFFLINE, ".venv/bin/ansible-galaxy"))
    assert done.returncode == 0, done.stdout + done.stderr
    installed = folder / "home/.ansible/collections/ansible_collections"
    assert (installed / "community/general").is_dir() and (installed / "ssdlab/fleet/qualify.yml").is_file()
    mine = folder / "home/mine"
    mine.mkdir()
    found = sh(
        folder, "cd home/mine && ../../.venv/bin/ansible-playbook ssdlab.fleet.qualify --list-tasks -i rack1-07,"
    )
    assert found.returncode == 0 and "Judge the drives" in found.stdout, found.stdout + found.stderr


def test_what_is_missing_without_its_dependency_is_told_where_it_is_needed(folder, tmp_path):
    shutil.rmtree(folder / "home/.ansible", ignore_errors=True)
    alone = sh(folder, line(WITHOUT, ".venv/bin/ansible-galaxy").replace("--no-deps ", ""))
    assert alone.returncode != 0 and "community.general" in alone.stdout + alone.stderr, "why the page has --no-deps"
    done = sh(folder, line(WITHOUT, ".venv/bin/ansible-galaxy"))
    assert done.returncode == 0, done.stdout + done.stderr
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "ssdlab.fleet.vendor", "tasks_from": "power_cycle"},
                "vars": {
                    "vendor_power_cycle": True,
                    "vendor_power_cycle_reason": "A test.",
                    "vendor_bmc_address": "127.0.0.1",
                    "vendor_bmc_user": "root",
                    "vendor_bmc_password": "x",
                    "ssd_mode": "destructive",
                },
            }
        ],
    }
    (tmp_path / "own.yml").write_text(json.dumps([play]))
    (tmp_path / "ansible.cfg").write_text("[defaults]\ninject_facts_as_vars = False\n")
    told = sh(folder, f"cd {tmp_path} && {folder}/.venv/bin/ansible-playbook own.yml -i localhost, -c local")
    said = " ".join((told.stdout + told.stderr).split())
    assert told.returncode != 0 and "the collection community.general is not on the controller" in said, said


@pytest.mark.long
def test_wheels_carry_the_python_packages(folder):
    carried = sh(folder, f"PATH=$PWD/.venv/bin:$PATH {line(ONLINE, 'pip download')}", alone=False)
    assert carried.returncode == 0, carried.stdout + carried.stderr
    commands = OFFLINE.replace("python3 -m venv .venv", f"{sys.executable} -m venv fresh").replace(".venv/", "fresh/")
    done = sh(folder, "\n".join(commands.splitlines()[:2]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sh(folder, "fresh/bin/ansible-playbook --version").returncode == 0
