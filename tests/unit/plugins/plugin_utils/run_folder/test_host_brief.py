# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's snapshot in short; of a whole one it is tried in module_utils/machine/test_snapshot.py."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief

STATES = [
    {"name": name, "latency_us": latency, "disabled": False} for name, latency in (("POLL", 0), ("C1", 2), ("C6", 133))
]


@pytest.mark.parametrize(
    ("states", "limit_us", "told"),
    [
        (STATES, None, "on, down to C6"),
        (STATES, 2_000_000_000, "on, down to C6"),
        (STATES, 2, "on, down to C1"),
        (STATES, 0, "off"),
        ([STATES[0], STATES[1], {**STATES[2], "disabled": True}], None, "on, down to C1"),
        ([STATES[0], *({**state, "disabled": True} for state in STATES[1:])], None, "off"),
        ([], None, None),
        # A journal is what its host made of it.
        ("C6", None, None),
        ([None, {"name": ["C6"] * 5000, "latency_us": "?"}], 0, "off"),
    ],
)
def test_the_short_one_says_how_deep_cpus_may_sleep(states, limit_us, told):
    seen = {"tunables": {"idle_states": states, "cpu_dma_latency_us": limit_us}}
    assert host_brief.brief(seen).c_states == told


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        ({"a": {"iommu": "DMA"}, "b": {"iommu": "identity"}}, "DMA/identity"),
        ({"a": {"iommu": "DMA"}, "b": {"iommu": "DMA"}, "c": {"iommu": "identity"}}, "DMA"),
        ({"a": {"iommu": None}, "b": 5}, None),
        (["a"], None),
    ],
)
def test_the_short_one_joins_what_drives_have_unlike(devices, told):
    seen = {"pcie": {"drives": {"nvme0n1": "a", "nvme1n1": "b", "sda": None}, "devices": devices}}
    assert host_brief.brief(seen).iommu == told


@pytest.mark.parametrize(
    "tuned, told",
    [
        ({"no_turbo": "0"}, "on"),
        ({"no_turbo": "1"}, "off"),
        ({"boost": "1"}, "on"),
        ({"boost": "0"}, "off"),
        ({"no_turbo": None, "boost": None}, None),
        ({"no_turbo": "x", "boost": ["1"]}, None),
    ],
)
def test_whether_cpus_run_faster_than_their_base_frequency(tuned, told):
    assert host_brief.brief({"tunables": tuned}).turbo == told


@pytest.mark.parametrize("part", ["x", ["x"], {"mitigations": ["x"], "queue": 3, "nvme0n1": "x"}])
def test_any_snapshot_has_a_short_one(part):
    parts = part if isinstance(part, dict) else {}
    seen = {"cpu": parts, "tunables": parts, "pcie": part}
    assert host_brief.brief(seen).mitigations == {}


@pytest.mark.parametrize(
    ("services", "told"),
    [({}, None), ({"irqbalance.service": "active"}, "active"), (["irqbalance.service"], None), (None, None)],
)
def test_the_short_one_says_whether_irqbalance_runs(services, told):
    assert host_brief.brief({"tunables": {"services": services}}).irqbalance == told
