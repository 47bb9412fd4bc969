#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: retired_layers
short_description: Take apart what is built on retired drives alone
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Deactivates volume groups, closes crypt mappings and stops md arrays that are built on nothing but drives whose
    entry has C(retired). It erases nothing.
  - Nothing is taken apart while any layer is open, mounted, swapped on, exported, or named by the configuration of this
    host, a virtual machine, a container or a cluster, or if the guard would refuse a drive below it for any other
    reason than what is built on it.
  - What is also on a drive that no entry calls retired stays, and is returned with the command for doing it by hand.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
options:
  drives:
    description: The drives, as in the inventory's C(ssd_drives).
    type: list
    elements: raw
    required: true
  state_dir:
    description: The folder on the host where runs keep their state, C(ssd_state_dir).
    type: path
    required: true
  acts:
    description: Whether to run the commands; otherwise, and in check mode, they are only returned.
    type: bool
    default: false
seealso:
  - module: ssdlab.fleet.drive_facts
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Say what would be taken apart
  ssdlab.fleet.retired_layers:
    drives: "{{ ssd_drives }}"
    state_dir: "{{ ssd_state_dir }}"
  become: true
  register: apart
"""

RETURN = r"""
steps:
  description: What was done, or would be, in that order. Before each step everything is checked anew.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: The command.
      type: str
      sample: vgchange --activate n --select vg_uuid=AbCdEf-GhIj-KlMn-OpQr-StUv-WxYz-012345
    layers:
      description: Kernel names of the devices that are gone after it.
      type: list
      elements: str
      sample: [dm-0, dm-1]
    drives:
      description: Kernel names of the drives below them, all of them retired.
      type: list
      elements: str
      sample: [nvme1n1]
kept:
  description: What is not taken apart.
  returned: success
  type: list
  elements: dict
  contains:
    layer:
      description: Kernel name of the device, or of the drive.
      type: str
      sample: dm-2
    why:
      description: Why.
      type: str
      sample: other is also on nvme2n1, which no entry calls retired
    by_hand:
      description: The command for somebody who knows better; empty where there is none.
      type: str
      sample: vgchange --activate n --select vg_uuid=ZyXwVu-TsRq-PoNm-LkJi-HgFe-DcBa-543210
failed_step:
  description: The command that failed and what it said; empty if none did.
  returned: success
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.purge import retired_layers


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "list", "elements": "raw", "required": True},
            "state_dir": {"type": "path", "required": True},
            "acts": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    acts = module.params["acts"] and not module.check_mode
    result = retired_layers.module_result(Host(), dict(module.params, acts=acts))
    if result["failed_step"]:
        module.fail_json(msg=result["failed_step"], **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
