# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning a real kernel with two NUMA nodes, NVMe interrupts, idle states and a boot loader: values before, during and
after.

What was seen is printed, and kept in tests/output/vm-tuning.md.
"""

from __future__ import annotations

import json
import re
import time

import pytest
from guest_machine import CPUS
from hardware import NEIGHBOUR, PLAIN
from lab import REPO, wait_for

SEEN = REPO / "tests" / "output" / "vm-tuning.md"
BOTH = [{"serial": PLAIN}, {"serial": NEIGHBOUR}]
# Prints every value that tuning may change: {what: value}. One process, as each takes its time under emulation.
EVERYTHING = """
import glob, json, os, struct, subprocess, sys

def read(path):
    try:
        with open(path) as source:
            return source.read().strip()
    except OSError:
        return None

def told(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True).stdout.strip()

patterns = (
    "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_*", "/sys/block/nvme*/queue/*",
    "/sys/block/nvme*/queue/iosched/*", "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/online", "/sys/module/pcie_aspm/parameters/policy", "/sys/bus/pci/devices/*/link/*",
    "/sys/bus/pci/devices/*/power/control", "/proc/irq/*/smp_affinity_list", "/etc/default/grub.d/*",
)
found = {path: read(path) for pattern in patterns for path in glob.glob(pattern) if os.path.isfile(path)}
for unit in ("irqbalance", "tuned"):
    found["service " + unit] = told("systemctl", "is-active", unit)
for path in glob.glob("/sys/class/nvme/*/serial"):
    if read(path) in sys.argv[1:]:
        controller = "/dev/" + path.split("/")[4]
        found["write cache of " + read(path)] = told("nvme", "get-feature", controller, "--feature-id=6")
with open("/dev/cpu_dma_latency", "rb") as device:
    found["held latency"] = str(struct.unpack("=i", device.read(4))[0])
print(json.dumps(found))
"""


@pytest.fixture(scope="module", autouse=True)
def seen():
    """What was seen, printed at the end."""
    SEEN.parent.mkdir(parents=True, exist_ok=True)
    SEEN.write_text("")
    yield
    print("\n" + SEEN.read_text())


@pytest.fixture
def bench(lab):
    """A lab with a drive on each node."""
    if not lab.guest.extra:
        pytest.skip("no idle states in the guest: iasl is missing (acpica-tools); scripts/setup test installs it")
    lab.host["ssd_drives"] = [dict(entry) for entry in BOTH]
    # Two cores a node: one for fio, one for interrupts.
    lab.vars.update(tune_interrupt_cores=1, tune_vm={"swappiness": 7, "dirty_ratio": 30}, tune_write_cache="off")
    return lab


def everything(guest):
    return json.loads(guest.run(f"python3 - {PLAIN} {NEIGHBOUR}", stdin=EVERYTHING).stdout)


def without_interrupts(values):
    """irqbalance moves interrupts as it likes."""
    return {path: value for path, value in values.items() if not path.startswith("/proc/irq/")}


def put_down(title, before, during, after):
    """A table of what was changed."""
    changed = [path for path in before if before[path] != during.get(path)]
    rows = [f"| {path} | {before[path]} | {during.get(path)} | {after.get(path)} |" for path in changed]
    text = "\n".join([f"### {title}", "| setting | before | during | after |", "|---|---|---|---|", *rows, "", ""])
    with SEEN.open("a") as out:
        out.write(text)
    return changed


def soon(guest, before, pick=dict):
    """The values, once they are as before: a service that starts again sets some a moment later."""
    deadline = time.monotonic() + 90
    while pick(everything(guest)) != pick(before) and time.monotonic() < deadline:
        time.sleep(3)
    return everything(guest)


def start_tuned(guest):
    """Start tuned, and wait until its log says that its profile is applied."""
    applied = "grep -sc 'static tuning from profile .* applied' /var/log/tuned/tuned.log"
    earlier = guest.run(applied, check=False).stdout
    guest.run("systemctl start tuned", timeout_s=900)
    deadline = time.monotonic() + 300
    while guest.run(applied, check=False).stdout == earlier:
        assert time.monotonic() < deadline, guest.run("tail -20 /var/log/tuned/tuned.log", check=False).stdout
        time.sleep(3)


def settings(lab, name):
    (record,) = [record for record in lab.journal("tuned") if "test" not in record]
    return [item for item in record["settings"] if item["name"] == name]


def test_all_that_is_set_is_in_force_and_all_comes_back(bench):
    guest = bench.guest
    start_tuned(guest)
    before = everything(guest)
    code, output = bench.play("tune")
    assert code == 0, output
    during = everything(guest)
    code, output = bench.play("restore")
    assert code == 0, output
    after = soon(guest, before)
    changed = put_down("tune.yml, with tuned running", before, during, after)
    assert after == before
    assert [during[path] for path in ("/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio", "service tuned")] == [
        "7",
        "30",
        "inactive",
    ]
    assert {"write cache of " + PLAIN, "write cache of " + NEIGHBOUR} <= set(changed)
    # Nothing stays to hold the latency down, so the idle states themselves are off.
    states = [path for path in during if "/cpuidle/" in path and "/state0/" not in path]
    assert states and all(during[path] == "1" for path in states)
    queues = [during[path] for path in during if re.fullmatch(r"/sys/block/nvme\d+n1/queue/nomerges", path)]
    assert queues.count("2") == len(BOTH)
    pinned = settings(bench, "interrupt")
    # A queue's own CPU may be the one that is wanted.
    assert {"changed", "managed"} <= {item["outcome"] for item in pinned} <= {"changed", "managed", "unchanged"}, pinned
    assert all("delivered on CPU" in item["message"] for item in pinned if item["outcome"] == "managed")
    # Two CPUs a node: interrupts have the second, fio the first.
    assert {item["effective"] for item in pinned if item["outcome"] == "changed"} == {"1", "3"}


@pytest.mark.long
def test_fio_runs_on_the_drives_node_and_a_killed_job_leaves_nothing(bench):
    guest = bench.guest
    guest.run("systemctl start irqbalance")
    before = everything(guest)
    long_test = dict(bench.vars["ssd_plan"][0], precondition=False, rounds={"max": 24})
    bench.vars.update(
        ssd_plan=[dict(long_test, cells=[dict(long_test["cells"][0], runtime_s=30)])],
        ssd_parallel_drives=2,
        purge_method="deallocate",
    )
    code, output = bench.play("start")
    assert code == 0, output
    wait_for("fio on both nodes", lambda: len(affinities(guest)) == 2)
    during = everything(guest)
    assert affinities(guest) == {"0", "2"}
    assert (during["held latency"], during["service irqbalance"]) == ("0", "inactive")
    places = {record["drive"]: record["place"] for record in bench.journal("drive_started")}
    seen = {drive: (place["cpus"], place["node"], place["interrupt_cpus"]) for drive, place in places.items()}
    assert seen == {PLAIN: ("0", 0, "1"), NEIGHBOUR: ("2", 1, "3")}
    assert "numa_mem_policy=prefer:1" in guest.run(f"cat {bench.state}/runs/*/raw/{NEIGHBOUR}/*.fio").stdout
    code, output = bench.play("restore")
    assert code != 0 and "is under way and will restore this host itself" in output, output
    guest.run(
        "kill -9 $(python3 -c 'import glob, json; "
        f'print(json.load(open(glob.glob("{bench.state}/runs/*/status.json")[0]))["pid"])\')'
    )
    wait_for("restore", lambda: guest.run(f"ls {bench.state}/runs/*/tuning.json", check=False).returncode != 0)
    after = soon(guest, before, without_interrupts)
    put_down("start.yml, killed by SIGKILL", before, during, after)
    assert without_interrupts(after) == without_interrupts(before) and affinities(guest) == set()
    bench.play("stop")
    guest.run("systemctl stop irqbalance")


def affinities(guest):
    """The CPUs that fio's threads which do I/O are allowed on."""
    said = guest.run(
        "for p in $(pgrep -x fio); do for t in /proc/$p/task/*; do grep -h Cpus_allowed_list $t/status; done; done",
        check=False,
    ).stdout
    # fio's own main threads may run anywhere.
    return {line.split()[-1] for line in said.splitlines()} - {f"0-{CPUS - 1}"}


