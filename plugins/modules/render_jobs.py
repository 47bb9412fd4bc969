#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The action plugin of the same name does the work, on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: render_jobs
short_description: Write the jobs of a plan for Windows, Solaris or Iometer
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Writes the jobs of a plan as files for a platform on which this collection does not run, for an operator to run
    there. The module runs none of them, and they were not tried on these platforms.
  - V(windows) and V(solaris) get fio's jobs, with the substitutions of C(roles/workload/files/platforms.yml).
    V(iometer) gets a file of access specifications (C(.icf)) for each test.
  - A C(README.txt) lists the order, what a job file cannot express (such as the purge and the rounds), and what is
    left out.
  - Running the files erases all data on the drive, and no guard checks it first.
  - It runs on the controller.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  plan:
    description: As C(ssd_plan), the name of a plan or a list of tests.
    type: raw
    required: true
  tests_dirs:
    description: As C(ssd_tests_dirs), folders with tests and plans of your own.
    type: list
    elements: path
    default: []
  platform:
    description: What to render for.
    type: str
    choices: [windows, solaris, iometer]
    required: true
  device:
    description: The whole drive, as the platform calls it, such as V(\\\\.\\PhysicalDrive1) or V(/dev/rdsk/c1d0p0).
      Iometer needs none.
    type: str
    default: ""
  size_bytes:
    description: The drive's capacity.
    type: int
    required: true
  logical_block_size_bytes:
    description: The drive's logical block.
    type: int
    choices: [512, 4096]
    default: 512
  minimum_io_size_bytes:
    description: The drive's preferred write size, for cells with C(block_size=preferred); without it the logical
      block, at least 4 KiB.
    type: int
  queue_depth:
    description: The drive's own queue depth, for fills.
    type: int
    default: 32
  dest:
    description: The folder to write to, on the controller. Files in it that are not part of the plan stay.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Render the ioMemory guide's jobs for Windows
  ssdlab.fleet.render_jobs:
    plan: iomemory-guide
    platform: windows
    device: '\\.\PhysicalDrive1'
    size_bytes: 785000000000
    dest: rendered
"""

RETURN = r"""
dest:
  description: The folder, as an absolute path.
  returned: success
  type: str
  sample: /srv/lab/rendered
files:
  description: All files of the plan, relative to it.
  returned: success
  type: list
  elements: str
  sample: [README.txt, 01-wsat/001-rand-4k-w100-tc4-qd32.fio]
"""
