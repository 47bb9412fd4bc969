# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/purge-ata-scsi.md says what is run, word for word."""

from __future__ import annotations

import pathlib
import re

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata, ata_security, scsi

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "purge-ata-scsi.md"
ROW = re.compile(r"^\| `((?:ata|scsi)_\w+)` \| (.*) \|$", re.MULTILINE)


def test_the_table_has_every_method_strongest_first_with_its_commands():
    found = {"path": "<drive>", "lba_size_bytes": 512, "protection_type": 0}
    methods = [*ata.METHODS, *scsi.METHODS]
    expected = [
        (method.name, ", ".join("`{}`".format(" ".join(argv)) for argv in method.commands(found, {})))
        for method in methods
    ]
    assert ROW.findall(PAGE.read_text()) == expected
    for family in (ata, scsi):
        strengths = [method.strength for method in family.METHODS]
        assert strengths == sorted(strengths, reverse=True)


def test_the_password_is_told():
    assert f"--security-disable {ata_security.PASSWORD} " in PAGE.read_text()
