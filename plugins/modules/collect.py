#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collect
short_description: Fetch a host's part of a qualification run to the controller
version_added: 0.1.0
description:
  - Reads the run's summary on the host, and fetches the run's folder (journal, fio's results) as one file into
    C(<results_dir>/<run_id>/raw/<inventory name>/), which it replaces.
  - The records that it returns are appended to C(<results_dir>/<run_id>/results.jsonl) by the callback
    P(ssdlab.fleet.fleet#callback), which has to be enabled.
  - If the run has not ended, it collects what is finished and lists what is not. It may be run again at any time.
  - It does not fail on a host without this run. It returns a record that says so, and the report judges that record.
  - In check mode nothing is fetched and no record is returned.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  limits:
    description:
      - Limits of what a host may send. Exceeding one is an error of that host, and its folder on the controller stays
        as it was.
      - "Any of C(archive_bytes) (default: 16 GiB), C(unpacked_bytes) (64 GiB; never more than half of the free space),
        C(files) (500,000), C(ratio) (200, how many times its size an archive may unpack to, if that is above 64 MiB)
        and C(journal_bytes) (the size of its journal, 256 MiB; a report never reads more than 1 GiB)."
    type: dict
    default: {}
  hypervisor:
    description: The host that this guest runs on, as C(ssd_hypervisor). What C(esxi.yml) kept of it goes into the
      guest's snapshot.
    type: str
    default: ""
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.results
  - ssdlab.fleet.results.run
  - ssdlab.fleet.state
attributes:
  check_mode:
    support: partial
    details: Asks the host, but collects nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: ssdlab.fleet.run_info
  - module: ssdlab.fleet.watch
"""

EXAMPLES = r"""
- name: Collect what every host has
  ssdlab.fleet.collect:
    run_id: 20261121T130000Z-qualify
    results_dir: "{{ playbook_dir }}/ssd-results"
  become: true
"""

RETURN = r"""
run_id:
  description: The run.
  returned: success and not in check mode
  type: str
  sample: 20261121T130000Z-qualify
results_dir:
  description: Folder of all runs on the controller, as an absolute path.
  returned: success and not in check mode
  type: str
  sample: /srv/ssd-results
state:
  description: The run's state on this host, C(absent) if the host does not know it.
  returned: success
  type: str
  sample: finished
skipped_collection:
  description: Always V(true).
  returned: in check mode
  type: bool
  sample: true
unfinished:
  description: Drives that the host job still has to finish.
  returned: success and not in check mode
  type: list
  elements: str
  sample: [22123A4F5B6C]
left_tuned:
  description: Whether the host job is gone and has left settings of the host changed, or may have. V(true) also for
    settings that C(tune.yml) leaves in place.
  returned: success
  type: bool
  sample: false
diff:
  description: What C(-v) does not print.
  returned: success and not in check mode
  type: dict
  contains:
    records:
      description: The records of this host, its drives and tests, as in C(plugins/module_utils/records/results.py). A
        list as JSON text, which Ansible copies and keeps as one value.
      returned: always
      type: str
      sample: '[{"schema_version": 1, "kind": "host", "time": "2026-11-21T18:00:00.123Z", "run_id":
        "20261121T130000Z-qualify", "host": "rack1-07", "state": "ok", "message": ""}]'
"""
