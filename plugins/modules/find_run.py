#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: find_run
short_description: Find the qualification run that a play works on
version_added: 0.1.0
description:
  - For plays that work on an existing run, such as C(watch.yml), C(collect.yml) and C(report.yml). It starts nothing.
  - Takes the run given by O(run_id), which no host needs to know. Without it, takes the one unfinished run of
    O(run_name), else the newest of that name.
  - Fails if there is no such run, or if several of that name are unfinished, and lists these.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  answers:
    description: What M(ssdlab.fleet.run_info) returned on each host, by inventory name.
    type: dict
    default: {}
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.results
  - ssdlab.fleet.results.optional_run
  - ssdlab.fleet.results.run_name
  - ssdlab.fleet.run_once
seealso:
  - module: ssdlab.fleet.run_info
"""

EXAMPLES = r"""
- name: Ask which runs the hosts know
  ssdlab.fleet.run_info:
  register: known

- name: Find the run
  ssdlab.fleet.find_run:
    run_name: qualify
    results_dir: "{{ playbook_dir }}/ssd-results"
    answers: >-
      {{ dict(ansible_play_hosts_all
              | zip(ansible_play_hosts_all | map('extract', hostvars) | map(attribute='known', default={}))) }}
  run_once: true
  register: found
"""

RETURN = r"""
decision:
  description: What the role C(ssdlab.fleet.ssd) publishes as C(ssd_decision); the keys are those of
    RV(ssdlab.fleet.preflight#module:decision).
  returned: success
  type: dict
  contains:
    run:
      description: The run. C(destructive) is true, as it is for a run that was started.
      returned: always
      type: dict
      sample: {id: 20261121T130000Z-qualify, name: qualify, results_dir: /srv/ssd-results, destructive: true}
    hosts_without_run:
      description: The hosts that the run began without, as C(run.json) has it, and that have not begun it since.
      returned: always
      type: list
      elements: str
      sample: [rack1-08]
"""
