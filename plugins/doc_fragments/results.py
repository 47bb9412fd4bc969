# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options of modules that work on a run's folder on the controller."""

    DOCUMENTATION = r"""
options:
  results_dir:
    description: The folder on the controller that holds the folders of runs. A relative path starts where
      C(ansible-playbook) was called.
    type: path
    required: true
"""

    # One run, by its id.
    RUN = r"""
options:
  run_id:
    description: The id of the run, which is the name of its folder.
    type: str
    required: true
"""

    # One run, by its id or by its name.
    OPTIONAL_RUN = r"""
options:
  run_id:
    description: The run's id. Empty for the last one of O(run_name).
    type: str
    default: ""
"""

    # The runs of one name.
    RUN_NAME = r"""
options:
  run_name:
    description: The run's name.
    type: str
    required: true
"""
