# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a drive could be purged; tests/unit/plugins/modules/test_facts_modules.py has the rest of drive_facts."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

IDENTITY = Identity(path="/dev/loop9", size_bytes=1 << 30, max_discard_bytes=1 << 20, logical_block_size_bytes=512)


@pytest.mark.parametrize(
    ("codes", "probed"),
    [([], True), (["unsigned_data"], True), (["unsigned_data", "mounted"], False), (["busy"], False)],
)
def test_only_a_drive_that_may_be_erased_is_probed(codes, probed):
    found = drive_facts.purges(Host(), IDENTITY, codes)
    assert [offer.method for offer in found.offers] == (["deallocate", "overwrite"] if probed else [])
    assert set(found.capabilities) == ({"any"} if probed else set())


def test_a_drive_that_is_not_there_has_no_purge():
    assert drive_facts.purges(Host(), None, []) == ([], {})
