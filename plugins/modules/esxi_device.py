#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_device
short_description: Set the queue depths of devices of an ESXi host
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Sets a device's queue depth and its outstanding requests with competing worlds, as Micron's blog on the P420m (part
    2) does with C(esxcli storage core device set -m -O), and reads them back.
  - What it changes is recorded on the host first, and restored with O(state=restored). A value that somebody else
    changed meanwhile stays.
  - Reports driver, firmware, path selection and depths of the devices, also with O(state=facts).
  - It runs on a host that runs ESXi, by its own Python and C(esxcli). It was tried with an emulator alone.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.sets
options:
  state:
    description: V(present) sets O(devices), V(restored) restores all that was changed, V(facts) changes nothing.
    type: str
    choices: [present, restored, facts]
    default: present
  devices:
    description: What to set; without any, all devices that are SSDs are reported.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: Its name, beginning with C(naa.), C(eui.) or C(t10.).
        type: str
        required: true
      queue_depth:
        description: Its queue depth (C(-m)). The driver and the device limit it.
        type: int
      outstanding:
        description: Outstanding requests with competing worlds (C(-O)), at most the queue depth.
        type: int
  record_dir:
    description: Where the record is kept, a folder that a reboot leaves.
    type: path
    default: /scratch/ssdlab-fleet
  esxcli:
    description: The program.
    type: str
    default: esxcli
seealso:
  - module: ssdlab.fleet.tunables
"""

EXAMPLES = r"""
- name: Give the card a queue of 255
  ssdlab.fleet.esxi_device:
    devices:
      - device: t10.ATA_____Micron_P420m2DMTFDGAR700MAX_______________000000001234
        queue_depth: 255
        outstanding: 255

- name: Restore what was changed
  ssdlab.fleet.esxi_device:
    state: restored
"""

RETURN = r"""
release:
  description: Product, release and build.
  returned: success
  type: str
  sample: VMware ESXi 8.0.2 Releasebuild-22380479
devices:
  description: Those of O(devices), or all SSDs; null is what this release does not report.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its stable name.
      type: str
      sample: naa.500a07511a2b3c4d
    model:
      description: Its model, as ESXi cuts it.
      type: str
      sample: Micron_5300_MTFD
    firmware:
      description: Its firmware, as ESXi cuts it.
      type: str
      sample: U001
    is_ssd:
      description: Whether ESXi takes it for an SSD.
      type: bool
      sample: true
    adapter:
      description: The adapter of its path.
      type: str
      sample: vmhba2
    driver:
      description: That adapter's driver.
      type: str
      sample: lsi_msgpt3
    driver_version:
      description: The version of its module.
      type: str
      sample: 17.00.12.00-2vmw.802
    path_selection:
      description: The path selection policy (PSP) of NMP, or the scheme of HPP.
      type: str
      sample: VMW_PSP_FIXED
    queue_depth:
      description: Its queue depth.
      type: int
      sample: 255
    outstanding:
      description: Its outstanding requests with competing worlds.
      type: int
      sample: 255
summary:
  description: The same for the snapshots of the host's guests; unlike values are joined by a slash.
  returned: success
  type: dict
  sample: {release: VMware ESXi 8.0.2 Releasebuild-22380479, driver: lsi_msgpt3 17.00.12.00-2vmw.802, queue_depth:
    "255"}
commands:
  description: The commands that changed something; none in check mode.
  returned: success
  type: list
  elements: list
  sample: [[esxcli, storage, core, device, set, --device, naa.500a07511a2b3c4d, --max-queue-depth, "255"]]
message:
  description: What was not restored, and why; empty otherwise.
  returned: success
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.vendors import esxi_devices


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "restored", "facts"], "default": "present"},
            "devices": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "device": {"type": "str", "required": True},
                    "queue_depth": {"type": "int"},
                    "outstanding": {"type": "int"},
                },
            },
            "record_dir": {"type": "path", "default": "/scratch/ssdlab-fleet"},
            "esxcli": {"type": "str", "default": "esxcli"},
        },
        supports_check_mode=True,
    )
    try:
        result = esxi_devices.module_result(
            lambda command: module.run_command(list(command), handle_exceptions=False), module.params, module.check_mode
        )
    except (esxi_devices.EsxiError, OSError) as error:
        module.fail_json(msg=str(error))
    if not module._diff:
        result.pop("diff")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
