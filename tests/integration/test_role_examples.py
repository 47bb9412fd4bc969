# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in the roles' READMEs are played as a reader would copy them: in plan mode, or up to the point where
they need a run, a tool or a service that this machine lacks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = [str(REPO / "playbooks/collections"), str(REPO / ".ansible/collections")]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROLES = sorted(path.parent.name for path in (REPO / "roles").glob("*/README.md"))
# Whatever a README's variables say, nothing is erased here and nothing becomes another user.
SAFE = {"ssd_mode": "plan", "ansible_become": False}
# What each example says and how it ends: (extra variables, exit code 0, words of its output).
OUTCOMES = {
    "precondition": ({}, True, ["would erase", "precondition 2 x"]),
    "preflight": ({}, True, ["would erase", "nothing was erased or changed"]),
    "purge": ({}, True, ["would erase", "purge by deallocate"]),
    "report": ({"ssd_results_dir": "results"}, False, ["no run 20261121T130000Z-qualify on this controller"]),
    "ssd": ({}, False, ["no run of this controller is named"]),
    "tune": ({"tune_boot_enabled": False}, True, ["nothing was erased or changed"]),
    "vendor": ({"vault_bmc_user": "lab", "vault_bmc_password": "-"}, False, ["rssdm is not installed or not in PATH"]),
    "workload": ({}, True, ["would erase", "wsat:", "iops:"]),
}


def example(role):
    """The play of a role's README; the one of `ssd` is a task for a play of the reader's."""
    texts = BLOCK.findall((REPO / f"roles/{role}/README.md").read_text(encoding="utf-8"))
    (text,) = [text for text in texts if isinstance(yaml.safe_load(text), list)]
    return text if "hosts" in yaml.safe_load(text)[0] else "- hosts: ssd_servers\n  tasks:\n" + indented(text)


def indented(text):
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


@pytest.fixture
def play(site, loop_drive, tmp_path):
    """play(role, variables, *arguments): the example, outside of the repository, with one drive in the inventory."""
    selector = loop_drive("spare", size_bytes=128 << 20).selector
    site.hosts = {"rack1-07": {"ssd_drives": [selector]}}

    def run(role, variables, *arguments):
        book = tmp_path / f"{role}.yml"
        book.write_text(example(role), encoding="utf-8")
        extra = json.dumps({**SAFE, **variables})
        environment = {"ANSIBLE_COLLECTIONS_PATH": ":".join(COLLECTIONS)}
        return site.play(book, *arguments, "-e", extra, env=environment, cwd=tmp_path)

    return run


def test_every_role_has_an_example():
    assert {*OUTCOMES, "awx"} == set(ROLES)
    assert all(f"ssdlab.fleet.{role}" in example(role) for role in ROLES)


@pytest.mark.variants(4)
@pytest.mark.parametrize("role", OUTCOMES)
def test_an_example_does_what_its_readme_says(play, site, role):
    variables, succeeds, words = OUTCOMES[role]
    code, output = play(role, variables)
    flat = " ".join(output.split())
    assert (code == 0) is succeeds, output
    for word in words:
        assert word in flat, output
    assert site.run_folders() == []


def test_the_example_of_awx_is_a_playbook(play):
    if not (REPO / ".ansible/collections/ansible_collections/awx/awx").exists():
        pytest.skip("the collection awx.awx is not here")
    code, output = play("awx", {}, "--syntax-check")
    assert code == 0, output
