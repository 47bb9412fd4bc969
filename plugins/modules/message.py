#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: message
short_description: Read the message of a run, or of a night that began none
version_added: 0.1.0
description:
  - Returns what a mail or a chat is to be told of the run O(run_id), which is C(report/message.txt) of its folder.
  - Without an id, of what preflight decided last for a run of O(run_name), so that a night that was refused or skipped
    is told of, and not the night before; else of the newest run of that name.
  - It never fails for a report that is missing; the message says so.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  since_s:
    description: A time in seconds since 1970. What preflight decided earlier is not told; the message then says that
      nothing was begun. 0 for any time.
    type: float
    default: 0
  plans_only:
    description: Whether the play since O(since_s) was in plan mode, which starts nothing. The message then says so.
    type: bool
    default: false
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.results
  - ssdlab.fleet.results.optional_run
  - ssdlab.fleet.results.run_name
  - ssdlab.fleet.run_once
seealso:
  - module: ssdlab.fleet.report
"""

EXAMPLES = r"""
- name: Read what became of last night
  ssdlab.fleet.message:
    results_dir: "{{ playbook_dir }}/ssd-results"
    run_name: nightly
  delegate_to: localhost
  run_once: true
  register: night
"""

RETURN = r"""
message:
  description: The message, as plain text of no more than about 2,000 characters.
  returned: success
  type: str
  sample: "20261121T200000Z-nightly: all 2 drives passed\nNothing changed since 20261120T200000Z-nightly"
page:
  description: Path of the first page of the run's report. Empty where there is none.
  returned: success
  type: str
  sample: /srv/ssd-results/20261121T200000Z-nightly/report/index.html
"""
