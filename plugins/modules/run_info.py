#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_info
short_description: List the qualification runs on a host, and read the state of one
version_added: 0.1.0
description:
  - Lists the runs whose folders are on this host, with their state.
  - For one run, also returns its status. Its journal stays in the run's folder, which O(archive) packs into one file;
    M(ssdlab.fleet.collect) computes the records of its drives and tests from it.
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  run_id:
    description: The run to read. It is not an error if the host does not know the run.
    type: str
  run_name:
    description: List only runs of this name.
    type: str
  definitions_of:
    description: A run whose tests' definitions to return, beside those of unfinished runs. Unlike O(run_id), it may be
      any text.
    type: str
  archive:
    description:
      - Pack the folder of O(run_id) into C(<state_dir>/<run_id>.tar.gz), readable for everyone. This does not count as
        a change.
      - Not done in check mode.
    type: bool
    default: false
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
  - ssdlab.fleet.state
seealso:
  - module: ssdlab.fleet.host_job
  - module: ssdlab.fleet.collect
"""

EXAMPLES = r"""
- name: List the host's runs of one name
  ssdlab.fleet.run_info:
    run_name: qualify
  register: known

- name: Read the state of one run
  ssdlab.fleet.run_info:
    run_id: 20261121T130000Z-qualify
  register: run

- name: Show what became of each drive
  ansible.builtin.debug:
    msg: "{{ item.drive }}: {{ item.outcome }}"
  loop: "{{ run.status.drives | default([]) }}"
"""

RETURN = r"""
runs:
  description:
    - The runs on this host, oldest id first.
    - "C(state) is C(starting), C(running), C(finished), C(stopped), C(failed), or C(dead): its job ended without
      reporting it."
    - C(definitions) holds a digest of each part of each test's definition, for unfinished runs and O(definitions_of);
      empty for others.
  returned: success
  type: list
  elements: dict
  sample: [{run_id: 20261121T130000Z-qualify, run_name: qualify, state: running, drives: 2, updated:
    "2026-11-21T13:07:31.120Z", definitions: {}}]
state:
  description: The state of O(run_id), C(absent) if this host does not know it.
  returned: when O(run_id) is given
  type: str
  sample: finished
status:
  description: The run's C(status.json), as in C(plugins/module_utils/records/run_files.py); empty if
    there is none.
  returned: when O(run_id) is given
  type: dict
  sample: {schema_version: 1, run_id: 20261121T130000Z-qualify, run_name: qualify, host: rack1-07, state: finished,
           restored: true, drives: []}
unfinished:
  description: Drives that the host job still has to finish.
  returned: when O(run_id) is given
  type: list
  elements: str
  sample: [22123A4F5B6C]
damage:
  description: A sentence for each damaged file of the run; what can still be read of it counts.
  returned: when O(run_id) is given
  type: list
  elements: str
  sample: ["/var/lib/ssdlab-fleet/runs/nightly/status.json: it is empty"]
packed:
  description: The archive of the run's folder, C(<state_dir>/<run_id>.tar.gz) on the host.
  returned: when O(archive) is true, the host knows the run, and not in check mode
  type: dict
  contains:
    size_bytes:
      description: Its size.
      type: int
      sample: 183422
    sha256:
      description: Its checksum.
      type: str
      sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.run import archive, run_info


def main() -> None:
    module = AnsibleModule(
        argument_spec=run_info.OPTIONS,
        required_if=[("archive", True, ["run_id"])],
        supports_check_mode=True,
    )
    pack = None if module.check_mode else archive.pack
    try:
        module.exit_json(changed=False, **run_info.module_result(Host(), module.params, pack))
    except ValueError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
