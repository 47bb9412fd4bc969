#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: steady_state
short_description: Check whether a series of rounds has reached steady state
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Applies the steady-state rule of the SNIA Solid State Storage Performance Test Specification to the values of a
    tracked variable, one a round.
  - A window is steady when the range of its values is no more than O(range_limit) of their average, and the line fitted
    by least squares moves across the window by no more than O(slope_limit) of the average.
  - The limits are inclusive. What is beyond one by no more than a billionth of it is on it.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  values:
    description:
      - The value of each round, oldest first, as numbers or numeric texts.
      - V(nan) and V(inf) are accepted, and never steady.
    type: list
    elements: raw
    required: true
  window:
    description: The number of consecutive rounds in a window; 2 or more.
    type: int
    default: 5
  range_limit:
    description: The largest range allowed in the window, as a part of its average.
    type: float
    default: 0.20
  slope_limit:
    description: How far the fitted line may rise or fall across the window, as a part of the average.
    type: float
    default: 0.10
  margin:
    description:
      - How far any value of the window may be from its average, as a part of it, besides the other two limits.
      - Micron TN-FD-15 speaks of 0.1. Without it there is no such rule.
    type: float
"""

EXAMPLES = r"""
- name: Judge the write IOPS of six rounds
  ssdlab.fleet.steady_state:
    values: [61200, 44900, 42100, 41300, 41900, 41500]
  register: iops

- name: Stop unless the drive is steady
  ansible.builtin.assert:
    that: iops.steady
    fail_msg: "{{ iops.reasons | join('; ') }}"
"""

RETURN = r"""
steady:
  description: Whether a window of the series is steady.
  returned: success
  type: bool
  sample: true
rounds:
  description: The first round, counted from 1, at which the window that ends there is steady; otherwise the number of
    values.
  returned: success
  type: int
  sample: 6
window_values:
  description: The values of that window, or of the last one; null for a value that is NaN or infinite.
  returned: success
  type: list
  elements: float
  sample: [44900.0, 42100.0, 41300.0, 41900.0, 41500.0]
average:
  description: The average of the window; null when it does not exist.
  returned: success
  type: float
  sample: 42340.0
range_ratio:
  description: The largest value of the window minus the smallest, divided by the average; null when it does not exist.
  returned: success
  type: float
  sample: 0.0850
slope:
  description: The slope of the line fitted by least squares, per round; null when it does not exist.
  returned: success
  type: float
  sample: -700.0
slope_ratio:
  description: The absolute slope times the window less one, divided by the average; null when it does not exist.
  returned: success
  type: float
  sample: 0.0661
reasons:
  description: Why the series is not steady; empty when it is.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.measure.steady_state import RANGE_LIMIT, SLOPE_LIMIT, WINDOW, evaluate


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "values": {"type": "list", "elements": "raw", "required": True},
            "window": {"type": "int", "default": WINDOW},
            "range_limit": {"type": "float", "default": RANGE_LIMIT},
            "slope_limit": {"type": "float", "default": SLOPE_LIMIT},
            "margin": {"type": "float"},
        },
        supports_check_mode=True,
    )
    try:
        result = evaluate(**module.params)
    except ValueError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **vars(result))


if __name__ == "__main__":
    main()
