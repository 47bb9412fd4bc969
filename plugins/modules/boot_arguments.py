#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: boot_arguments
short_description: Add arguments to the kernel command line, and remove them again
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Uses C(grubby) (RHEL and its derivatives) for all kernels, otherwise a drop-in in C(/etc/default/grub.d) and
    C(update-grub) (Debian and its derivatives).
  - Records the previous command line and the added arguments in C(boot.json) in the state folder before the change.
  - It fails while a host job is running, because a reboot follows.
  - It does not reboot; RV(reboot_required) says whether a reboot is needed. With O(verify=true) it fails if the running
    kernel does not have the requested arguments.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.sets
  - ssdlab.fleet.state
options:
  state:
    description: V(present) adds the arguments for the next boot. V(absent) removes those that an earlier call added,
      and no others.
    type: str
    choices: [present, absent]
    default: present
  arguments:
    description: The arguments, each without spaces and quotes. Needed for O(state=present).
    type: list
    elements: str
    default: []
  verify:
    description: Whether to fail unless C(/proc/cmdline) matches the request. For a call after the reboot; it changes
      nothing else.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep the CPUs awake from the next boot on
  ssdlab.fleet.boot_arguments:
    arguments: [intel_idle.max_cstate=0, processor.max_cstate=0, idle=poll]
  register: boot

- name: Reboot
  ansible.builtin.reboot:
    reboot_timeout: 900
  when: boot.reboot_required

- name: See that the running kernel has them
  ssdlab.fleet.boot_arguments:
    arguments: [intel_idle.max_cstate=0, processor.max_cstate=0, idle=poll]
    verify: true
"""

RETURN = r"""
reboot_required:
  description: Whether the running kernel still lacks the requested change.
  returned: success
  type: bool
  sample: true
before:
  description: The running kernel's command line.
  returned: success
  type: str
  sample: BOOT_IMAGE=/boot/vmlinuz-6.1.0-31-amd64 root=LABEL=root ro quiet
after:
  description: What it will be after the next boot, if nothing else changes it.
  returned: success
  type: str
  sample: BOOT_IMAGE=/boot/vmlinuz-6.1.0-31-amd64 root=LABEL=root ro quiet idle=poll
loader:
  description: The tool that sets it, V(grubby) or V(update-grub); null if there was nothing to remove.
  returned: success
  type: str
  sample: update-grub
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.files import STATE_DIR
from ..module_utils.core.host import Host
from ..module_utils.tuning import boot


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "arguments": {"type": "list", "elements": "str", "default": []},
            "verify": {"type": "bool", "default": False},
            "state_dir": {"type": "path", "default": STATE_DIR},
        },
        supports_check_mode=True,
    )
    host, given = Host(), module.params
    try:
        if given["verify"]:
            boot.verify(host, given["arguments"], given["state"] == "present")
        if given["state"] == "present":
            done = boot.present(host, given["state_dir"], given["arguments"], module.check_mode or given["verify"])
        else:
            done = boot.absent(host, given["state_dir"], module.check_mode)
    except (boot.BootError, OSError) as error:
        module.fail_json(msg=str(error))
    before, after = (done.before + "\n", done.after + "\n") if done.changed else ("", "")
    module.exit_json(**done._asdict(), diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
