#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: campaign
short_description: Start, stop, restore or remove the host job of a qualification run
version_added: 0.1.0
description:
  - With O(state=present) starts the one detached job that works through this host's drives, or attaches to the one that is under way.
    B(The job erases every drive of the plan.) It checks each again right before it does.
  - The job is a transient unit where systemd is PID 1, else a session of its own. It does not need the controller any more.
  - The action plugin of the same name renders the plan and carries the engine to the host; playbooks call it by its role or by C(start.yml).
author:
  - The ssdlab.fleet authors (@ssdlab)
options:
  state:
    description:
      - V(present) the run is under way or finished. A finished run is left alone.
      - V(stopped) no job works on the run, and the host's settings are back.
      - V(restored) no ended run has left settings behind; refused while a job lives.
      - V(absent) the ended run's folder is gone.
    type: str
    choices: [present, stopped, restored, absent]
    default: present
  state_dir:
    description: Where runs are kept on the host.
    type: path
    default: /var/lib/ssdlab-fleet
  run_id:
    description: The run. Not needed for O(state=restored).
    type: str
  plan_file:
    description: The rendered plan, a JSON file on the host. Set by the action plugin.
    type: path
  engine:
    description: The engine, a zipapp on the host. Set by the action plugin.
    type: path
extends_documentation_fragment:
  - ssdlab.fleet.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: ssdlab.fleet.campaign_info
  - module: ssdlab.fleet.watch
"""

EXAMPLES = r"""
- name: Start the host job, or attach to it
  ssdlab.fleet.campaign:
    run_id: 20261121T130000Z-qualify

- name: End it cleanly; its unfinished tests count as interrupted
  ssdlab.fleet.campaign:
    state: stopped
    run_id: 20261121T130000Z-qualify
"""

RETURN = r"""
action:
  description: What was done, or in check mode would be.
  returned: success
  type: str
  sample: start
state:
  description: The run's state on this host afterwards.
  returned: success
  type: str
  sample: running
restored:
  description: Settings that were put back, with their values. Of those that are alike, on each CPU or queue, the first, and how many there are.
  returned: success
  type: list
  elements: dict
  sample: [{name: scheduler, path: /sys/block/nvme0n1/queue/scheduler, before: mq-deadline, effective: mq-deadline, outcome: restored, count: 1}]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import read_json
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str", choices=["present", "stopped", "restored", "absent"], default="present"),
            state_dir=dict(type="path", default="/var/lib/ssdlab-fleet"),
            run_id=dict(type="str"),
            plan_file=dict(type="path"),
            engine=dict(type="path"),
        ),
        required_if=[
            ("state", "present", ["run_id", "plan_file", "engine"]),
            ("state", "stopped", ["run_id"]),
            ("state", "absent", ["run_id"]),
        ],
        supports_check_mode=True,
    )
    host, check = Host(), module.check_mode
    try:
        if module.params["state"] == "restored":
            done = control.restore(host, module.params["state_dir"], check)
            for text in done.pop("warnings"):
                module.warn(text)
            module.exit_json(**done)
        run_dir = RunDir(module.params["state_dir"], module.params["run_id"])
        if module.params["state"] == "present":
            plan = read_json(module.params["plan_file"])
            module.exit_json(**control.start(host, run_dir, plan, module.params["engine"], check))
        change = control.stop if module.params["state"] == "stopped" else control.remove
        module.exit_json(**change(host, run_dir, check))
    except (control.JobError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
