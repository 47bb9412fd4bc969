# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list that a host's run is of: ssd_drives, whose drives are erased, or ssd_service_drives, whose drives are only
read. A run of one never takes a drive of the other. Reads test files.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.entry import Entry, parse
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.run.read_only import MODE
from ..common.argument_specs import Variables
from ..common.schema import plain
from ..plan import hostplan, in_service, tuning
from ..plan.testfiles import PlanError, load_plan
from . import examine_arguments

LIST = "ssd_service_drives"
ALL = "all"
# What preflight takes in place of ssd_drives, whose value stays here for comparing.
ERASED = "ssd_drives_not_read"
READS_SERVICE = "ssd_reads_service"
# What a run that only reads does not do to a host.
NOT_DONE = (*tuning.VARIABLES, *examine_arguments.PREPARED, examine_arguments.BOOT)


def chosen(found: Variables, unset: t.Any) -> Variables:
    """Return a host's variables with the drives of its run in ssd_drives, whichever list they are of."""
    if not _is_service(found):
        return found
    given, others = found.get(LIST), found["ssd_drives"]
    if found.get(hostplan.AGAIN, unset) not in (None, unset, {}):
        # A second measurement is of drives that the first preflight saw.
        given, others = others, []
    drives = [] if given in (None, unset, "") else given
    nothing = dict.fromkeys((name for name in NOT_DONE if name in found), unset)
    return {**found, **nothing, READS_SERVICE: True, ERASED: others, "ssd_drives": drives}


def _is_service(found: Variables) -> bool:
    mode = found.get("ssd_mode")
    if mode != "plan" or found.get("ssd_step") != "qualify" or not isinstance(found.get(LIST), (list, str)):
        return bool(mode == MODE)
    # Only plan mode has to look at the tests, and only where a host has drives of that list.
    if not found[LIST]:
        return False
    try:
        return in_service.is_for(load_plan(found["ssd_plan"], plain(found["ssd_tests_dirs"]) or []))
    except (PlanError, TypeError):  # what is wrong with it is told later
        return False


def is_service(asked: Variables | None) -> bool:
    """Return whether a host's run is of ssd_service_drives."""
    return bool((asked or {}).get(READS_SERVICE))


def name_of(asked: Variables | None) -> str:
    """Return the name of the list that a host's run is of."""
    return LIST if is_service(asked) else "ssd_drives"


def parts(asked: Variables, unset: str) -> dict[str, t.Any]:
    """Return the options of the module examine (examine_arguments.parts). A drive of a run that only reads is not
    looked at as one that is to be erased, and no traffic is made on it.
    """
    if not is_service(asked):
        found = examine_arguments.parts(asked, unset)
        return {
            **found,
            **({"service_drives": _arguments(asked)} if asked.get(LIST) not in (None, unset, [], "") else {}),
        }
    drives = [] if asked["ssd_drives"] == ALL else asked["ssd_drives"]
    found = examine_arguments.parts({**asked, "ssd_drives": drives}, unset)
    if "drive_facts" not in found:
        return found
    del found["drive_facts"]
    return {**found, "service_drives": _arguments(asked), "host_checks": {**found["host_checks"], "traffic_s": 0.0}}


def _arguments(asked: Variables) -> dict[str, t.Any]:
    """Return the options of the part service_drives: what is in both lists is refused."""
    other = asked.get(ERASED if is_service(asked) else LIST)
    drives = asked["ssd_drives"] if is_service(asked) else []
    return {
        "reads": is_service(asked),
        "drives": drives if isinstance(drives, list) else [],
        "all": drives == ALL,
        "others": other if isinstance(other, list) else [],
        "all_others": other == ALL,
    }


def list_problem(asked: Variables) -> str:
    """Return what is wrong with the list's form, in a run that erases drives of the other one; "": nothing."""
    given = asked.get(LIST)
    if is_service(asked) or isinstance(given, list) or given in (None, "", ALL):
        return ""
    return (
        f'{LIST}: {given!r} is not a list, so nobody knows which drives may not be erased; write - serial: "…" for '
        f"each drive, or {ALL}"
    )


def entries_of(asked: Variables | None, drives: t.Sequence[FoundDrive] | None) -> list[Entry] | None:
    """Return the entries of a host's list; of `all` those that the host proposes. None: it is no list."""
    given = plain((asked or {}).get("ssd_drives"))
    if is_service(asked) and given == ALL:
        return [parse(found.selector) for found in drives or () if found.selector is not None]
    return [parse(drive) for drive in given] if isinstance(given, list) else None


def lacking(asked: Variables) -> str:
    """Return what to say of a run that only reads, of a host whose list of such drives is empty."""
    has_others = bool(asked.get(ERASED))
    text = f"{LIST}: no drive is named, and ssd_mode={MODE} reads the drives of that list alone"
    return f"{text}{', never those of ssd_drives' * has_others}; name drives there, or write {LIST}: {ALL}"
