# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory_dma
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError


@pytest.fixture
def loaded(fake):
    """A host with the driver loaded at its default."""
    fake.put("/sys/module/iomemory_vsl/parameters/iodrive_dma_delay", "16\n")
    return fake


def test_the_file_is_written_once(loaded):
    first = iomemory_dma.apply(loaded, "0")
    assert first == iomemory_dma.DmaDelay(True, None, 0, 16, True)
    assert loaded.read(iomemory_dma.FILE).splitlines()[-1] == "options iomemory-vsl iodrive_dma_delay=0"
    assert iomemory_dma.apply(loaded, 0) == iomemory_dma.DmaDelay(False, 0, 0, 16, True)


def test_the_driver_loaded_anew_has_it(loaded):
    iomemory_dma.apply(loaded, "31")
    loaded.put("/sys/module/iomemory_vsl/parameters/iodrive_dma_delay", "31")
    assert iomemory_dma.apply(loaded, "31") == iomemory_dma.DmaDelay(False, 31, 31, 31, False)
    assert iomemory_dma.apply(loaded, "default") == iomemory_dma.DmaDelay(True, 31, None, 31, True)
    assert not loaded.exists(iomemory_dma.FILE)
    assert not iomemory_dma.apply(loaded, "default").changed


def test_check_mode_writes_nothing(loaded):
    assert iomemory_dma.apply(loaded, "5", check=True) == iomemory_dma.DmaDelay(True, None, 5, 16, True)
    assert not loaded.exists(iomemory_dma.FILE)


def test_without_a_driver_nothing_is_to_be_loaded_anew(fake):
    assert iomemory_dma.apply(fake, "5") == iomemory_dma.DmaDelay(True, None, 5, None, False)
    assert iomemory_dma.apply(fake, None) == iomemory_dma.DmaDelay(False, 5, 5, None, False)


def test_the_driver_of_the_newer_cards(fake):
    fake.put("/sys/module/iomemory_vsl4/parameters/iodrive_dma_delay", "16")
    iomemory_dma.apply(fake, "1")
    assert "options iomemory-vsl4 " in fake.read(iomemory_dma.FILE)


@pytest.mark.parametrize("bad", ["32", "-1", "1.5", "", "x", "0 foo=1", "0\noptions other x=1"])
def test_other_values_are_refused(loaded, bad):
    with pytest.raises(ToolError, match="0 .none. to 31"):
        iomemory_dma.apply(loaded, bad)
    assert not loaded.exists(iomemory_dma.FILE)


def test_another_file_that_sets_it_is_told(loaded):
    loaded.put("/etc/modprobe.d/fusion.conf", "# iodrive_dma_delay=1\noptions iomemory-vsl iodrive_dma_delay=3 x=1\n")
    with pytest.raises(ToolError, match="/etc/modprobe.d/fusion.conf"):
        iomemory_dma.apply(loaded, "0")
    loaded.put("/etc/modprobe.d/fusion.conf", "# options iomemory-vsl iodrive_dma_delay=3\n")
    assert iomemory_dma.apply(loaded, "0").changed
