# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC proves to be a host's by its UUID or serial number, or its power is not touched."""

from __future__ import annotations

import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import bmc_proof
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.bmc import BmcIdentity

OWN = "4c4c4544-0042-3110-8051-b4c04f564433"
SWAPPED = str(uuid.UUID(bytes_le=uuid.UUID(OWN).bytes))
OTHER = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
ZEROS = "00000000-0000-0000-0000-000000000000"
OF_MANY = "03000200-0400-0500-0006-000700080009"


@pytest.mark.parametrize(
    ("uuids", "serials", "host_uuid", "host_serials", "told"),
    [
        ([OWN], [], OWN, [], ""),
        ([OWN.upper()], [], f"{OWN}\n", [], ""),
        ([SWAPPED], [], OWN, [], ""),
        ([OTHER, OWN], [], OWN, [], ""),
        # Dell's SerialNumber is of the board, and its SKU what DMI calls the product's.
        ([], ["CN7016367F0003", "B1B1QD3"], OWN, ["B1B1QD3"], ""),
        ([OWN], ["A"], OWN, ["another"], ""),
        ([OTHER], [], OWN, [], "another machine's"),
        ([OTHER], ["B1B1QD3"], OWN, ["B1B1QD3"], "another machine's"),
        ([], ["B1B1QD4"], None, ["B1B1QD3"], "B1B1QD4"),
        ([], [], OWN, ["B1B1QD3"], "nothing to compare"),
        ([OWN], [], None, [], "nothing to compare"),
        ([OF_MANY], [], OF_MANY, [], "nothing to compare"),
        (
            [ZEROS],
            [],
            ZEROS,
            [],
            "nothing to compare",
        ),
        ([], ["To be filled by O.E.M."], None, ["To be filled by O.E.M."], "nothing to compare"),
        ([], ["System Serial Number"], None, ["System Serial Number"], "nothing to compare"),
        ([], ["123456789"], None, ["123456789"], "nothing to compare"),
        ([], ["None"], None, ["None"], "nothing to compare"),
        ([], [""], None, [""], "nothing to compare"),
        (["no uuid"], [], "no uuid", [], "nothing to compare"),
    ],
)
def test_a_bmc_is_a_hosts_only_where_both_say_so(uuids, serials, host_uuid, host_serials, told):
    found = bmc_proof.problem(BmcIdentity(tuple(uuids), tuple(serials)), host_uuid, host_serials)
    assert (told in found) if told else found == ""
