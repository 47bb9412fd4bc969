# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.version import collection_version


@pytest.mark.parametrize(
    "name, text",
    [("galaxy.yml", "namespace: x\nversion: 1.2.3\n"), ("MANIFEST.json", '{"collection_info": {"version": "1.2.3"}}')],
)
def test_a_checkout_and_an_installed_collection_know_their_version(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert collection_version(tmp_path) == "1.2.3"
