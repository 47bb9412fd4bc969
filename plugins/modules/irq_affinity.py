#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: irq_affinity
short_description: Deliver a device's interrupts on chosen CPUs
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Restricts the interrupts of a device, or given interrupts, to a list of CPUs, and verifies the result.
  - The kernel alone places a managed interrupt, such as that of an NVMe drive's queue, and refuses the change. That is
    not a failure. It is returned with the outcome V(managed) and the CPU that it is delivered on.
  - Stop irqbalance first, or it moves them again. A run of C(qualify.yml) does all this and restores it; this module is
    for use without a run.
  - Nothing is recorded. To undo the change, pass the list in RV(irqs[].before).
extends_documentation_fragment:
  - ssdlab.fleet.attributes
attributes:
  check_mode:
    support: partial
    details: It cannot know whether the kernel would accept an affinity, so it shows managed interrupts as ones that
      would change.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  cpus:
    description: The CPUs, as the kernel writes a list of them.
    type: str
    required: true
  device:
    description: A block device, by kernel name or path. This selects all interrupts of the PCI function behind it,
      which drives behind one adapter share.
    type: str
  pci_address:
    description: A PCI function, as in C(/sys/bus/pci/devices).
    type: str
  irqs:
    description: Interrupts by their numbers, as in C(/proc/interrupts).
    type: list
    elements: int
seealso:
  - module: ssdlab.fleet.tunables
"""

EXAMPLES = r"""
- name: Keep the drive's interrupts on four cores of its node
  ssdlab.fleet.irq_affinity:
    device: nvme0n1
    cpus: 4-7

- name: Put two interrupts on one CPU each
  ssdlab.fleet.irq_affinity:
    irqs: ["{{ item.irq }}"]
    cpus: "{{ item.cpu }}"
  loop:
    - {irq: 41, cpu: "2"}
    - {irq: 42, cpu: "3"}
"""

RETURN = r"""
irqs:
  description: Each interrupt with its outcome.
  returned: success
  type: list
  elements: dict
  contains:
    irq:
      description: Its number.
      type: int
    before:
      description: The CPUs that it was allowed on; null if there is no such interrupt.
      type: str
    wanted:
      description: The CPUs asked for, in the kernel's spelling.
      type: str
    effective:
      description: The CPUs that it is delivered on now; null if the kernel does not report it.
      type: str
    outcome:
      description: V(changed), V(unchanged), V(managed) or V(not_applicable).
      type: str
    message:
      description: The reason, if there is one to give.
      type: str
  sample:
    - {irq: 41, before: 0-15, wanted: 4-7, effective: "4", outcome: changed, message: ""}
    - {irq: 42, before: "1", wanted: 4-7, effective: "1", outcome: managed, message: the kernel places this interrupt
      itself; it is delivered on CPU 1}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.tuning import irq


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "cpus": {"type": "str", "required": True},
            "device": {"type": "str"},
            "pci_address": {"type": "str"},
            "irqs": {"type": "list", "elements": "int"},
        },
        required_one_of=[["device", "pci_address", "irqs"]],
        mutually_exclusive=[["device", "pci_address", "irqs"]],
        supports_check_mode=True,
    )
    host, given = Host(), module.params
    try:
        wanted = irq.check(host, given["cpus"])
        numbers = irq.named(host, given["device"], given["pci_address"], given["irqs"])
    except ValueError as error:
        module.fail_json(msg=str(error))
    done = irq.pin(host, numbers, wanted, dry=module.check_mode)
    failed = [item.message for item in done if item.outcome == "failed"]
    changed = [item for item in done if item.outcome == "changed"]
    before = "".join(f"{irq.path(item.irq)}: {item.before}\n" for item in changed)
    after = "".join(f"{irq.path(item.irq)}: {item.wanted}\n" for item in changed)
    irqs = [item._asdict() for item in done]
    result = {"changed": bool(changed), "irqs": irqs, "diff": {"before": before, "after": after}}
    if failed:
        module.fail_json(msg="; ".join(failed), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
