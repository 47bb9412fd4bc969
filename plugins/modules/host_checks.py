#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_checks
short_description: Find what would invalidate the results of a host or a drive
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Looks at firmware, driver, PCI Express link and path, error counters, health, temperature, slot power, memory and
    processor, and reports what would disturb a measurement, with a remedy. C(docs/checks.md) lists all checks.
  - Anything that cannot be read is a warning.
  - It writes nothing. With O(traffic_s) it reads the drives with C(fio --readonly) for that long, because error
    counters and temperatures are only meaningful under traffic.
  - It does not fail because of a finding, whatever its level.
  - Needs root. Uses C(nvme) for NVMe drives, C(rssdm) for Micron P320h and P420m, C(fio-status) for ioMemory, and
    C(smartctl) for others.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  drives:
    description: The drives, as in the inventory's C(ssd_drives). Those that cannot be found are left to
      M(ssdlab.fleet.drive_facts).
    type: list
    elements: raw
    default: []
  levels:
    description: Levels that replace the defaults of some checks, by the check's name. V(ok), V(warning) or V(blocks).
    type: dict
    default: {}
  firmware:
    description:
      - The firmware required for each model, by shell pattern. The first pattern that matches counts.
      - A version is a string or a list of strings, each a shell pattern or a minimum such as V(>=1.2).
    type: dict
    default: {}
  drivers:
    description: The version required of each kernel driver, by shell pattern over its name or its module's. Versions as
      in O(firmware).
    type: dict
    default: {}
  versions:
    description: The version required of tools (C(fio), C(nvme), C(smartctl), ...) and of C(kernel). Versions as in
      O(firmware).
    type: dict
    default: {}
  link:
    description: The minimum link of each model, by shell pattern. A mapping with C(speed_gts) (such as V(16)) and
      C(width) (such as V(4)).
    type: dict
    default: {}
  temperature_headroom_c:
    description: How many degrees Celsius below its warning temperature a drive must be.
    type: int
    default: 10
  min_free_memory_mib:
    description: How many MiB of memory must be free.
    type: int
    default: 1024
  min_cpus:
    description: How many CPUs the host must have.
    type: int
    default: 2
  max_used_pct:
    description: Percentage of its rated endurance at which a drive counts as worn.
    type: int
    default: 90
  parallel_drives:
    description: How many drives are measured at the same time. A link that they cannot fill is not a warning, however
      many drives are below it.
    type: int
    default: 1
  write_cache_chosen:
    description: Whether the role C(tune) sets the drives' write caches, so that their current state does not matter.
    type: bool
    default: false
  traffic_s:
    description: Seconds that the drives in O(readable) are read, all at once, before counters and temperatures are
      checked.
    type: float
    default: 0
  readable:
    description: The drives, by the values of their selectors, that may be read for O(traffic_s).
    type: list
    elements: str
    default: []
seealso:
  - module: ssdlab.fleet.drive_facts
  - module: ssdlab.fleet.host_info
"""

EXAMPLES = r"""
- name: Look for what would disturb a result
  ssdlab.fleet.host_checks:
    drives: "{{ ssd_drives }}"
    firmware:
      Micron_7450*: E2MU200
      Micron_7400*: [E1MU23Y5, ">=E1MU30"]
    levels:
      pcie_oversubscribed: blocks
      container: ok
  become: true
  register: seen

- name: Stop where something blocks
  ansible.builtin.assert:
    that: seen.findings | selectattr('level', 'eq', 'blocks') | length == 0
    fail_msg: "{{ seen.findings | selectattr('level', 'eq', 'blocks') | map(attribute='message') | join('; ') }}"
"""

RETURN = r"""
findings:
  description: What was found. Empty if everything is fine.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: The check's name.
      type: str
      sample: pcie_link
    drive:
      description: The value of the drive's selector; null for what concerns the whole host.
      type: str
      sample: 22123A4F5B6C
    level:
      description: V(blocks) or V(warning); V(ok) if O(levels) sets that.
      type: str
      sample: blocks
    message:
      description: What was found.
      type: str
      sample: its link runs at 8 GT/s x2; the drive and its slot can do 16 GT/s x4
    remedy:
      description: How to fix it.
      type: str
      sample: reseat the drive and every riser, look again under traffic; then exchange the riser, then the drive, then
        the board
passed:
  description: The checks that found nothing.
  returned: success
  type: list
  elements: str
  sample: [firmware, driver, pcie_link]
snapshot:
  description:
    - A snapshot of the host, with the keys C(cpu), C(memory), C(bios), C(kernel), C(command_line), C(tools), C(pcie),
      C(numa), C(tunables), C(drivers).
    - C(pcie) without its list of functions, which is long; the run's journal has it.
  returned: success
  type: dict
  sample: {command_line: BOOT_IMAGE=/boot/vmlinuz-6.1.0-31-amd64 root=/dev/sda1 ro}
wear:
  description: How much of the rated life of each drive is used.
  returned: success
  type: list
  elements: dict
  contains:
    drive:
      description: The value of the drive's selector.
      type: str
      sample: 22123A4F5B6C
    used_pct:
      description: Percentage by the drive's own count, above 100 where it has outlived its rating; null if it reports
        none.
      type: int
      sample: 12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.checks import host_checks
from ..module_utils.core.host import Host


def main() -> None:
    module = AnsibleModule(argument_spec=host_checks.OPTIONS, supports_check_mode=True)
    module.exit_json(changed=False, **host_checks.module_result(Host(), module.params))


if __name__ == "__main__":
    main()
