# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning on this machine's real kernel: memory management, interrupts, and the queue of a loop device, before, during
and after.
"""

from __future__ import annotations

import os
import re

import own_machine
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import snapshot
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings, tuned_host
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
FOLDERS = ("/proc/sys/vm", "/sys/devices/system/cpu", "/sys/module/pcie_aspm/parameters")
# Counters, and what the kernel changes by itself.
MOVING = re.compile(
    r"/(time|usage|above|below|rejected|last_state|stat|compact_memory|drop_caches|residency"
    r"|scaling_cur_freq|cpuinfo_cur_freq)"
)


@pytest.fixture(scope="module", autouse=True)
def real_settings():
    with own_machine.real_memory_settings():
        yield


def everything(*folders):
    """Every value below these folders, by path."""
    found = {}
    for folder in (*FOLDERS, *folders):
        for where, _folders, names in os.walk(folder):
            for path in (os.path.join(where, name) for name in names):
                try:
                    with open(path, "rb") as source:
                        found[path] = source.read()
                except OSError:
                    continue
    return {path: value for path, value in found.items() if not MOVING.search(path)}


def plan(drives, **changes):
    variables = {name: argument_specs.default(name) for name in hostplan.VARIABLES}
    entries = [tuning_plan.DriveToTune(str(drive.file), parse(drive.selector)) for drive in drives]
    tune = hostplan.tune_spec(dict(variables, **changes))
    return tuning_plan.TuningPlan(tune, entries, 1)


@pytest.mark.parametrize("killed, times", [(False, 1), (True, 1), (False, 2)])
def test_all_that_is_set_is_in_force_and_all_of_it_comes_back(loop_drive, tmp_path, killed, times):
    drive, record = loop_drive(), str(tmp_path / "tuning.json")
    queue = f"/sys/block/{drive.name}/queue"
    # A site's own values, which a change of the scheduler would lose.
    for name, value in (
        ("scheduler", "mq-deadline"),
        ("nr_requests", "64"),
        ("wbt_lat_usec", "3000"),
        ("iosched/fifo_batch", "4"),
    ):
        Host().write(queue + "/" + name, value)
    wanted = plan([drive], tune_vm={"swappiness": 7, "dirty_ratio": 30, "dirty_background_bytes": 1 << 26})
    before = everything(queue)
    host = tuned_host.TunedHost(Host(), wanted, record)
    try:
        for _time in range(times):
            applied = host.apply()
        during = everything(queue)
        told = {item.path: item for item in applied}
        assert {item.outcome for item in applied} <= {"changed", "unchanged", "not_applicable"}, applied
        assert [during["/proc/sys/vm/" + name] for name in ("swappiness", "dirty_ratio", "dirty_background_bytes")] == [
            b"7\n",
            b"30\n",
            b"67108864\n",
        ]
        assert told[queue + "/scheduler"].effective == "none" and host.drifted(drive.name) == []
    finally:
        if not killed:
            host.release()
        done = settings.restore(Host(), record)
    assert {item.outcome for item in done} == {"restored"} and not os.path.exists(record)
    host.release()
    after = everything(queue)
    assert after == before
    changed = [path for path in before if before[path] != during.get(path)]
    print(*(f"{path}: {before[path]}, {during.get(path)}, {after[path]}" for path in changed), sep="\n")


def test_the_snapshot_tells_the_values_in_force(loop_drive, tmp_path):
    drive, record = loop_drive(), str(tmp_path / "tuning.json")
    host = tuned_host.TunedHost(Host(), plan([drive], tune_vm={"swappiness": 7}), record)
    try:
        host.apply()
        seen = base.to_json(snapshot.gather(Host()))["tunables"]
        assert (seen["queue"][drive.name]["nomerges"], seen["vm"]["swappiness"]) == ("2", "7")
    finally:
        host.release()
        settings.restore(Host(), record)


def test_the_playbook_shows_what_would_change_and_takes_concerns_by_tag(site, loop_drive):
    drive = loop_drive()
    site.hosts["rack1-07"] = {"ssd_drives": [drive.selector], "tune_vm": {"swappiness": 7}}
    before = everything(f"/sys/block/{drive.name}/queue")
    # The kernel arguments have a tag of their own: this one takes no reboot.
    code, output = site.play("tune", "--check", "--diff", "--tags", "vm", "-e", "tune_boot_enabled=true")
    assert code == 0 and "kernel arguments" not in output and "+/proc/sys/vm/swappiness: 7" in output, output
    code, output = site.play("tune", "--check", "--diff", "--skip-tags", "boot", "-e", "tune_boot_enabled=true")
    assert code == 0, output
    code, output = site.play("tune", "--check", "--diff")
    assert code == 0, output
    assert f"+/sys/block/{drive.name}/queue/nomerges: 2" in output and "+/proc/sys/vm/swappiness: 7" in output
    code, output = site.play("tune", "--check", "--diff", "--tags", "vm")
    assert code == 0 and "+/proc/sys/vm/swappiness: 7" in output and "queue/nomerges" not in output, output
    assert everything(f"/sys/block/{drive.name}/queue") == before and site.run_folders() == []


def test_a_tag_takes_its_concern_alone_and_restore_puts_it_back(site, loop_drive):
    drive = loop_drive()
    site.hosts["rack1-07"] = {"ssd_drives": [drive.selector], "tune_vm": {"swappiness": 7}}
    before = everything(f"/sys/block/{drive.name}/queue")
    try:
        code, output = site.play("tune", "--tags", "vm")
        assert code == 0, output
        (tuned,) = site.journal("tuned")
        assert [item["name"] for item in tuned["settings"]] == ["vm.swappiness"]
        assert Host().read("/proc/sys/vm/swappiness") == "7"
    finally:
        code, output = site.play("restore")
    assert code == 0, output
    assert everything(f"/sys/block/{drive.name}/queue") == before


@pytest.mark.parametrize(
    "variables, says",
    [
        ({"tune_turbo": "fast"}, "tune_turbo: 'fast' must be one of: on, off, ''"),
        ({"tune_vm": {"swapiness": 1}}, "tune_vm: 'swapiness' is not one of: swappiness"),
        ({"tune_reboot_timeout_s": 60}, "tune_reboot_timeout_s: 60 must be"),
        ({"tune_boot_arguments": ["a b"]}, "tune_boot_arguments: ['a b'] must be"),
        ({"tune_services_stopped": ["-x"]}, "tune_services_stopped: ['-x'] must be"),
        ({"tune_energy_performance_preference": "power"}, "cannot be used with the governor performance"),
    ],
)
def test_a_bad_value_is_a_finding(site, loop_drive, variables, says):
    site.hosts["rack1-07"] = {"ssd_drives": [loop_drive().selector], **variables}
    code, output = site.play("tune")
    if code == 0:
        site.play("restore")
    assert code != 0 and says in " ".join(output.split()), output


def test_a_cpu_that_is_not_there_and_a_node_that_is_not_there_are_findings(site, loop_drive):
    site.hosts["rack1-07"] = {"ssd_drives": [dict(loop_drive().selector, cpus="0,4096", numa_node=63)]}
    code, output = site.play("tune")
    text = " ".join(output.split())
    assert (
        code != 0 and "cpus: CPU 4096 does not exist or is offline" in text and "numa_node: there is no node 63" in text
    ), output
    assert site.run_folders() == []
