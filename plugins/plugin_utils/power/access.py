# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which BMC a host's variables name."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ..common import argument_specs
from ..common.argument_specs import Variables
from .bmc import BmcAccess

NAMES = ("protocol", "address", "user", "password", "system", "ca_path")
Template = t.Callable[[t.Any], t.Any]


def value(variables: Variables, template: Template, name: str) -> t.Any:
    """Return a variable of the host, or its role's default: that role may be no part of the play."""
    return template(variables[name]) if name in variables else argument_specs.default(name)


def of(variables: Variables, template: Template) -> BmcAccess:
    """Return how the BMC of vendor_bmc_* is asked; bmc.problem says what it lacks."""
    texts = {name: str(value(variables, template, f"vendor_bmc_{name}") or "") for name in NAMES}
    return BmcAccess(**texts, validate_certs=boolean(value(variables, template, "vendor_bmc_validate_certs")))
