#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: examine
short_description: Gather everything that preflight needs from a host
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Does what M(ssdlab.fleet.run_info), M(ssdlab.fleet.host_info), M(ssdlab.fleet.drive_facts) and
    M(ssdlab.fleet.host_checks) do. One module instead of four saves a process on the controller and a start of Python
    on the host for each of the others.
  - With O(variables=true) and a BMC by Redfish among the variables (V(vendor_bmc_address)), the controller reads the
    host's BIOS attributes meanwhile. What the BMC does not tell in 20 seconds is unknown, and nothing fails.
  - A part that fails is listed in RV(failures); the others are returned. The checks are skipped on a host where a run
    is in progress, because reading its drives would disturb the measurement.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  run_info:
    description: The options of M(ssdlab.fleet.run_info). Each of the parts is skipped if its options are not
      given.
    type: dict
  host_info:
    description: The options of M(ssdlab.fleet.host_info).
    type: dict
  drive_facts:
    description: The options of M(ssdlab.fleet.drive_facts).
    type: dict
  service_drives:
    description:
      - The drives of C(ssd_service_drives), which hold data and are only read, in place of those of O(drive_facts) if
        C(reads) is true. C(drives) is a list of entries, or C(all) is true.
      - A drive that is also one of C(others), the host's other list, is refused. C(all_others) means that the other
        list has all drives.
    type: dict
  host_checks:
    description:
      - The options of M(ssdlab.fleet.host_checks).
      - C(readable) is always the drives that O(drive_facts) found eligible.
    type: dict
  variables:
    description:
      - Whether the four options above are made from the host's variables (those of the roles C(ssdlab.fleet.ssd),
        C(ssdlab.fleet.preflight) and C(ssdlab.fleet.tune), and what the plan of a host takes).
      - The values come back as RV(asked), whether or not the host answers, so that they are evaluated once. Where it
        does not, they are in C(diff), as Ansible prints all else of such a result.
      - Where it does, all that is returned is in RV(diff.seen).
    type: bool
    default: false
  limit_s:
    description: The module ends after so many seconds, so that it no longer keeps others from the drives when the
      controller has given up on it. V(0) is no limit. Given where the task has a C(timeout).
    type: int
    default: 0
seealso:
  - module: ssdlab.fleet.preflight
"""

EXAMPLES = r"""
- name: Ask the host for its runs and drives
  ssdlab.fleet.examine:
    run_info: {}
    drive_facts:
      drives: "{{ ssd_drives }}"
  become: true
  register: seen
"""

RETURN = r"""
diff:
  description: What C(-v) does not print.
  returned: when O(variables) is true
  type: dict
  contains:
    seen:
      description: All that follows, as JSON text, which Ansible copies and keeps as one value; only RV(engines) is
        there beside it, too.
      returned: when the host answered
      type: str
      sample: '{"changed": false, "failures": {}}'
drive_names:
  description: What the inventory calls each of the RV(drives).
  returned: when O(variables) is true and O(drive_facts) was answered
  type: list
  elements: str
  sample: [22123A4F5B6C]
asked:
  description: The host's variables by their names; where it does not answer, in C(diff).
  returned: when O(variables) is true
  type: dict
  sample: {ssd_mode: plan}
names:
  description: The names of all its variables that begin with C(ssd_); where it does not answer, in C(diff).
  returned: when O(variables) is true
  type: list
  elements: str
  sample: [ssd_mode]
failures:
  description: The parts that failed, with the reason.
  returned: success
  type: dict
  sample: {}
runs:
  description: See RV(ssdlab.fleet.run_info#module:runs); the other keys of that module's answer are left out.
  returned: when O(run_info) was answered
  type: list
  elements: dict
  sample: []
engines:
  description: The names of the engines in the state folder. Which one runs depends on its content.
  returned: when O(run_info) is given
  type: list
  elements: str
  sample: [engine-0.1.0-0f5a3d1c9f11.pyz]
host_info:
  description: See RV(ssdlab.fleet.host_info#module:host_info).
  returned: when O(host_info) was answered
  type: dict
  sample: {boot_id: 0d9e3c5e-6d3b-4b6c-9d0f-0f5a3d1c9f11}
drives:
  description: See RV(ssdlab.fleet.drive_facts#module:drives); C(link_mb_s) is what the link of each carries in MB/s,
    where the kernel tells it.
  returned: when O(drive_facts) was answered
  type: list
  elements: dict
  sample: []
service_not_found:
  description: Entries of C(ssd_service_drives) that name no drive of the host now, where other drives are to be erased.
  returned: when O(service_drives) was answered
  type: list
  elements: str
  sample: [22123A4F5B6D]
findings:
  description: See RV(ssdlab.fleet.host_checks#module:findings).
  returned: when O(host_checks) was answered
  type: list
  elements: dict
  sample: []
snapshot:
  description: See RV(ssdlab.fleet.host_checks#module:snapshot).
  returned: when O(host_checks) was answered
  type: dict
  sample: {command_line: BOOT_IMAGE=/boot/vmlinuz-6.1.0-31-amd64 root=/dev/sda1 ro}
wear:
  description: See RV(ssdlab.fleet.host_checks#module:wear).
  returned: when O(host_checks) was answered
  type: list
  elements: dict
  sample: [{drive: 22123A4F5B6C, used_pct: 12}]
"""

import signal

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils.checks import examine
from ..module_utils.core.host import Host


def validated(options, given):
    result = ArgumentSpecValidator(options).validate(given)
    if result.error_messages:
        raise ValueError("; ".join(result.error_messages))
    return result.validated_parameters


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **{part: {"type": "dict"} for part in (*examine.PARTS, examine.SERVICE)},
            "variables": {"type": "bool", "default": False},
            "limit_s": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    # Its default action ends the process, and with it the locks, as soon as the kernel lets it go.
    signal.alarm(max(0, module.params["limit_s"]))
    module.exit_json(changed=False, **examine.module_result(Host(), module.params, validated))


if __name__ == "__main__":
    main()
