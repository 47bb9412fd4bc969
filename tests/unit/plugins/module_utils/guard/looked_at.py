# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive as the guard looks at it, and things that may be wrong with it."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check

SELECTOR = {"serial": "SN1"}


def codes(fake, *selectors):
    (result,) = guard_check.inspect(fake, [parse(selector) for selector in selectors or [SELECTOR]])
    assert result["eligible"] is (not result["refusals"])
    for refusal in result["refusals"] + result["overridden"]:
        assert sorted(refusal) == ["code", "message"] and "{detail}" not in refusal["message"]
    return [refusal["code"] for refusal in result["refusals"]]


def partition(host):
    host.partition(host.block, "nvme0n1p1", "259:7")


def mounted_partition(host):
    partition(host)
    host.mount("/dev/root", "259:7", "/srv")


def says(**answers):
    def stage(host):
        host.answers.update(answers)

    return stage
