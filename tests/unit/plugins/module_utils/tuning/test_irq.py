# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.cpus import NOWHERE
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import CpuLimit, NumaBinding, SysfsFile, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import irq, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.tuning.tuned_hosts import drift_texts

FUNCTION = "/sys/devices/pci0000:80/0000:80:01.0"


@pytest.fixture
def server(fake):
    """An NVMe drive with an admin vector (41), and two queues' vectors (42, 43) that the kernel manages."""
    fake.nvme("nvme0n1", "259:0", "S1")
    fake.link("/sys/bus/pci/devices/0000:80:01.0", FUNCTION)
    fake.put(tuning.BOOT_ID, "boot-1\n")
    fake.put("/sys/devices/system/cpu/online", "0-7\n")
    for node in (0, 1):
        fake.put(f"/sys/devices/system/node/node{node}/cpulist", f"{4 * node}-{4 * node + 3}\n")
    for number, cpus in ((41, "0-7"), (42, "4"), (43, "5")):
        fake.put(f"{FUNCTION}/msi_irqs/{number}", "msix")
        fake.put(f"/proc/irq/{number}/smp_affinity_list", cpus + "\n")
        fake.put(f"/proc/irq/{number}/effective_affinity_list", cpus[-1] + "\n")
    write = fake.write

    def managed(path, text):
        if path in (irq.path(42), irq.path(43)):
            raise OSError(fake.managed_errno, os.strerror(fake.managed_errno))
        write(path, text + "\n")

    fake.managed_errno = errno.EIO
    fake.write = managed
    return fake


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_a_managed_vector_is_recorded_and_no_failure(server, number):
    server.managed_errno = number
    done = irq.pin(server, irq.named(server, None, "0000:80:01.0", None), "6-7")
    assert [(item.irq, item.before, item.outcome) for item in done] == [
        (41, "0-7", "changed"),
        (42, "4", "managed"),
        (43, "5", "managed"),
    ]
    assert done[1].effective == "4" and "delivered on CPU 4" in done[1].message
    assert irq.pin(server, [41], "6-7")[0].outcome == "unchanged"


def test_a_dry_run_changes_nothing(server):
    assert irq.pin(server, [41, 99], "6", dry=True)[0].outcome == "changed"
    assert (irq.allowed(server, 41), irq.pin(server, [99], "6")[0].outcome) == ("0-7", "not_applicable")


@pytest.mark.parametrize(
    "cpus, says",
    [
        ("8", "CPU 8 does not exist or is offline"),
        ("0-9", "CPU 8-9 does not exist or is offline"),
        ("", "empty"),
        ("all", "not a list"),
    ],
)
def test_a_cpu_that_is_not_there_is_an_error_in_words(server, cpus, says):
    with pytest.raises(ValueError, match=says):
        irq.check(server, cpus)


@pytest.mark.parametrize(
    "device, address, says",
    [
        ("/dev/none", None, "no block device"),
        ("loop0", None, "is attached to no PCI"),
        (None, "0000:ff:00.0", "no PCI function"),
        (None, "0000:80:02.0", "no interrupts"),
    ],
)
def test_a_device_without_interrupts_is_an_error_in_words(server, device, address, says):
    server.loop(0, "/a.img")
    server.put("/sys/bus/pci/devices/0000:80:02.0/irq", "0\n")
    with pytest.raises(ValueError, match=says):
        irq.named(server, device, address, None)


def test_a_function_without_message_signalled_interrupts_has_its_line(server):
    server.put("/sys/bus/pci/devices/0000:80:03.0/irq", "19\n")
    assert irq.of_function(server, "0000:80:03.0") == [19] and irq.named(server, "nvme0n1", None, None) == [41, 42, 43]


S1 = {"serial": "S1"}


def planned(*selectors, **tune):
    """A plan for these drives, or the one of the server."""
    drives = [tuning_plan.DriveToTune(f"S{number}", parse(given)) for number, given in enumerate(selectors or [S1], 1)]
    return tuning_plan.TuningPlan(base.parse(Tune, tune), drives, 1)


def tuned(host, *selectors, **tune):
    plan = planned(*selectors, **tune)
    found = tuning_plan.targets(host, plan.drives)
    return tuning_plan.expand(host, plan.tune, found, tuning_plan.Places(host, plan, found))


def test_the_drives_interrupts_go_to_its_node_beside_the_cores_of_fio(server, tmp_path):
    record = str(tmp_path / "tuning.json")
    applied = tuning.apply(server, tuned(server, interrupts={"cores": 1}, numa={"limits": []}), record)
    assert [(item.path, item.wanted, item.outcome) for item in applied] == [
        (irq.path(41), "7", "changed"),
        (irq.path(42), "7", "managed"),
        (irq.path(43), "7", "managed"),
    ]
    # One that the kernel manages is where it has to be; one that somebody moves is not.
    assert drift_texts(server, applied, "nvme0n1") == []
    server.write(irq.path(41), "0")
    assert drift_texts(server, applied, "nvme0n1") == ["/proc/irq/41/smp_affinity_list is 0, tuned to 7"]
    assert {item.outcome for item in tuning.restore(server, record)} == {"restored"} and irq.allowed(
        server, 41
    ) == "0-7"