@pytest.mark.long
def test_a_reboot_in_between_leaves_nothing(bench):
    guest = bench.guest
    guest.run("systemctl stop tuned", check=False)
    guest.stop()
    guest.start()
    before = everything(guest)
    code, output = bench.play("tune")
    assert code == 0, output
    during = everything(guest)
    guest.stop()
    guest.start()
    assert guest.run(f"ls {bench.state}/runs/*/tuning.json").stdout
    code, output = bench.play("restore")
    assert code == 0 and guest.run(f"ls {bench.state}/runs/*/tuning.json", check=False).returncode != 0, output
    after = soon(guest, before, without_interrupts)
    put_down("tune.yml, then a power loss", before, during, after)
    assert without_interrupts(after) == without_interrupts(before)


@pytest.mark.long
def test_kernel_arguments_come_by_a_reboot_and_go_by_another(bench):
    guest = bench.guest
    look = (
        "cat /proc/cmdline; ls -d /sys/devices/system/cpu/cpu0/cpuidle/state* 2>/dev/null | wc -l; ls "
        "/etc/default/grub.d/ 2>/dev/null"
    )
    before = guest.run(look).stdout.split("\n")
    code, output = bench.play("tune", "-e", "tune_boot_enabled=true")
    assert code == 0, output
    during = guest.run(look).stdout.split("\n")
    assert words(during[0]) - words(before[0]) == {"intel_idle.max_cstate=0", "processor.max_cstate=0", "idle=poll"}
    assert int(before[1]) >= 2 and int(during[1]) == 0
    code, output = bench.play("restore")
    assert code == 0, output
    after = guest.run(look).stdout.split("\n")
    put_down(
        "kernel arguments",
        *(dict(zip(("/proc/cmdline", "idle states of CPU 0"), seen)) for seen in (before, during, after)),
    )
    assert (words(after[0]), after[1:]) == (words(before[0]), before[1:])
    code, output = bench.play("restore")
    assert code == 0 and "changed=0" in output, output


def words(command_line):
    """The arguments, but for how the boot loader names kernel and root: update-grub does so in its own way."""
    return {word for word in command_line.split() if not word.startswith(("BOOT_IMAGE=", "root="))}
