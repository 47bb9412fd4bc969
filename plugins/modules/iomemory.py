#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: iomemory
short_description: Show, attach, detach and format Fusion-io ioMemory cards, and set the driver's write delay
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Returns what C(fio-status) shows of every card of the host, and brings one card, named by its serial number, to a
    state.
  - A format erases the card. It is done only with O(mode=destructive), and only if the guard does not refuse it; the
    drive's lock is held meanwhile. This module has none of the guard's overrides. To erase a card that holds data, use
    C(playbooks/purge.yml), which has them.
  - Needs root and Fusion-io's C(fio-util).
extends_documentation_fragment:
  - ssdlab.fleet.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: O(bugreport) makes a new report each time. The LEDs do not report their state, so O(beacon) is compared
      with the state that was set last in this boot.
options:
  serial:
    description: The card's serial number, in quotes, as C(fio-status) shows it. Needed by O(state) and O(beacon).
    type: str
  state:
    description:
      - V(attached) and V(detached) show and hide the block device. C(fio-detach) refuses while the device is in use,
        and this module refuses while a run is using it.
      - V(formatted) formats the card if its sector size or capacity differs from O(sector_bytes) or O(size_pct).
    type: str
    choices: [attached, detached, formatted]
  sector_bytes:
    description: Sector size to format to; V(512) for tests with blocks below 4 KiB, else V(4096). Without it the card
      keeps its own.
    type: int
    choices: [512, 4096]
  size_pct:
    description: Capacity to format to, 1 to 100 per cent of the advertised one. The guide's presets are 90 and 80.
      Without it the card keeps its own. A purge takes 80 to 100 (C(purge_iomemory_size_pct)).
    type: int
  mode:
    description: With V(plan) a format is only reported, as in check mode.
    type: str
    choices: [plan, destructive]
    default: plan
  dma_delay:
    description:
      - The driver's C(iodrive_dma_delay), from V(0) (none) to V(31) (10 µs), kept in
        C(/etc/modprobe.d/ssdlab-fleet-iomemory.conf).
      - V(default) removes that file; the driver's own value is 16 (5 µs). A change takes effect when the driver is
        reloaded.
      - The delay lets a card drop data that a failing power supply corrupts. Set it to V(0) only if the supply is known
        to be sound.
    type: str
  beacon:
    description: Switch the LEDs that identify the card on (V(true)) or off.
    type: bool
  pci_check:
    description: Also run C(fio-pci-check -n), which clears nothing, and return RV(findings).
    type: bool
    default: false
  bugreport:
    description: Also run C(fio-bugreport), and leave its archive at C(<state_dir>/fio-bugreport).
    type: bool
    default: false
  bugreport_dir:
    description: A folder on the controller. The report is moved there from the host.
    type: path
  state_dir:
    description:
      - Where the state last set for the LEDs is kept, in C(iomemory/<serial>.json).
      - The guard reads there what runs left on a card. A card that a run keeps as evidence is not formatted;
        C(playbooks/purge.yml) formats it if its entry has C(release_evidence).
    type: path
    default: /var/lib/ssdlab-fleet
seealso:
  - module: ssdlab.fleet.rssdm
"""

EXAMPLES = r"""
- name: Look at the cards and the bus
  ssdlab.fleet.iomemory:
    pci_check: true
  become: true
  register: seen

- name: Format for a write-heavy load with 4 KiB blocks
  ssdlab.fleet.iomemory:
    serial: "1241D0259"
    state: formatted
    sector_bytes: 4096
    size_pct: 80
    mode: "{{ ssd_mode }}"
  become: true

- name: Find the card that fails
  ssdlab.fleet.iomemory:
    serial: "1241D0259"
    beacon: true
  become: true

- name: No delay of writes, after the driver is loaded again
  ssdlab.fleet.iomemory:
    dma_delay: 0
  become: true
