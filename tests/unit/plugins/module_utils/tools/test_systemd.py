# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services, as systemctl(1) tells them: `show` prints a block of properties for each unit, in the order asked, with an
empty line between.
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import SysfsFile, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import systemd as services
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning

UNITS = {
    "irqbalance": ("loaded", "active"),
    "tuned": ("loaded", "inactive"),
    "apt-daily.timer": ("loaded", "activating"),
    "broken": ("loaded", "failed"),
    "ondemand": ("not-found", "inactive"),
    "forbidden": ("masked", "inactive"),
    "tuned-ppd.service": ("loaded", "inactive"),
}
# tuned-ppd.service has Requires=tuned.service.
REQUIRED_BY = {"tuned": "tuned-ppd.service"}


@pytest.fixture
def systemd(fake):
    """A host with these units; a start of tuned sets the swappiness, as its profiles do. `refuses`: a unit that does
    not change.
    """
    fake.put("/run/systemd/system/x", "")
    fake.put(tuning.BOOT_ID, "boot-1\n")
    fake.put("/proc/sys/vm/swappiness", "60\n")
    fake.units, fake.refuses = {name: list(states) for name, states in UNITS.items()}, ""

    def run(argv, timeout_s=60, stdin=None):
        fake.commands.append(list(argv))
        names = argv[argv.index("--") + 1 :]
        if "RequiredBy" in argv[2]:
            return Result(
                argv, 0, "RequiredBy={} some.target\nConsistsOf=\nBoundBy=\n".format(REQUIRED_BY.get(names[0], "")), ""
            )
        if argv[1] == "show":
            return Result(
                argv,
                0,
                "\n".join("LoadState={}\nActiveState={}\n".format(*tuple(fake.units[name])) for name in names),
                "",
            )
        if fake.refuses in names:
            return Result(argv, 1, "", f"Job for {names[0]} failed.\n")
        fake.units[names[0]][1] = "active" if argv[1] == "start" else "inactive"
        if argv[1] == "stop" and names[0] in REQUIRED_BY:
            fake.units[REQUIRED_BY[names[0]]][1] = "inactive"
        if argv[1:] == ["start", "--", "tuned"]:
            fake.put("/proc/sys/vm/swappiness", "10\n")
        return Result(argv, 0, "", "")

    fake.run = run
    return fake


def test_the_states_of_units_are_read_by_one_command(systemd):
    told = services.states(systemd, list(UNITS))
    assert told == {
        "irqbalance": "active",
        "tuned": "inactive",
        "apt-daily.timer": "active",
        "broken": "inactive",
        "ondemand": None,
        "forbidden": None,
        "tuned-ppd.service": "inactive",
    }
    assert len(systemd.commands) == 1


def test_a_host_without_systemd_has_no_units(fake):
    assert services.states(fake, ["irqbalance"]) == {"irqbalance": None} and fake.commands == []


def settings(systemd, *names):
    swappiness = SysfsFile("vm.swappiness", "/proc/sys/vm/swappiness", "20")
    tune = Tune(services_stopped=list(names), sysfs=[swappiness])
    return plan.expand(systemd, tune, [], plan.Places(systemd, plan.TuningPlan(tune, [], 1), []))


def test_what_was_active_is_stopped_first_and_started_last(systemd, tmp_path):
    """A service that starts sets what it likes, so all other values are back before it does; what was not active stays
    so.
    """
    record = str(tmp_path / "tuning.json")
    systemd.units["tuned"][1] = "active"
    applied = tuning.apply(systemd, settings(systemd, "irqbalance", "tuned", "broken", "ondemand"), record)
    assert [(item.name, item.outcome) for item in applied] == [
        ("irqbalance", "changed"),
        ("tuned", "changed"),
        ("broken", "unchanged"),
        ("ondemand", "not_applicable"),
        ("vm.swappiness", "changed"),
    ]
    assert systemd.units["irqbalance"][1] == systemd.units["tuned"][1] == "inactive"
    done = tuning.restore(systemd, record)
    assert [item.name for item in done] == ["vm.swappiness", "tuned", "irqbalance"] and {
        item.outcome for item in done
    } == {"restored"}
    assert [systemd.units[name][1] for name in ("irqbalance", "tuned", "broken")] == ["active", "active", "failed"]
    assert systemd.read("/proc/sys/vm/swappiness") == "10"


@pytest.mark.parametrize("before", ["active", "inactive"])
def test_what_systemd_stops_along_with_a_unit_is_started_again_too(systemd, tmp_path, before):
    record = str(tmp_path / "tuning.json")
    systemd.units["tuned"][1], systemd.units["tuned-ppd.service"][1] = "active", before
    tuning.apply(systemd, settings(systemd, "tuned"), record)
    assert systemd.units["tuned-ppd.service"][1] == "inactive"
    tuning.restore(systemd, record)
    assert (systemd.units["tuned"][1], systemd.units["tuned-ppd.service"][1]) == ("active", before)


def test_a_unit_that_does_not_stop_is_failed_and_says_why(systemd, tmp_path):
    systemd.refuses = "irqbalance"
    (failed,) = [
        item
        for item in tuning.apply(systemd, settings(systemd, "irqbalance"), str(tmp_path / "tuning.json"))
        if item.outcome == "failed"
    ]
    assert (failed.name, failed.message) == ("irqbalance", "Job for irqbalance failed.")
