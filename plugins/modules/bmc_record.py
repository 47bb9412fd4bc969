#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bmc_record
short_description: Keep on a host what was changed by its BMC
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Reads or writes C(bmc.json) in the state folder, by which M(ssdlab.fleet.bmc_settings) restores BIOS attributes and
    fans, whichever controller changed them.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.sets
  - ssdlab.fleet.state
options:
  record:
    description: What to keep instead of the record that is there. Without it, the record is only read. One without
      attributes and fans is removed.
    type: dict
seealso:
  - module: ssdlab.fleet.bmc_settings
"""

EXAMPLES = r"""
- name: See what is to be restored by the BMC
  ssdlab.fleet.bmc_record:
  become: true
  register: changed
"""

RETURN = r"""
record:
  description: The record, as it is kept now.
  returned: success
  type: dict
  contains:
    bios_before:
      description: What each changed BIOS attribute was before.
      type: dict
      sample: {ProcCStates: Enabled}
    fans:
      description: How the fans were before they were set high.
      returned: while they are
      type: dict
      sample: {way: Supermicro, before: Optimal, since: "2026-11-29T01:00:00.000Z"}
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.files import STATE_DIR
from ..module_utils.machine import bmc_record
from ..module_utils.records import base
from ..module_utils.records.bmc import BmcRecord


def main() -> None:
    module = AnsibleModule(
        argument_spec={"record": {"type": "dict"}, "state_dir": {"type": "path", "default": STATE_DIR}},
        supports_check_mode=True,
    )
    state_dir, given = module.params["state_dir"], module.params["record"]
    try:
        before = bmc_record.read(state_dir)
        after = before if given is None else base.parse(BmcRecord, given)
        if after != before and not module.check_mode:
            bmc_record.write(state_dir, after)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{bmc_record.path(state_dir)}: {error}")
    texts = [json.dumps(base.to_json(one), indent=1) + "\n" for one in (before, after)]
    module.exit_json(changed=after != before, record=base.to_json(after), diff={"before": texts[0], "after": texts[1]})


if __name__ == "__main__":
    main()
