#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: watch
short_description: Show the progress of a qualification run on all hosts until it has ended
version_added: 0.1.0
description:
  - Reads the C(status.json) of the run on every host, through each host's own connection and as its plain user, and
    prints for each drive the phase, the round, the last figures and an upper bound of the time left.
  - With more than 20 hosts it prints a summary, and only the drives and hosts that need attention.
  - Ends when no host job works on the run any more. A host without this run counts as ended, and so does one whose host
    job is gone.
  - A host that does not answer is marked and does not delay the others. It is asked again as long as others are
    running, and for O(give_up_s) after that.
  - A drive that failed does not fail this task; the report judges.
  - The measurement does not depend on it. It may be interrupted, and started again at any time.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  state_dir:
    description:
      - Where runs are kept on all hosts.
      - By default each host's own C(ssd_state_dir), or C(/var/lib/ssdlab-fleet) if it sets none.
    type: path
  hosts:
    description:
      - The hosts to watch, by inventory name.
      - By default all hosts of the play, including those that have failed or were unreachable.
    type: list
    elements: str
  interval_s:
    description:
      - Seconds between two updates.
      - By default 30, or 0.2 for each host if that is more.
    type: float
  host_timeout_s:
    description: Seconds that a host may take to answer.
    type: float
    default: 20
  give_up_s:
    description:
      - End when every remaining host has been silent for this many seconds.
      - V(0) never gives up.
    type: float
    default: 600
  for_s:
    description:
      - End after this many seconds even if hosts are still at work. That is not a failure. AWX ends a job that runs too
        long; a watch that ends before that leaves the rest to the next watch.
      - V(0) watches until all have ended.
    type: float
    default: 0
notes:
  - Use it with C(run_once). It runs on the controller; do not set C(connection) on the task, which would apply to the
    hosts.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.results.run
seealso:
  - module: ssdlab.fleet.host_job
  - module: ssdlab.fleet.collect
"""

EXAMPLES = r"""
- name: Watch the run until it has ended on all hosts
  ssdlab.fleet.watch:
    run_id: 20261121T130000Z-qualify
  run_once: true
"""

RETURN = r"""
hosts:
  description:
    - The state of each host by name, as its C(status.json) says. C(finished), C(stopped) and C(failed) are as the host
      job left them.
    - C(dead) means that the host job ended without reporting it, C(absent) that the host has no such run,
      C(silent) that the host no longer answered. C(starting) and C(running) are those still working when O(for_s)
      ended the watch.
  returned: success
  type: dict
  sample: {rack1-07: finished, rack1-08: silent}
ended:
  description: Whether the run has ended on all hosts.
  returned: success
  type: bool
  sample: false
silent:
  description: Hosts that no longer answered.
  returned: success
  type: list
  elements: str
  sample: [rack1-08]
dead:
  description: Hosts whose host job is gone.
  returned: success
  type: list
  elements: str
  sample: []
"""
