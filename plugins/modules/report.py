#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Judge a run and write its report
version_added: 0.1.0
description:
  - Reads the folder of a run on the controller, judges every drive that was asked for against the run's criteria, and
    writes C(report/index.html), C(report/results.csv), C(report/summary.json) and C(report/junit.xml), with pages of
    its drives and hosts.
  - A drive without a record is C(not_tested), never a pass.
  - It does not fail for a bad verdict, so that the play can print more first. Fail if RV(all_passed) is false, as the
    role P(ssdlab.fleet.report#role) does.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  baseline:
    description: The id of a run to compare the figures with, drive by drive. Its report must exist. Empty for none.
    type: str
    default: ""
  nights:
    description: Maximum number of earlier runs of the same name to compare the run with.
    type: int
    default: 10
  drives:
    description:
      - Shell patterns for hosts, drives or serial numbers that get a page even in a large fleet. V(*) is all of them.
      - In a run of up to 200 drives, each has a page. In larger runs, up to 200 drives that need attention have one.
    type: list
    elements: str
    default: []
  supplier_model:
    description:
      - A shell pattern of models. Their drives get a page of their own, C(report/supplier-*.html), to print or to send
        as it is, with nothing about other models.
    type: str
    default: ""
  store_url:
    description: The store in which earlier runs are looked up, as C(ssd_store_url). Nothing is written to it.
    type: str
    default: ""
  criteria:
    description:
      - What C(ssd_criteria) has now. Where that differs from what the run was started with, this is told, and the run
        is judged by its own, unless O(rejudge). Without it nothing is compared.
      - Given on the command line (C(-e)), C(ssd_criteria) and C(ssd_health_criteria) are judged by in any case.
    type: raw
  health_criteria:
    description: What C(ssd_health_criteria) has now, by host.
    type: dict
    default: {}
  tests_dirs:
    description: Folders whose files C(criteria/*.yml) add to O(criteria), as C(ssd_tests_dirs).
    type: list
    elements: path
    default: []
  rejudge:
    description: Whether to judge by O(criteria) and O(health_criteria). The run's C(run.json) then has these, and keeps
      those before, with the time, in C(rejudged).
    type: bool
    default: false
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.results
  - ssdlab.fleet.results.run
  - ssdlab.fleet.run_once
seealso:
  - module: ssdlab.fleet.collect
  - module: ssdlab.fleet.watch
"""

EXAMPLES = r"""
- name: Judge a run again by another limit
  ssdlab.fleet.report:
    results_dir: "{{ playbook_dir }}/ssd-results"
    run_id: 20261121T130000Z-qualify
    criteria:
      - {test: iops, metric: write_iops, min: 40000}
    rejudge: true
  delegate_to: localhost
  run_once: true
  register: report

- name: Say what changed since the run that the fleet was accepted by
  ssdlab.fleet.report:
    results_dir: "{{ playbook_dir }}/ssd-results"
    run_id: 20261121T130000Z-qualify
    baseline: 20261001T130000Z-acceptance
    nights: 30
  delegate_to: localhost
  run_once: true

- name: Make a page for the supplier of one model, and the pages of two hosts of a large fleet
  ssdlab.fleet.report:
    results_dir: "{{ playbook_dir }}/ssd-results"
    run_id: 20261121T130000Z-qualify
    supplier_model: "MTFDDAK960TDS*"
    drives: [rack1-07, rack1-08]
  delegate_to: localhost
  run_once: true

- name: Fail unless every drive passed
  ansible.builtin.assert:
    that: report.all_passed
    fail_msg: "{{ report.failures }}"
  run_once: true
"""

RETURN = r"""
report:
  description: Path of the report's first page.
  returned: success
  type: str
  sample: /srv/ssd-results/20261121T130000Z-qualify/report/index.html
message:
  description: The verdicts and what changed since the previous run of that name, as plain text of no more than 1,800
    characters; also C(message.txt).
  returned: success
  type: str
  sample: "20261121T200000Z-nightly: all 2 drives passed\nNothing changed since 20261120T200000Z-nightly\n"
all_passed:
  description: Whether every drive passed. False if no drive was asked for.
  returned: success
  type: bool
  sample: false
verdicts:
  description: Number of drives of each verdict.
  returned: success
  type: dict
  sample: {pass: 2, not_tested: 0, invalid: 0, error: 0, fail: 1}
drives:
  description: One entry for each drive, in the order asked.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Inventory name.
      type: str
    drive:
      description: The identity that the inventory used.
      type: str
    model:
      description: Model, or null if the drive was never identified.
      type: str
    verdict:
      description: One of pass, fail, error, invalid, not_tested.
      type: str
    reason:
      description: The reason that decided.
      type: str
  sample:
    - {host: rack1-07, drive: 22123A4F5B6C, model: MTFDDAK960TDS, verdict: fail, reason: "wsat: write_iops 352 < 500
      (criterion wsat write_iops min 500)"}
failures:
  description: One line for each drive that did not pass, or a single line if no drive was asked for.
  returned: success
  type: list
  elements: str
  sample: ["rack1-07 22123A4F5B6C: fail: wsat: write_iops 352 < 500 (criterion wsat write_iops min 500)"]
"""
