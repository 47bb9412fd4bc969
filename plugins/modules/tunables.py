#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tunables
short_description: Show what tuning would change on a host
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Compares the settings that a run would apply with those in effect. It only reads. The host job applies the settings,
    verifies them and restores the original ones.
  - In check mode a difference counts as a change, so that C(ansible-playbook tune.yml --check --diff) shows what a run
    would change.
  - It cannot know which interrupts the kernel places itself, so it shows those as ones that would change.
  - An action plugin of the same name takes what is asked for from the variables of the role P(ssdlab.fleet.tune#role),
    and the drives from O(ssdlab.fleet.ssd#role:variables:ssd_drives). A variable that is not set has its role's
    default.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
attributes:
  check_mode:
    support: partial
    details: It changes nothing in any mode; a difference counts as a change in check mode alone.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  concern:
    description: The part of tuning to show. By default all parts that are switched on.
    type: str
    choices: [services, updates, smt, cpu, cstates, power, vm, queue, numa, interrupts, write_cache]
  tune:
    description: What is asked for, as C(tune) in C(plan.json). Set by the action plugin.
    type: dict
  placement:
    description:
      - If O(tune) is only a part of the tuning, the C(numa), C(interrupts) and SMT settings of all of it, because these
        together determine which CPUs are used.
      - Set by the action plugin.
    type: dict
  drives:
    description: The drives, as in C(ssd_drives). Set by the action plugin.
    type: list
    elements: dict
    default: []
  parallel_drives:
    description: How many of them run at the same time. Set by the action plugin.
    type: int
    default: 1
seealso:
  - module: ssdlab.fleet.host_job
"""

EXAMPLES = r"""
- name: Look at the block queues of the host's drives
  ssdlab.fleet.tunables:
    concern: queue
  register: seen

- name: List what a run would change
  ansible.builtin.debug:
    msg: "{{ seen.settings | selectattr('outcome', 'eq', 'changed') | map(attribute='path') }}"
"""

RETURN = r"""
settings:
  description: Each setting with its value now and the one wanted. Of equal settings, such as one for each CPU or
    interrupt, only the first is listed.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: How it is read and set, such as V(sysfs), V(service), V(irq), V(write_cache).
      type: str
    name:
      description: A short name.
      type: str
    path:
      description: The file, or the unit's name.
      type: str
    device:
      description: The drive that it is about; null for one of the whole host.
      type: str
    before:
      description: The current value; null if the host has no such setting.
      type: str
    wanted:
      description: The value that a run would set.
      type: str
    outcome:
      description: What a run would find, V(changed), V(unchanged) or V(not_applicable).
      type: str
    count:
      description: Number of equal settings, including this one.
      type: int
  sample:
    - {kind: sysfs, name: scheduler, path: /sys/block/nvme0n1/queue/scheduler, device: nvme0n1, before: mq-deadline,
       wanted: none, outcome: changed, count: 1}
places:
  description: Where fio would run, for each drive.
  returned: success
  type: dict
  sample: {"22123A4F5B6C": {cpus: 1-7, node: 0, interrupt_cpus: "0", note: ""}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.drive.entry import parse
from ..module_utils.records import base
from ..module_utils.records.plan import Tune
from ..module_utils.tuning import plan as tuning_plan
from ..module_utils.tuning import settings as tuning
from ..module_utils.tuning import tuned_host


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "concern": {
                "type": "str",
                "choices": [
                    "services",
                    "updates",
                    "smt",
                    "cpu",
                    "cstates",
                    "power",
                    "vm",
                    "queue",
                    "numa",
                    "interrupts",
                    "write_cache",
                ],
            },
            "tune": {"type": "dict"},
            "placement": {"type": "dict"},
            "drives": {"type": "list", "elements": "dict", "default": []},
            "parallel_drives": {"type": "int", "default": 1},
        },
        supports_check_mode=True,
    )
    given = module.params
    if given["tune"] is None:
        module.fail_json(
            msg="nothing is asked for; call this where the variables of the role ssdlab.fleet.tune are set"
        )
    entries = [parse(drive) for drive in given["drives"]]
    wrong = [entry.problem for entry in entries if entry.problem]
    if wrong:
        module.fail_json(msg="ssd_drives: " + wrong[0])
    drives = [tuning_plan.DriveToTune(entry.label, entry) for entry in entries]
    part = base.parse(Tune, given["tune"])
    whole = base.parse(Tune, {**given["tune"], **(given["placement"] or {})})
    plan = tuning_plan.TuningPlan(part, drives, given["parallel_drives"])
    settings, places = tuned_host.preview(Host(), plan, whole)
    settings = tuning.alike(settings)
    differing = [item for item in settings if item.outcome == "changed"]
    before = "".join(f"{tuning.paths_of(item)}: {item.before}\n" for item in differing)
    after = "".join(f"{tuning.paths_of(item)}: {item.wanted}\n" for item in differing)
    module.exit_json(
        changed=module.check_mode and bool(differing),
        settings=[item.to_json() for item in settings],
        places={name: place._asdict() for name, place in places.items()},
        diff={"before": before, "after": after},
    )


if __name__ == "__main__":
    main()