def test_fio_gets_no_cpu_that_the_jobs_cpuset_does_not_have(server):
    server.put("/proc/self/cgroup", "0::/system.slice\n")
    server.put("/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-5\n")
    plan = planned(numa={"limits": []})
    assert tuning_plan.Places(server, plan, tuning_plan.targets(server, plan.drives)).take("S1").cpus == "4-5"


@pytest.mark.parametrize("concern", ["numa", "interrupts"])
def test_a_preview_of_one_concern_shares_the_cpus_out_as_the_whole_plan_does(server, concern):
    whole = {"numa": {"limits": []}, "interrupts": {"cores": 1}}
    settings, places = tuned_host.preview(server, planned(**{concern: whole[concern]}), base.parse(Tune, whole))
    assert (places["S1"].cpus, places["S1"].interrupt_cpus) == ("4-6", "7")
    assert {item.wanted for item in settings} == ({"7"} if concern == "interrupts" else set())


@pytest.mark.parametrize("control, cpus, count", [("on", "4-5", 2), ("off", "4-7", 4), ("notsupported", "4-7", 4)])
def test_a_preview_shows_what_is_left_once_smt_is_off(server, control, cpus, count):
    """CPUs 4 and 6 are threads of one core, and so are 5 and 7."""
    server.put(tuning_plan.SMT, control + "\n")
    for cpu in range(4, 8):
        server.put(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", "4,6" if cpu % 2 == 0 else "5,7")
        server.put(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave\n")
    governor = {
        "name": "governor",
        "path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
        "value": "performance",
    }
    whole = Tune(sysfs=[SysfsFile("smt", tuning_plan.SMT, "off")], numa=NumaBinding([]))
    settings, places = tuned_host.preview(server, planned(sysfs=[governor]), whole)
    assert (
        places["S1"].cpus == cpus and len(settings) == count and server.get("/sys/devices/system/cpu/online") == "0-7"
    )


def test_switching_smt_off_brings_the_other_interrupts_back_too(server, tmp_path):
    """A CPU that goes takes the interrupts along that were allowed on it alone."""
    record, write = str(tmp_path / "tuning.json"), server.write
    server.put(tuning_plan.SMT, "on\n")
    server.put("/proc/irq/9/smp_affinity_list", "7\n")

    def with_cpus(path, text):
        write(path, text)
        if path == tuning_plan.SMT and text == "off":
            write("/proc/irq/9/smp_affinity_list", "0-3")

    server.write = with_cpus
    tune = Tune(sysfs=[SysfsFile("smt", tuning_plan.SMT, "off")])
    assert [item.outcome for item in tuning.apply(server, tuning_plan.early(server, tune), record)] == ["changed"]
    assert irq.allowed(server, 9) == "0-3"
    tuning.restore(server, record)
    assert (irq.allowed(server, 9), server.read(tuning_plan.SMT)) == ("7", "on")


def test_the_idle_states_that_take_longer_are_switched_off(server):
    for state, latency in enumerate((0, 2, 100)):
        base = f"/sys/devices/system/cpu/cpu3/cpuidle/state{state}/"
        server.put(base + "latency", f"{latency}\n")
        server.put(base + "disable", "0\n")
    assert [item.path[-14:] for item in tuned(server, idle_states_above_us=2)] == ["state2/disable"]
    assert tuned(server) == []


def test_of_a_drives_pci_function_only_what_is_there_is_set(server):
    """Not every link can save power, and a loop device has no function: neither is worth a line in the record."""
    server.loop(0, "/a.img")
    for name in ("link/l1_aspm", "power/control"):
        server.put(f"{FUNCTION}/{name}", "1\n")
    paths = ["/sys/bus/pci/devices/@ssd_pci@/" + name for name in ("link/l1_aspm", "link/clkpm", "power/control")]
    files = [{"name": path.rpartition("/")[2], "path": path, "value": "0"} for path in paths]
    drives = (S1, {"backing_file": "/a.img"})
    settings = tuned(server, *drives, sysfs=files)
    assert len(tuning_plan.targets(server, planned(*drives).drives)) == 2
    assert [(item.path, item.device) for item in settings] == [
        ("/sys/bus/pci/devices/0000:80:01.0/" + name, "nvme0n1") for name in ("link/l1_aspm", "power/control")
    ]


@pytest.mark.parametrize(
    "limits, most",
    [
        ([], None),
        ([CpuLimit(8, driver="nvme")], 8),
        ([CpuLimit(4, "OTHER*"), CpuLimit(2, "EX*")], 2),
    ],
)
def test_the_first_limit_that_fits_a_drive_counts(server, limits, most):
    server.link(FUNCTION + "/driver", "/sys/bus/pci/drivers/nvme")
    (target,) = tuning_plan.targets(server, planned().drives)
    assert tuning_plan.most_cpus(server, target, limits) == most
    assert target.planned.entry.options.cpus is None and NOWHERE.cpus is None
