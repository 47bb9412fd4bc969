# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives the module `tunables` what the host's variables ask for."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import plain
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.values import drives_at_once
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan, tuning, tuning_values
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import (
    HostAction,
    refuse_injected_facts,
)

NAMES = (*tuning.VARIABLES, "ssd_drives", "ssd_parallel_drives", "ssd_step")


class ActionModule(HostAction):
    """See the module of the same name."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        given = [name for name in (*NAMES, *hostplan.TAGS) if name in variables]
        values = {name: argument_specs.default(name) for name in NAMES if name not in given}
        values.update(plain({name: self._templar.template(variables[name]) for name in given}))
        problems = tuning_values.problems(values)
        if problems:
            raise AnsibleActionFail("; ".join(problems))
        result.update(
            self.ask("tunables", dict(self._task.args, **_arguments(values, self._task.args.get("concern"))), variables)
        )
        return result


def _arguments(values: t.Mapping[str, t.Any], concern: str | None) -> dict[str, t.Any]:
    """Return the module's arguments from the host's variables: one concern, or all that are switched on."""
    given, keep = tuning_values.normal(values), values["ssd_step"] == "tune"
    everything = hostplan.tune_spec(values, keep)
    tune = tuning.build(given, [concern], keep) if concern else everything
    smt = [item for item in everything.sysfs if item.name == "smt"]
    placement = {"numa": everything.numa, "interrupts": everything.interrupts, "sysfs": smt}
    return {
        "tune": base.sparse_json(tune),
        "placement": base.sparse_json(placement),
        "drives": values["ssd_drives"],
        "parallel_drives": drives_at_once(values["ssd_parallel_drives"], len(values["ssd_drives"] or ())),
    }
