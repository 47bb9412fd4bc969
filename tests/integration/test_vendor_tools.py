# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vendor.yml against emulated drives; the power cycles are test_vendor_power_cycle.py's."""

from __future__ import annotations

import json
import os

import emulator
import pytest
import vendor_lab
from vendor_lab import REPO, pending

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for the drives' locks")


@pytest.fixture
def lab(site, tmp_path):
    """A site with emulated drives."""
    return vendor_lab.furnished(site, tmp_path)


def test_a_setting_stops_with_the_instruction_and_a_second_run_sends_nothing(lab):
    wanted = [{"serial": "S1", "queue_depth": 256, "power_limiting": True}]
    code, output = lab.vendor("--check", "--diff", vendor_rssdm=wanted)
    assert code == 0 and "would be left out: it may not be power-cycled" in output and '"0xD801F"' in output, output
    assert pending(lab) == {"OTHER": {}, "S1": {}, "S2": {}}
    for changed in ("changed=1", "changed=0"):
        code, output = lab.vendor()
        assert (
            code != 0
            and "Power-cycle the host (a reboot is not enough)" in output
            and "vendor_power_cycle=true" in output
        ), output
        assert changed in output, output
    assert pending(lab) == {"OTHER": {}, "S1": {"interrupt_coalescing": 0xD801F, "power_limiting": 1}, "S2": {}}
    emulator.power_cycle(lab.machine)
    code, output = lab.vendor(vendor_rssdm=[{"serial": "S1"}])
    assert code != 0 and "power cycle" in output  # in the same boot: nobody can know


@pytest.mark.parametrize(
    "wanted, says",
    [
        ({"serial": "S1", "interrupt_coalescing": "0xD800F"}, "unexpected results"),
        ({"serial": "S2", "power_limiting": True}, "2.5-inch"),
        ({"serial": "S1", "write_cache": True, "write_cache_flag": "-w"}, "write cache is enabled"),
        ({"serial": "0", "power_limiting": True}, "lists no drives"),
        ({"serial": "x; rm -rf /", "power_limiting": True}, "lists no drives"),
    ],
)
def test_bad_values_are_refused(lab, wanted, says):
    code, output = lab.vendor(vendor_rssdm=[wanted])
    assert code != 0 and says in output.replace("\n", " "), output
    assert not any(pending(lab).values())


def test_cards_are_brought_to_their_state_once_and_never_formatted_unguarded(lab):
    for changed in ("changed=1", "changed=0"):
        code, output = lab.vendor(vendor_iomemory=[{"serial": "C1", "state": "detached"}])
        assert code == 0 and changed in output, output
    assert [card["attached"] for card in lab.seen()["iomemory"]["cards"]] == [True, False]
    lab.vendor(vendor_iomemory=[{"serial": "C1", "state": "attached"}])
    # The emulated card has no block device here, so the real guard knows no such drive.
    code, output = lab.vendor(
        vendor_iomemory=[{"serial": "C1", "state": "formatted", "sector_bytes": 4096, "size_pct": 80}]
    )
    assert code != 0 and "may not be formatted. not_found" in output, output
    assert [card["formats"] for card in lab.seen()["iomemory"]["cards"]] == [0, 0]


def test_a_write_delay_is_told_in_check_mode_and_a_wrong_one_refused(lab):
    before = sorted(os.listdir("/etc/modprobe.d")) if os.path.isdir("/etc/modprobe.d") else None
    code, output = lab.vendor("--check", "--diff", vendor_iomemory_dma_delay="0")
    assert code == 0 and "changed=1" in output and "dma_delay" in output, output
    for wrong in ("32", "-1", "off"):
        code, output = lab.vendor(vendor_iomemory_dma_delay=wrong)
        assert code != 0 and f"dma_delay {wrong} is refused" in " ".join(output.split()), output
    assert before == (sorted(os.listdir("/etc/modprobe.d")) if os.path.isdir("/etc/modprobe.d") else None)


def test_an_over_subscribed_bus_stops_the_play(lab):
    assert lab.vendor(vendor_iomemory_pci_check=True)[0] == 0
    with emulator.state(lab.machine) as machine:
        machine["iomemory"]["pci_check"] = "oversubscribed"
    code, output = lab.vendor()
    assert code != 0 and "need 3000 MB/s, it has 2000 MB/s" in output, output


def test_a_bugreport_is_kept_with_the_results(lab, tmp_path):
    """The step of collect.yml, with the run that collect.yml knows by then."""
    play = tmp_path / "keep.yml"
    play.write_text(
        json.dumps(
            [
                {
                    "hosts": "ssd_servers",
                    "gather_facts": False,
                    "vars": {"ssd_decision": {"run": {"id": "r1", "results_dir": str(lab.results)}}},
                    "tasks": [
                        {"ansible.builtin.include_role": {"name": "ssdlab.fleet.vendor", "tasks_from": "bugreport"}}
                    ],
                }
            ]
        )
    )
    code, output = lab.play(
        play, env=dict(lab.environment, ANSIBLE_COLLECTIONS_PATH=str(REPO / "playbooks" / "collections"))
    )
    assert code == 0, output
    (kept,) = (lab.results / "r1" / "bugreports" / "server").iterdir()
    assert kept.name.startswith("fio-bugreport-") and kept.stat().st_size > 0
    assert not list(tmp_path.glob("fio-bugreport-*"))
