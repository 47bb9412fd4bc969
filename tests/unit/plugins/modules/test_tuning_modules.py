# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thin modules of tuning: arguments in, results out, as Ansible calls them. What they do is tested below
module_utils.
"""

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.modules import boot_arguments, irq_affinity, tunables


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a module's main on a tree of files; returns its result."""
    for path, text in {
        "/sys/devices/system/cpu/online": "0-3",
        "/proc/irq/41/smp_affinity_list": "0-3",
        "/proc/irq/41/effective_affinity_list": "2",
        "/proc/cmdline": "ro quiet",
        "/proc/sys/vm/swappiness": "60",
        "/proc/sys/kernel/random/boot_id": "boot-1",
    }.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def run(module, check=False, **arguments):
        monkeypatch.setattr(module, "Host", lambda: Host(str(tmp_path)))
        with patch_module_args(dict(arguments, _ansible_check_mode=check)):
            with pytest.raises(SystemExit):
                module.main()
        return json.loads(capsys.readouterr().out)

    run.root = tmp_path
    return run


def test_interrupts_are_moved_once_and_shown_in_check_mode(call):
    shown = call(irq_affinity, check=True, irqs=[41], cpus="1,0")
    path = "/proc/irq/41/smp_affinity_list"
    assert shown["changed"] and shown["diff"] == {"before": path + ": 0-3\n", "after": path + ": 0-1\n"}
    assert (call.root / path[1:]).read_text() == "0-3\n"
    done = call(irq_affinity, irqs=[41], cpus="1,0")
    assert done["changed"] and done["irqs"][0]["outcome"] == "changed" and (call.root / path[1:]).read_text() == "0-1"
    assert call(irq_affinity, irqs=[41], cpus="0-1")["changed"] is False


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"irqs": [41], "cpus": "0-9"}, "CPU 4-9 does not exist or is offline; this host has the CPUs 0-3"),
        ({"irqs": [41], "cpus": "first"}, "'first' is not a list of CPUs"),
        ({"device": "nvme7n1", "cpus": "0"}, "there is no block device nvme7n1"),
        ({"cpus": "0"}, "one of the following is required: device, pci_address, irqs"),
    ],
)
def test_bad_interrupt_arguments_fail_in_words(call, arguments, says):
    result = call(irq_affinity, **arguments)
    assert result["failed"] and says in result["msg"]


def test_tunables_only_reads_and_counts_a_difference_as_a_change_in_check_mode(call):
    tune = {"sysfs": [{"name": "vm.swappiness", "path": "/proc/sys/vm/swappiness", "value": "20"}]}
    for check in (False, True):
        seen = call(tunables, check=check, tune=tune)
        assert (seen["changed"], [(item["before"], item["wanted"], item["outcome"]) for item in seen["settings"]]) == (
            check,
            [("60", "20", "changed")],
        )
    assert (call.root / "proc/sys/vm/swappiness").read_text() == "60\n"
    assert call(tunables, check=True, tune={})["changed"] is False


def test_what_is_alike_on_many_cpus_is_shown_once(call):
    for cpu in range(4):
        file = call.root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        file.parent.mkdir(parents=True)
        file.write_text("powersave" if cpu else "performance")
    path = "/sys/devices/system/cpu/cpu%s/cpufreq/scaling_governor"
    seen = call(
        tunables, check=True, tune={"sysfs": [{"name": "governor", "path": path % "[0-9]*", "value": "performance"}]}
    )
    assert [(item["path"], item["outcome"], item["count"]) for item in seen["settings"]] == [
        (path % 0, "unchanged", 1),
        (path % 1, "changed", 3),
    ]
    assert seen["diff"]["after"] == path % 1 + " (and 2 more like it): performance\n"


@pytest.mark.parametrize(
    "arguments, says",
    [({}, "nothing is asked for"), ({"tune": {}, "drives": [{"nonsense": 1}]}, "ssd_drives: its keys are nonsense")],
)
def test_bad_tunables_arguments_fail_in_words(call, arguments, says):
    result = call(tunables, **arguments)
    assert result["failed"] and says in result["msg"]


def test_kernel_arguments_are_shown_verified_and_refused_in_words(call, monkeypatch):
    monkeypatch.setattr(Host, "which", lambda _host, name: "/usr/sbin/" + name if name == "update-grub" else None)
    state = str(call.root / "state")
    shown = call(boot_arguments, check=True, arguments=["idle=poll"], state_dir=state)
    assert (
        shown["changed"]
        and shown["reboot_required"]
        and shown["diff"] == {"before": "ro quiet\n", "after": "ro quiet idle=poll\n"}
    )
    assert not os.path.exists(state)
    for arguments, says in ((["idle=poll"], "started without idle=poll"), (["a b"], "'a b' is not a kernel argument")):
        result = call(boot_arguments, arguments=arguments, state_dir=state, verify=arguments == ["idle=poll"])
        assert result["failed"] and says in result["msg"]
    assert call(boot_arguments, state="absent", state_dir=state)["changed"] is False
