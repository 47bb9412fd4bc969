#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rssdm
short_description: Set power limiting, interrupt coalescing and write cache of a Micron P320h or P420m
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Changes the settings of Micron's technical note TN-FD-15 with Micron's C(rssdm), and reads them back with
    C(rssdm -L -d).
  - The drive is found by its serial number. Its place in the list, and so its id, may change, so it is looked up again
    before each change.
  - Settings take effect at a power cycle; a reboot is not enough. Until then they are V(pending), and a second run
    sends nothing again.
  - A drive's settings from before the first change are recorded; O(state=restored) restores them, as does
    C(restore.yml).
  - Nothing is set on a drive that a run is working on.
  - Needs root and C(rssdm) of Micron's support pack.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.sets
options:
  state:
    description:
      - V(present) makes the given settings on one drive. Without a setting it only returns the current ones.
      - V(restored) restores the previous settings of every drive that this module changed. Of the other options, only
        O(state_dir) is used.
    type: str
    choices: [present, restored]
    default: present
  serial:
    description: The drive's serial number, in quotes, as C(rssdm -L) shows it. Required for O(state=present).
    type: str
  power_limiting:
    description:
      - Whether the drive keeps within the slot's 25 W, at about 40 % less I/O. The half-height card (HHHL) only; the
        2.5-inch drive is refused.
    type: bool
  interrupt_coalescing:
    description:
      - V(0xD200F) is balanced and the drive's default, V(0xD801F) is for IOPS at queue depths above 128, V(0xD020F) for
        queue depths below 32.
      - Any other value is refused, because the note says that it may give unexpected results.
    type: str
  queue_depth:
    description:
      - Choose O(interrupt_coalescing) by the workload's whole queue depth (threads times depth).
      - Above 128 it is V(0xD801F), below 32 V(0xD020F). From 32 to 128 the drive's setting is left alone.
    type: int
  write_cache:
    description:
      - The P320h's write cache. Data in it may be lost in a power failure. The P420m's cache is always on, protected by
        capacitors; changing it is refused.
      - Needs O(write_cache_flag).
    type: bool
  write_cache_flag:
    description: The option of C(rssdm -M) for the write cache. The note does not print it; take it from the help of the
      installed C(rssdm).
    type: str
  state_dir:
    description: Folder in which the previous settings, and those that wait for a power cycle, are kept, in
      C(rssdm/<serial>.json).
    type: path
    default: /var/lib/ssdlab-fleet
seealso:
  - module: ssdlab.fleet.iomemory
"""

EXAMPLES = r"""
- name: Take the coalescing that fits 8 threads at depth 32
  ssdlab.fleet.rssdm:
    serial: "00000000121504A1B2C3"
    queue_depth: 256
    power_limiting: false
  become: true
  register: set

- name: Power-cycle the host if the drive asks for it
  ansible.builtin.include_role:
    name: ssdlab.fleet.vendor
    tasks_from: power_cycle
  vars:
    vendor_power_cycle_reason: "{{ set.message }}"
  when: set.power_cycle_required

- name: Put back what the drives of this host had before
  ssdlab.fleet.rssdm:
    state: restored
  become: true

- name: Only look
  ssdlab.fleet.rssdm:
    serial: "00000000121504A1B2C3"
  become: true
  register: seen
"""

RETURN = r"""
drive:
  description: The drive as C(rssdm -L -d) shows it.
  returned: when O(state=present)
  type: dict
  contains:
    drive_id:
      description: Its id in the list now.
      type: str
      sample: "0"
    serial:
      description: Serial number.
      type: str
      sample: 00000000121504A1B2C3
    model:
      description: Model.
      type: str
      sample: Micron P420m-MTFDGAR700MAX
    family:
      description: V(P320h) or V(P420m); null for another.
      type: str
      sample: P420m
    form_factor:
      description: V(hhhl) or V(2.5-inch), from the part number; null if that says neither.
      type: str
      sample: hhhl
    firmware:
      description: Firmware revision.
      type: str
      sample: B2120508
    device:
      description: The block device.
      type: str
      sample: rssda
    pci_address:
      description: Bus, device and function.
      type: str
      sample: "04:00.0"
    status:
      description: The drive's own words.
      type: str
      sample: Drive is in good health
current:
  description: What C(rssdm -L -d) shows, each of V(power_limiting), V(interrupt_coalescing), V(write_cache); null for
    those it does not show.
  returned: when O(state=present)
  type: dict
  sample: {power_limiting: false, interrupt_coalescing: "0xD200F", write_cache: true}
pending:
  description: Settings that take effect once the host is power-cycled. In check mode, those that would.
  returned: when O(state=present)
  type: dict
  sample: {interrupt_coalescing: "0xD801F"}
power_cycle_required:
  description: Whether something is pending.
  returned: success
  type: bool
  sample: true
message:
  description: What to do; empty if there is nothing to do.
  returned: success
  type: str
  sample: "drive 00000000121504A1B2C3: interrupt_coalescing = 0xD801F is set and waits for a power cycle. Power-cycle
    the host ..."
commands:
  description: The argument lists that were run to change something. In check mode, that would be run.
  returned: success
  type: list
  elements: list
  sample: [[rssdm, -M, -i, "0xD801F", -n, "0"]]
restored:
  description: The drives that were changed earlier, with what each shows now and what waits for a power cycle.
  returned: when O(state=restored)
  type: list
  elements: dict
  sample: [{serial: "00000000121504A1B2C3", current: {interrupt_coalescing: "0xD801F"}, pending: {interrupt_coalescing:
    "0xD200F"}}]
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.vendors import rssdm_settings
from ..module_utils.vendors.vendor_tool import ToolError


def main() -> None:
    module = AnsibleModule(
        argument_spec=rssdm_settings.OPTIONS,
        mutually_exclusive=[("interrupt_coalescing", "queue_depth")],
        required_if=[("state", "present", ["serial"])],
        supports_check_mode=True,
    )
    try:
        result = rssdm_settings.module_result(Host(), module.params, module.check_mode)
    except (ToolError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
