# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole qualification on the oldest and the newest ansible-core, with the oldest Python that each takes on hosts; no
deprecation is let pass.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import versions

DEPRECATED = re.compile(
    r"^.*(?:\[DEPRECATION WARNING\]|ansible_collections/ssdlab/fleet/.*DeprecationWarning).*$", re.MULTILINE
)


@pytest.fixture(params=["oldest", "newest"])
def core(request):
    try:
        return versions.core(request.param)
    except versions.Missing as missing:
        pytest.skip(str(missing))


def test_the_readme_says_which_pythons_it_takes(core):
    major, minor = core.version.split(".")[:2]
    assert versions.documented()[int(major), int(minor)] == core.supported


def test_it_has_the_private_parts_that_we_touch(core, tmp_path):
    script = Path(__file__).with_name("private_parts.py")
    done = subprocess.run(
        [core.tools / "python", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(versions.ROOT / "playbooks/collections")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_whole_qualification(core, site, loop_drive):
    on_host = versions.oldest_within(core.supported.hosts)
    drive = loop_drive()
    site.tools = core.tools
    site.vars["ansible_python_interpreter"] = versions.pythons()[on_host]
    site.vars["ssd_leave"] = "as_is"
    site.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 100}]
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    before = drive.digest()
    told = {"ANSIBLE_DEPRECATION_WARNINGS": "1", "PYTHONWARNINGS": "default::DeprecationWarning"}
    for playbook in ("discover", "qualify", "stop", "restore", "cleanup"):
        code, output = site.play(playbook, env=told)
        assert code == 0, output
        assert DEPRECATED.findall(output) == []
    assert site.summary()["verdicts"]["pass"] == 1 and drive.digest() != before
    assert site.run_folders() == []
    print(f"ansible-core {core.version}: passed, with Python {versions.text(on_host)} on the host")
