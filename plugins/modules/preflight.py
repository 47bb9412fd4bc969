#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Decide whether the qualification of a fleet may start
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Checks each host's variables and answers. Leaves out the drives and hosts that are refused
    (C(ssd_refused=leave_out)). Fails with everything else that is wrong at once, naming host, drive and variable, and
    with all of it where nobody would be left.
  - Chooses the run. That is C(ssd_run_id) if it is given, else the one unfinished run of C(ssd_run_name) on the
    hosts, else a new one.
  - In plan mode and in check mode prints for each drive what would be erased and measured, and how long that should
    take. Otherwise writes C(run.json) into the run's folder on the controller.
  - A drive or host that is left out counts as asked for. With C(ssd_refused=stop), a host that cannot be reached is a
    finding in plan mode; in destructive mode the other hosts continue.
  - In plan mode also writes the plan to a file below C(ssd_results_dir), one line a drive. It does not in check mode,
    with an approved plan, and in AWX. With an approved plan (O(approved_plan)), everything that would be erased has to
    be in it. In destructive mode prints each drive that is erased.
  - Refuses C(ssd_drives) of the group C(all).
  - Runs on the controller, once for the play. The role C(ssdlab.fleet.preflight) asks the hosts and calls it.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  seen:
    description:
      - The result of M(ssdlab.fleet.examine) on each host, by inventory name, also where it failed or could not reach
        the host.
      - It has the host's variables too, as RV(ssdlab.fleet.examine#module:asked). Without them the run is stopped.
    type: dict
    required: true
  store:
    description:
      - The store that the results will go into, as C(url) (C(ssd_store_url)) and C(results_dir). It is tested without
        changing it. Without this option no store is tested.
    type: dict
  hosts_left_out:
    description: The hosts that an earlier decision of this play left out, with the reason
      (RV(decision.hosts_left_out)). They stay left out, as only the others were prepared.
    type: dict
    default: {}
  drives_left_out:
    description: The drives that an earlier decision of this play left out, with the reasons
      (RV(decision.drives_left_out)). They stay left out.
    type: dict
    default: {}
  approved_plan:
    description: The plan that was approved (C(ssd_approved_plan)), as a path or as RV(decision.plan_to_approve). Empty
      for none.
    type: raw
seealso:
  - module: ssdlab.fleet.examine
  - module: ssdlab.fleet.host_job
"""

EXAMPLES = r"""
- name: Decide for the whole fleet
  ssdlab.fleet.preflight:
    seen: "{{ dict(hosts | zip(hosts | map('extract', hostvars, 'seen'))) }}"
  vars:
    hosts: "{{ ansible_play_hosts_all }}"
  register: decision
  run_once: true
  delegate_to: localhost
  become: false
"""

RETURN = r"""
decision:
  description: What later tasks and plays need to know. The role C(ssdlab.fleet.preflight) publishes it as
    C(ssd_decision).
  returned: success
  type: dict
  contains:
    run:
      description: The run. C(results_dir) is the absolute path of the folder with all runs, C(destructive) whether
        drives may be erased.
      returned: always
      type: dict
      sample: {id: 20261121T130000Z-qualify, name: qualify, results_dir: /home/lab/ssd-results, destructive: true}
    attach:
      description: The run's state on the hosts that already have it.
      returned: always
      type: dict
      sample: {rack1-07: running}
    skipped:
      description: Why this play does nothing - last night's run is still running, and C(ssd_overlap) is C(skip). Empty
        otherwise.
      returned: always
      type: str
      sample: ""
    attached:
      description: States that last night's run is still running, and that this play continues it (C(ssd_overlap) is
        C(attach)). Empty otherwise.
      returned: always
      type: str
      sample: ""
    left_out:
      description: The drives that are left out, in quarantine or refused, by host; RV(decision.drives_left_out) says
        why.
      returned: always
      type: dict
      sample: {rack1-07: [22123A4F5B6C]}
    drives_left_out:
      description: Why, by host and drive, but for hosts that are left out as a whole.
      returned: always
      type: dict
      sample: {rack1-07: {22123A4F5B6C: "mounted: it is mounted: /dev/sdb on /srv. Unmount it everywhere ..."}}
    hosts_left_out:
      description: Why a host is left out as a whole, by host (C(ssd_refused=leave_out)).
      returned: always
      type: dict
      sample: {rack1-08: "the host is unreachable: ssh: connect to host rack1-08 port 22: Connection timed out"}
    hosts_without_run:
      description: Those of them that are not known to have begun the run. There is nothing to watch and to collect.
      returned: always
      type: list
      elements: str
      sample: [rack1-08]
    prepare:
      description: Whether at least one host is to be configured with a vendor's tool, or to get kernel arguments,
        before its job starts.
      returned: always
      type: bool
      sample: false
    starts:
      description: The hosts whose jobs this play starts or attaches to. They answered, have drives that take part, and
        are not done with the run. Empty unless drives may be erased.
      returned: always
      type: list
      elements: str
      sample: [rack1-07]
    fans_left_high:
      description: Hosts whose fans an earlier run set high, and nobody restored.
      returned: always
      type: list
      elements: str
      sample: []
    power_cuts:
      description: How the power of each host is cut whose plan does that, and whose job this play starts or attaches
        to, or in plan mode would.
      returned: always
      type: dict
      sample: {rack1-07: hard}
    look_again:
      description: Always V(false). A task that reboots a host or formats a drive sets it to true in this host's
        C(ssd_decision), and the role C(ssdlab.fleet.workload) then checks all hosts again.
      returned: always
      type: bool
      sample: false
    plan_to_approve:
      description: In plan mode, what may be approved - the run, the number of drives, the plan's SHA-256 and the packed
        plan. Empty otherwise.
      returned: always
      type: dict
      sample: {run_id: 20261121T130000Z-qualify, drives: 1, sha256: 9f86d081884c7d65, packed: QlpoOTFBWSZTWQ8iT30A}
message:
  description: The findings as text that fits a chat message. Nothing in it acts on a chat.
  returned: failure
  type: str
  sample: "nightly: not started, preflight found 1 thing to fix"
diff:
  description: What C(-v) does not print.
  returned: success
  type: dict
  contains:
    plan_text:
      description: What would be done, line by line.
      returned: always
      type: list
      elements: str
      sample: ["rack1-07: 1 drive, 1 at a time"]
"""
