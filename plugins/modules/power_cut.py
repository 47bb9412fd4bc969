#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_cut
short_description: Cut the power of a host while its run tests that its drives keep what they acknowledged
version_added: 0.1.0
description:
  - B(Cuts the power of the host, hard), or resets it, as often as the plan that preflight of the same play approved
    says. Whatever else the host does is cut too.
  - Each time it waits until all drives of the run are written to, cuts the power at a random time, waits for the host,
    and has the host job go on, which reads back what the drives had acknowledged.
  - Proves before each cut that the BMC is the host's, by the UUID or a serial number of its system against DMI on the
    host, else cuts nothing. The BMC is that of O(ssdlab.fleet.vendor#role:main:vendor_bmc_address) and the variables
    beside it.
  - The host's journal says how many cycles are done, so a play that was interrupted is continued by the next one. What
    was cut when is kept in C(power-cuts/<host>.jsonl) of the run's folder on the controller.
  - Without a power-cut test in the host's plan, and in check mode, does nothing.
  - It works for one host, so Ansible's C(forks) is how many hosts are cut side by side.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  state:
    description:
      - V(played) plays all cycles.
      - V(proved) only checks that it could, before anything is erased for it.
      - V(restored) switches on each host of the play that a power cut left off, as the controller was killed in it, and
        waits until it answers; once for all hosts. In check mode it only says which they are.
    type: str
    choices: [played, proved, restored]
    default: played
  run_id:
    description: The run's id. Required for O(state=played).
    type: str
  mode:
    description: How the power is to be cut. Required for O(state=proved); else the plan says it.
    type: str
    choices: [hard, warm, pull]
  state_dir:
    description: The folder on the host that holds its runs.
    type: path
    default: /var/lib/ssdlab-fleet
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
seealso:
  - module: ssdlab.fleet.host_job
"""

EXAMPLES = r"""
- name: Switch on what an interrupted power cut left off
  ssdlab.fleet.power_cut:
    state: restored
  run_once: true

- name: Check that the BMC is this host's
  ssdlab.fleet.power_cut:
    state: proved
    mode: hard
  become: true

- name: Cut the power until every cycle is played
  ssdlab.fleet.power_cut:
    run_id: 20261121T130000Z-power
  become: true
"""

RETURN = r"""
state:
  description: V(played), V(proved) or V(restored), as it was asked for.
  returned: always
  type: str
  sample: played
cuts:
  description: How often this task cut the power.
  returned: always
  type: int
  sample: 20
problem:
  description: Why it ended before the host job did, or which hosts are still off; empty if nothing is wrong.
  returned: always
  type: str
  sample: ""
"""
