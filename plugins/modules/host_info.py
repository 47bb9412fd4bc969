#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Return the boot, service manager, size and tools of a host
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Returns the few facts of a host that a qualification depends on. It is quicker than gathering all facts, and needs
    no privilege.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  tools:
    description: Commands to look for, by name or by absolute path.
    type: list
    elements: str
    default: [fio, wipefs, blkid, blkdiscard, setpriv, systemd-run]
  fio_engines:
    description: I/O engines of fio to try for a moment, on a file that is only read.
    type: list
    elements: str
    default: []
  cut_reach_of:
    description: The folder on the host that holds its runs. With it, what a cut of the host's power would reach is
      returned too.
    type: path
seealso:
  - module: ssdlab.fleet.drive_facts
"""

EXAMPLES = r"""
- name: Look at the host
  ssdlab.fleet.host_info:
  register: seen

- name: Stop without fio
  ansible.builtin.assert:
    that: seen.host_info.tools.fio is not none
    fail_msg: "{{ inventory_hostname }}: install fio"
"""

RETURN = r"""
host_info:
  description: Facts of the host; null for what could not be read.
  returned: success
  type: dict
  contains:
    boot_id:
      description: The kernel's id of this boot.
      type: str
      sample: 0d9e3c5e-6d3b-4b6c-9d0f-0f5a3d1c9f11
    machine_id:
      description: The id of the installation; clones of a virtual machine may share one.
      type: str
      sample: 9a3b7c1d5e8f4a2b9c6d7e8f0a1b2c3d
    hostname:
      description: The kernel's host name.
      type: str
      sample: rack1-07
    kernel:
      description: The kernel's release.
      type: str
      sample: 6.1.0-31-amd64
    service_manager:
      description: V(systemd) where systemd is PID 1, else null.
      type: str
      sample: systemd
    cpus:
      description: Number of logical CPUs.
      type: int
      sample: 64
    memory_bytes:
      description: Size of the memory.
      type: int
      sample: 540817391616
    python_version:
      description: Version of the Python that ran this module.
      type: str
      sample: 3.11.2
    tools:
      description: For each tool asked for, its C(path) and C(version) (null when it states none); null when it is
        missing.
      type: dict
      sample: {fio: {path: /usr/bin/fio, version: "3.33"}, systemd-run: null}
    fio_engines:
      description: For each engine that was tried, what fio said; empty where it works.
      returned: when fio is there and engines were asked for
      type: dict
      sample: {libaio: ""}
    aio_left:
      description: How many I/Os of libaio may be in flight beside those of now (C(fs.aio-max-nr) less C(fs.aio-nr)).
      type: int
      sample: 65536
    bmc_record:
      description: What was changed by the host's BMC and is still to be restored; see M(ssdlab.fleet.bmc_record).
      returned: with O(cut_reach_of), if there is such a thing
      type: dict
      sample: {bios_before: {ProcCStates: Enabled}}
    cut_reach:
      description: What a cut of the host's power would reach (C(system), C(further), C(guests)), where a run's records
        lie (C(state_dir)), and by what a BMC proves to be this host's (C(uuid), C(serials), of DMI).
      returned: with O(cut_reach_of)
      type: dict
      sample:
        uuid: 4c4c4544-0042-3110-8051-b4c04f564433
        serials: [B1B1QD3]
        state_dir: {path: /, source: /dev/nvme9n1p2, kind: ext4, drives: [nvme9n1]}
        system: [{path: /, source: /dev/nvme9n1p2, kind: ext4, drives: [nvme9n1]}]
        further: []
        further_count: 0
        guests: []
        guests_count: 0
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.machine import facts


def main() -> None:
    module = AnsibleModule(argument_spec=facts.OPTIONS, supports_check_mode=True)
    module.exit_json(changed=False, **facts.module_result(Host(), module.params))


if __name__ == "__main__":
    main()