"""

RETURN = r"""
cards:
  description: Every card, in the order of C(fio-status), as it is at the end. A key is null where it is not shown.
  returned: success
  type: list
  elements: dict
  contains:
    control:
      description: The control device, which is there whether it is attached or not.
      type: str
      sample: /dev/fct0
    state:
      description: V(attached), V(detached), or V(unknown) for anything else.
      type: str
      sample: attached
    serial:
      description: Serial number.
      type: str
      sample: 1241D0259
    block:
      description: The block device, while it is attached.
      type: str
      sample: fioa
    pci_address:
      description: Bus, device and function.
      type: str
      sample: "04:00.0"
    model:
      description: Model.
      type: str
      sample: ioDrive2 Adapter Controller
    firmware:
      description: Firmware version.
      type: str
      sample: v7.1.15
    size_bytes:
      description: Capacity as it is formatted.
      type: int
      sample: 1205000000000
    sector_bytes:
      description: Sector size as it is formatted.
      type: int
      sample: 512
    advertised_bytes:
      description: Advertised capacity, from the card's name.
      type: int
      sample: 1205000000000
    size_pct:
      description: Capacity in per cent of the advertised one.
      type: int
      sample: 100
    link_lanes:
      description: Lanes of the PCI Express link.
      type: int
      sample: 4
    link_speed_gts:
      description: Speed of a lane, in GT/s.
      type: float
      sample: 5.0
    temperature_c:
      description: Temperature inside, in °C.
      type: float
      sample: 64.47
    reserve:
      description: State of the reserve.
      type: str
      sample: Healthy
    reserves_pct:
      description: Percentage of the reserve that is left.
      type: float
      sample: 100.0
    reserves_warn_pct:
      description: Percentage of the reserve at which the card warns.
      type: float
      sample: 10.0
    writes_left_pct:
      description: Percentage of the rated writes (PBW) that is left.
      type: float
      sample: 99.46
    power_loss:
      description: State of its power-loss protection.
      type: str
      sample: protected
    bus_errors:
      description: PCI Express errors that the card reports.
      type: str
      sample: correctable
    highest_c:
      description: The highest temperature inside so far, in °C.
      type: float
      sample: 64.5
    trouble:
      description: What the card reports as wrong, in its own words; null if nothing is.
      type: str
      sample: null
commands:
  description: The argument lists that were run to change the card. In check mode and with O(mode=plan), that would be
    run.
  returned: success
  type: list
  elements: list
  sample: [[fio-detach, /dev/fct0], [fio-format, "-y", "-b", "4096", "-s", "80%", /dev/fct0], [fio-attach, /dev/fct0]]
message:
  description: What was not done, and why; empty otherwise.
  returned: success
  type: str
  sample: ""
dma_delay:
  description: The driver's write delay.
  returned: success
  type: dict
  contains:
    configured:
      description: Value in this collection's options file; null without that file.
      type: int
      sample: 0
    effective:
      description: Value of the loaded driver; null if none is loaded.
      type: int
      sample: 16
driver_reload_required:
  description: Whether the driver must be reloaded for O(dma_delay).
  returned: success
  type: bool
  sample: true
findings:
  description: What C(fio-pci-check) and C(fio-status) find wrong with the bus, as the preflight's findings.
  returned: when O(pci_check=true)
  type: list
  elements: dict
  contains:
    check:
      description: V(pcie_bandwidth), V(pcie_errors), V(pcie_link_width), V(pcie_other) or V(iomemory_state).
      type: str
      sample: pcie_bandwidth
    drive:
      description: Serial number of the card that it is about; null for a bridge.
      type: str
      sample: null
    level:
      description: V(warning) or V(blocks).
      type: str
      sample: blocks
    message:
      description: What was found.
      type: str
      sample: "Bridge 00:02.00 is over-subscribed: the devices behind it need 3000 MB/s, it has 2000 MB/s"
    remedy:
      description: What to do.
      type: str
      sample: Spread the cards over slots of other root ports, or measure them one at a time.
bugreport:
  description: Name of the report. The file is C(<state_dir>/fio-bugreport) on the host, or with O(bugreport_dir) has
    this name there.
  returned: when O(bugreport=true) and not in check mode
  type: str
  sample: fio-bugreport-20261121.173256-sdv9ko.tar.bz2
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.purge.guarded_format import format_guarded
from ..module_utils.vendors import iomemory_settings
from ..module_utils.vendors.vendor_tool import ToolError


def main() -> None:
    module = AnsibleModule(
        argument_spec=iomemory_settings.OPTIONS,
        required_by={"beacon": "serial", "state": "serial", "sector_bytes": "state", "size_pct": "state"},
        supports_check_mode=True,
    )
    try:
        result = iomemory_settings.module_result(Host(), module.params, module.check_mode, format_guarded)
    except (ToolError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
