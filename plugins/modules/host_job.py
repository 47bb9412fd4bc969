#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_job
short_description: Start, stop, restore or remove the host job of a qualification run
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - With O(state=present), starts the one detached job that works through the host's drives, or attaches to the one
    under way. B(The job erases every drive that preflight approved.) It checks each drive again right before it does.
  - The job is a transient unit if systemd is PID 1, otherwise a session of its own. Once started, it does not need the
    controller.
  - The job works through the plan that preflight of the same play made and approved with
    O(ssdlab.fleet.ssd#role:variables:ssd_mode=destructive). It starts no other, whatever a variable became since.
  - An action plugin of the same name sends that plan to the host, with the engine if the host does not have it yet.
options:
  state:
    description:
      - V(present) makes sure that the run is under way or finished. A finished run is left alone, an interrupted one
        is continued.
      - V(stopped) ends the run's job and restores the host's settings.
      - V(restored) restores what ended runs left changed on the host. It fails while a host job is running, because
        that job restores the host itself. With O(run_id), it restores only what a dead job of that run left; settings
        of C(tune.yml) stay.
      - V(absent) removes the folder of an ended run from the host.
    type: str
    choices: [present, stopped, restored, absent]
    default: present
  state_dir:
    description: The folder on the host that holds its runs. It is refused if users other than root may write to it or
      to one of its parent folders.
    type: path
    default: /var/lib/ssdlab-fleet
  run_id:
    description: The run's id. Required unless O(state=restored).
    type: str
  engines:
    description:
      - The engines that the host already has, from RV(ssdlab.fleet.examine#module:engines). The engine is sent at
        once if it is not among them.
      - Without this the host is asked first, and a second time with the engine if it does not have it. An engine on the
        host is run only if its content is the same as the controller's.
    type: list
    elements: str
  plan:
    description: The plan, compressed. Set by the action plugin.
    type: str
  engine:
    description: The engine that is to run. Set by the action plugin.
    type: dict
    suboptions:
      name:
        description: The name of its file.
        type: str
        required: true
      sha256:
        description: The digest of its content.
        type: str
        required: true
      data:
        description: Its content, compressed. Left out if the host already has it.
        type: str
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
seealso:
  - module: ssdlab.fleet.run_info
  - module: ssdlab.fleet.watch
  - module: ssdlab.fleet.collect
"""

EXAMPLES = r"""
- name: Decide which drives may be erased, and what is done to them
  ansible.builtin.include_role:
    name: ssdlab.fleet.preflight
  vars:
    ssd_mode: destructive
    ssd_run_name: qualify
    ssd_run_id: 20261121T130000Z-qualify
    ssd_plan: [wsat, iops]

- name: Start the host job, or attach to it
  ssdlab.fleet.host_job:
    run_id: 20261121T130000Z-qualify
  become: true

- name: End the run; its unfinished tests count as interrupted
  ssdlab.fleet.host_job:
    state: stopped
    run_id: 20261121T130000Z-qualify
  become: true

- name: Put back what ended runs left changed
  ssdlab.fleet.host_job:
    state: restored
  become: true

- name: Remove the ended run from the host
  ssdlab.fleet.host_job:
    state: absent
    run_id: 20261121T130000Z-qualify
  become: true
"""

RETURN = r"""
action:
  description:
    - What was done, or in check mode would be.
    - V(start), V(resume) or V(attach) for O(state=present), else V(stop), V(restore) or V(remove). V(nothing) if
      nothing had to be done.
  returned: success
  type: str
  sample: start
state:
  description:
    - The run's state on this host afterwards, such as V(running), V(finished), V(stopped) or V(absent).
    - V(restored) with O(state=restored). In check mode, the state before.
  returned: success
  type: str
  sample: running
restored:
  description:
    - The restored settings, with their values. Of equal settings, such as one for each CPU, only the first is listed,
      with their count.
    - Always empty for O(state=absent) and in check mode.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: scheduler, path: /sys/block/nvme0n1/queue/scheduler, before: mq-deadline, effective: mq-deadline,
       outcome: restored, count: 1}
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.compression import unpack
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import STATE_DIR
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.engines import Engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir

# The action plugin checks these too, before it builds anything.
ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "stopped", "restored", "absent"], "default": "present"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "run_id": {"type": "str"},
    "engines": {"type": "list", "elements": "str"},
    # Long, and nothing that a log should hold.
    "plan": {"type": "str", "no_log": True},
    "engine": {
        "type": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "data": {"type": "str", "no_log": True},
        },
    },
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[
            ("state", "present", ["run_id", "plan", "engine"]),
            ("state", "stopped", ["run_id"]),
            ("state", "absent", ["run_id"]),
        ],
        supports_check_mode=True,
    )
    host, check = Host(), module.check_mode
    try:
        control.refuse_foreign(module.params["state_dir"])
        if module.params["state"] == "restored":
            done = control.restore(host, module.params["state_dir"], check, module.params["run_id"])
            for text in done.pop("warnings"):
                module.warn(text)
            module.exit_json(**done)
        run_dir = RunDir(module.params["state_dir"], module.params["run_id"])
        if module.params["state"] == "present":
            plan, engine = base.parse(Plan, json.loads(unpack(module.params["plan"]))), module.params["engine"]
            data = unpack(engine["data"]) if engine["data"] else None
            wanted = Engine(engine["name"], engine["sha256"], data)
            module.exit_json(**control.start(host, run_dir, plan, wanted, check))
        change = control.stop if module.params["state"] == "stopped" else control.remove
        module.exit_json(**change(host, run_dir, check))
    except (control.JobError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
