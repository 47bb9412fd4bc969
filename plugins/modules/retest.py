#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: retest
short_description: Find the drives of a run to measure again before they fail
version_added: 0.1.0
description:
  - Judges a run as M(ssdlab.fleet.report) does, and returns the drives that missed only relative criteria, with the
    tests to measure again. It starts nothing and writes nothing.
  - Leaves out drives that missed an absolute limit (they are kept as evidence) and drives of a host that is low as a
    whole. Returns no drive if more than a quarter of the drives would be measured again.
  - If a second measurement has begun, it returns the drives and tests that are still missing from it.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  seen:
    description: What this play's preflight found on each host, by inventory name, as M(ssdlab.fleet.examine) returned
      it. A drive that is not among its RV(ssdlab.fleet.examine#module:drives) is not measured again.
    type: dict
    required: true
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.results
  - ssdlab.fleet.results.run_name
  - ssdlab.fleet.results.run
  - ssdlab.fleet.run_once
seealso:
  - module: ssdlab.fleet.report
"""

EXAMPLES = r"""
- name: Find the drives to measure again
  ssdlab.fleet.retest:
    results_dir: "{{ ssd_decision.run.results_dir }}"
    run_id: "{{ ssd_decision.run.id }}"
    run_name: "{{ ssd_decision.run.name }}"
    seen: "{{ dict(ansible_play_hosts_all | zip(ansible_play_hosts_all | map('extract', hostvars, 'ssd_seen'))) }}"
  run_once: true
  register: again
"""

RETURN = r"""
hosts:
  description:
    - What each host has to measure again, by inventory name; other hosts are not listed.
    - C(run_id) and C(run_name) are of the run that measures again, C(of) is the first run, C(drives) are entries of
      C(ssd_drives), C(tests) all tests that the host measures again, C(counts) the tests of each drive whose second
      result counts, C(identities) the identity of each drive.
  returned: success
  type: dict
  sample:
    rack1-07:
      run_id: 20261121T130000Z-qualify-again
      run_name: qualify-again
      of: 20261121T130000Z-qualify
      drives: [{serial: 22123A4F5B6C}]
      tests: [iops]
      counts: {22123A4F5B6C: [iops]}
      identities:
        22123A4F5B6C:
          {serial: 22123A4F5B6C, wwn: null, model: MTFDDAK960TDS, size_bytes: 960197124096, backing_file: null}
lines:
  description: Each drive that is measured again, with the reason, and each one that missed only relative criteria but
    is not.
  returned: success
  type: list
  elements: str
  sample:
    - "rack1-07 22123A4F5B6C: measured again: iops: write_iops 31,000 IOPS < 36,900 IOPS (criterion iops write_iops
      min_of_median 0.9: median of 23 peers)"
"""
