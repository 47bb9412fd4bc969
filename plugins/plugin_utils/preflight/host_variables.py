# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's variables that preflight decides by, each evaluated once: a lookup may give something else the next time,
and what is erased is what was asked for.
"""

from __future__ import annotations

import functools
import typing as t

from ansible.errors import AnsibleError

from ...module_utils.drive.entry import is_programs
from ..common.argument_specs import Variables, options
from ..common.schema import plain
from ..plan import hostplan
from . import approval_check, examine_arguments, service_drives
from .findings import UNSET

# What the controller alone needs. Of the approved plan, each host's answer has a digest: the plan of a big fleet would
# be in every one.
APPROVED = "ssd_approved_plan"
PASSING = "ssd_passing_programs"
# What a host's BMC lacks of its variables: these are secrets, and what a host was asked is registered.
BMC_PROBLEM = "bmc_problem"
_BMC = ("vendor_bmc_address", "vendor_bmc_user", "vendor_bmc_password")
_OF_CONTROLLER = frozenset({"ssd_ask_hosts", "ssd_become", "ssd_store_url", APPROVED})
Template = t.Callable[[t.Any], t.Any]


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all variables that count."""
    of_roles = {name for role in ("ssd", "preflight", "tune") for name in options(role)}
    of_job = {*hostplan.VARIABLES, *hostplan.GIVEN}
    of_preparation = {*examine_arguments.PREPARED, *approval_check.OVERRIDES}
    return tuple(sorted((of_roles | of_job | of_preparation) - _OF_CONTROLLER))


def evaluated(variables: Variables, template: Template) -> Variables:
    """Return {name: value} of all `names`, UNSET where nobody has set one, and a digest of the approved plan.

    Each entry of ssd_drives has the programs of ssd_passing_programs beside its own. A second measurement (ssd_retest)
    is of the drives that the first preflight saw, under a run of its own. A run that only reads is of
    ssd_service_drives.
    template: evaluates a value. Raises AnsibleError, which names the variable.
    """
    found = {name: _value(name, variables, template) for name in names()}
    found[APPROVED] = _approved(variables, template)
    missing = [name for name in _BMC if _value(name, variables, template) in (UNSET, "", None)]
    found[BMC_PROBLEM] = f"no {', '.join(missing)}" if missing else ""
    again = found[hostplan.AGAIN]
    if isinstance(again, dict) and again:
        found.update(ssd_drives=again["drives"], ssd_run_id=again["run_id"], ssd_run_name=again["run_name"])
    found["ssd_drives"] = _with_programs(found["ssd_drives"], found[PASSING])
    return service_drives.chosen(found, UNSET)


def _with_programs(drives: t.Any, programs: t.Any) -> t.Any:
    """Return ssd_drives with the site's programs in each entry; malformed values are told elsewhere."""
    if not isinstance(drives, list) or not is_programs(programs) or not programs:
        return drives
    key = "passing_programs"
    return [{**one, key: [*one.get(key, ()), *programs]} if _may_name(one, key) else one for one in drives]


def _may_name(entry: t.Any, key: str) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get(key, []), list)


def _value(name: str, variables: Variables, template: Template) -> t.Any:
    if name not in variables:
        return UNSET
    try:
        return plain(template(variables[name]))
    except AnsibleError as error:
        raise AnsibleError(f"{name}: {error}") from error


def _approved(variables: Variables, template: Template) -> t.Any:
    """Return the approved plan's digest, or its path; of its lines none is evaluated."""
    plan = variables.get(APPROVED, UNSET)
    if isinstance(plan, str):
        plan = template(plan)
    return plain(template(plan.get("sha256", "")) if isinstance(plan, t.Mapping) else plan)
