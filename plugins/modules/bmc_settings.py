#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bmc_settings
short_description: Compare and restore BIOS attributes and fans of a host by its BMC
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Asks the host's BMC from the controller. The BMC is that of
    O(ssdlab.fleet.vendor#role:main:vendor_bmc_address) and the variables beside it, and has to prove to be the host's,
    by the UUID or a serial number of its system against DMI on the host, before its BIOS is changed.
  - Says which BIOS attributes are to be staged for the next boot, and keeps on the host what they were; see
    M(ssdlab.fleet.bmc_record). C(community.general.redfish_config) stages them, and a power cycle of the role
    C(ssdlab.fleet.vendor) sets them (role C(ssdlab.fleet.tune), tasks C(bios.yml)). It fails, and nothing is staged,
    for a host that O(ssdlab.fleet.vendor#role:main:vendor_power_cycle) does not allow to be power-cycled.
  - Sets the fans itself, at once. Where the BMC offers no fan mode, or does not answer, that is said, and nothing
    fails.
  - In check mode, only compares.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.sets
  - ssdlab.fleet.state
options:
  state:
    description:
      - V(present) prepares O(bios) and sets O(fans).
      - V(verified) fails unless the BIOS has O(bios) now.
      - V(restored) restores what earlier calls changed, as far as it is recorded. What was staged and never booted is
        taken back.
    type: str
    choices: [present, verified, restored]
    default: present
  parts:
    description: What to do it to.
    type: list
    elements: str
    choices: [bios, fans]
    default: [bios, fans]
  bios:
    description: See O(ssdlab.fleet.tune#role:main:tune_bios).
    type: dict
    default: {}
  fans:
    description: See O(ssdlab.fleet.tune#role:main:tune_fans).
    type: str
    choices: ["", high]
    default: ""
  fans_ipmi:
    description: See O(ssdlab.fleet.tune#role:main:tune_fans_ipmi).
    type: dict
    default: {}
seealso:
  - module: ssdlab.fleet.bmc_record
"""

EXAMPLES = r"""
- name: Compare the BIOS with the profile, and record what it was (with --check, only compare)
  ssdlab.fleet.bmc_settings:
    bios: {profile: performance}
  become: true

- name: Restore the fans
  ssdlab.fleet.bmc_settings:
    state: restored
    parts: [fans]
  become: true
"""

RETURN = r"""
stage:
  description: BIOS attributes that are still to be staged for the next boot.
  returned: success
  type: dict
  sample: {ProcCStates: Disabled}
power_cycle_required:
  description: Whether the BIOS that runs still has other values.
  returned: success
  type: bool
  sample: true
message:
  description: What was done, or could not be done, in a sentence; empty if there is nothing to say.
  returned: success
  type: str
  sample: "BIOS attributes are set by a boot: ProcCStates=Disabled."
"""
