# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests that each host of a fleet is asked for, loaded once for all that need them. Reads test files."""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ..common import argument_specs
from ..common.argument_specs import Variables
from ..common.schema import plain
from ..plan import hostplan
from ..plan.test_record import Test
from ..plan.testfiles import PlanError
from ..run_folder.run_record import Definition
from . import variable_rules
from .findings import HostAnswer


class HostTests(t.NamedTuple):
    """The tests of one host. Hosts with the same plan share them, so nobody may change one.

    variables: those of its plan (host_variables). asked: all tests that they ask for; tests: those of the run, in their
    order. left_out: those that ssd_time_budget leaves out, {name: their longest time in s}. problems: what is wrong
    with them; there are no tests then.
    """

    variables: Variables
    asked: t.Sequence[Test] = ()
    tests: t.Sequence[Test] = ()
    left_out: t.Mapping[str, float] = MappingProxyType({})
    problems: t.Sequence[str] = ()


Requested = t.Mapping[str, HostTests]
# {host: {test: what run.json keeps of it}}
TestsOfHosts = t.Mapping[str, t.Mapping[str, Definition]]


def of_hosts(views: t.Sequence[HostAnswer]) -> dict[str, HostTests]:
    """Return the tests of each host whose variables are known. Each plan is loaded once, however many have it."""
    loaded: dict[str, list[Test] | PlanError] = {}
    found = {}
    for view in views:
        if view.asked is None:
            continue
        variables = plain(host_variables(view.asked))
        plan = repr([variables[name] for name in hostplan.TEST_VARIABLES])
        if plan not in loaded:
            loaded[plan] = _load(variables)
        found[view.name] = _of_host(loaded[plan], variables, view.drives_to_plan())
    return found


def host_variables(asked: Variables) -> Variables:
    """Return the variables of a plan. The roles' defaults stand for those of roles that are not part of the play, and
    for wrong ones (findings).
    """
    wrong = {problem.split(":")[0].split(".")[0] for problem in variable_rules.problems(asked)}
    given = {
        name: argument_specs.default(name) if asked.get(name) is None or name in wrong else asked[name]
        for name in hostplan.VARIABLES
    }
    return {**given, **{name: asked[name] for name in hostplan.GIVEN if name in asked}}


def _load(variables: Variables) -> list[Test] | PlanError:
    try:
        return hostplan.load_tests(variables)
    except PlanError as error:
        return error


def _of_host(loaded: list[Test] | PlanError, variables: Variables, drives: hostplan.Drives) -> HostTests:
    if isinstance(loaded, PlanError):
        return HostTests(variables, problems=loaded.problems)
    try:
        tests, left_out = hostplan.choose_tests(loaded, variables, drives)
    except PlanError as error:
        return HostTests(variables, problems=error.problems)
    return HostTests(variables, loaded, tests, left_out)
