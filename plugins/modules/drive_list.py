#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The action plugin of the same name does the work, on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_list
short_description: Print the drives of a fleet as an inventory to copy from
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Prints what M(ssdlab.fleet.drive_facts) found on many hosts as C(ssd_drives) in YAML.
  - A drive that may be erased is an entry with its best selector in quotes; every other drive is a comment with the
    reasons.
  - It runs on the controller; use it with C(run_once).
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  answers:
    description: For each inventory name, the registered result of M(ssdlab.fleet.drive_facts); one without C(drives)
      counts as no answer.
    type: dict
    required: true
  group:
    description: The inventory group to print.
    type: str
    default: ssd_servers
seealso:
  - module: ssdlab.fleet.drive_facts
"""

EXAMPLES = r"""
- name: Look at every drive
  ssdlab.fleet.drive_facts:
    discover: true
  become: true
  register: seen

- name: Print the drives of the fleet
  ssdlab.fleet.drive_list:
    answers: >-
      {{ dict(ansible_play_hosts_all
              | zip(ansible_play_hosts_all | map('extract', hostvars) | map(attribute='seen', default={}))) }}
  run_once: true
"""

RETURN = r"""
text:
  description: What was printed.
  returned: success
  type: str
  sample: "ssd_servers:\n  hosts:\n    rack1-07:\n      ssd_drives:\n        - serial: \"22123A4F5B6C\"  # Micron_7450,
    3.201 TB, nvme, /dev/nvme0n1\n"
unanswered:
  description: The hosts that gave no answer, each with its message.
  returned: success
  type: dict
  sample: {rack1-08: "Failed to connect to the host via ssh"}
"""
