#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The action plugin of the same name does the work, on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: ingest
short_description: Take results that were measured elsewhere into a run
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Reads results of fio 3.x (C(--output-format=json+), with other output around it, several in a file) and of Iometer
    (C(results.csv) of 2006.07.27 and 1.1.0) into the folder of a run, which the report, the store and its exports take
    as they take one of this collection.
  - With O(plan), the results are those of the job files that M(ssdlab.fleet.render_jobs) wrote. Each one of fio is
    compared with its job file, and steady state is decided by the plan. Without it, each load is a cell of one test,
    and a load that comes again is another round.
  - The run is marked as measured elsewhere. Its drives are compared with each other, and never with those that this
    collection measured. Who the drive is, is what the operator states.
  - A result that is cut off, of another drive or of another job, or that overlaps with another is an error, and nothing
    is written.
  - It runs on the controller.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  results_dir:
    description: The folder with one folder for each run, as C(ssd_results_dir).
    type: path
    required: true
  run_id:
    description: The id of the run, for nothing but results from elsewhere. Several drives may share one.
    type: str
    required: true
  run_name:
    description: The name of the run; runs of one name are compared over time.
    type: str
    default: elsewhere
  host:
    description: The machine on which the drive was measured.
    type: str
    required: true
  system:
    description: Its operating system, for the report, such as V(Windows Server 2022).
    type: str
    required: true
  drive:
    description: Who the drive is, by its label or the vendor's tool there.
    type: dict
    required: true
    suboptions:
      serial:
        description: Its serial number.
        type: str
        required: true
      model:
        description: Its model, as others of it are called on Linux, so that criteria for a model hold for it.
        type: str
        required: true
      firmware:
        description: Its firmware.
        type: str
      wwn:
        description: Its world wide name.
        type: str
      transport:
        description: How it is attached, such as V(nvme) or V(sata).
        type: str
      size_bytes:
        description: Its capacity, as it was rendered for.
        type: int
        required: true
      logical_block_size_bytes:
        description: Its logical block, as it was rendered for.
        type: int
        choices: [512, 4096]
        default: 512
      minimum_io_size_bytes:
        description: Its preferred write size, if it was rendered for one.
        type: int
  files:
    description: Files of results, or folders. In folders, files such as C(.fio), C(.icf) and C(.txt) are passed over.
    type: list
    elements: path
    required: true
  plan:
    description: The plan that was rendered, as C(ssd_plan). Without it, results are taken as they are.
    type: raw
  platform:
    description: What it was rendered for.
    type: str
    choices: [windows, solaris, iometer]
  queue_depth:
    description: The queue depth that it was rendered with, for fills.
    type: int
    default: 32
  test:
    description: Without O(plan), the name of the test that the results are called.
    type: str
    default: elsewhere
  tests_dirs:
    description: As C(ssd_tests_dirs), folders with tests, plans and criteria of your own.
    type: list
    elements: path
    default: []
  criteria:
    description: As C(ssd_criteria), which the run is judged by.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Take what fio measured on a Windows machine
  ssdlab.fleet.ingest:
    results_dir: results
    run_id: windows-2026-11
    host: lab-win-3
    system: Windows Server 2022
    drive:
      serial: 22123A4F5B6C
      model: MTFDHAL960TDP
      firmware: E2MU200
      size_bytes: 960197124096
    plan: smoke
    platform: windows
    files: [rendered-windows]
"""

RETURN = r"""
run_dir:
  description: The folder of the run.
  returned: success
  type: str
  sample: /srv/lab/results/windows-2026-11
drive:
  description: The drive, as the report calls it.
  returned: success
  type: str
  sample: 22123A4F5B6C
tests:
  description: How many rounds were taken of each test.
  returned: success
  type: dict
  sample: {smoke: 3}
began:
  description: When the first result began, by the clock of that machine, as UTC.
  returned: success
  type: str
  sample: "2026-11-21T13:00:00.000Z"
"""
