# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments. `Debian` does what update-grub would with the drop-in; `Rhel` is an emulator of grubby after its
manual page, grubby(8).
"""

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import boot

ARGUMENTS = ["intel_idle.max_cstate=0", "idle=poll"]
BEFORE = "BOOT_IMAGE=/boot/vmlinuz root=LABEL=root ro quiet intel_idle.max_cstate=1"


class Machine(Host):
    """A machine that boots with the command line that its boot loader has."""

    tool = ""

    def __init__(self, root):
        super().__init__(str(root))
        self.commands, self.fails = [], False
        self.boots = 0
        self.next = BEFORE
        self.boot()

    def put(self, path, text):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w") as out:
            out.write(text + "\n")

    def boot(self):
        self.boots += 1
        self.put("/proc/cmdline", self.next)
        self.put(boot.BOOT_ID, f"boot-{self.boots}")

    def which(self, name):
        return "/usr/sbin/" + name if name == self.tool else None

    def run(self, argv, timeout_s=60, stdin=None):
        self.commands.append(list(argv))
        return Result(argv, 1, "", "no space left") if self.fails else Result(argv, 0, self.answer(argv), "")


class Debian(Machine):
    tool = "update-grub"

    def answer(self, _argv):
        added = re.findall(r'DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT (.*)"', self.get(boot.DROP_IN) or "")
        self.next = " ".join([BEFORE, *added])
        return ""


class Rhel(Machine):
    tool = "grubby"

    def answer(self, argv):
        words = self.next.split()
        if argv[1] == "--info=DEFAULT":
            return 'index=0\nkernel="/boot/vmlinuz"\nargs="{}"\nroot="LABEL=root"\n'.format(" ".join(words[2:]))
        assert argv[1] == "--update-kernel=ALL"
        for option in argv[2:]:
            name, _equal, given = option.partition("=")
            if name == "--remove-args":
                words = [word for word in words if word not in given.split()]
            else:
                words += [word for word in given.split() if word not in words]
        self.next = " ".join(words)
        return ""


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture(params=[Debian, Rhel])
def machine(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def state(machine):
    return machine.root + "/var/lib/state"


def test_arguments_come_with_a_boot_and_go_with_another(machine, state):
    first = boot.present(machine, state, ARGUMENTS)
    assert (first.changed, first.reboot_required, first.loader) == (True, True, machine.tool)
    with pytest.raises(boot.BootError, match="started without intel_idle.max_cstate=0 idle=poll"):
        boot.verify(machine, ARGUMENTS, True)
    machine.boot()
    boot.verify(machine, ARGUMENTS, True)
    second = boot.present(machine, state, ARGUMENTS)
    assert (second.changed, second.reboot_required) == (False, False)
    gone = boot.absent(machine, state)
    assert (gone.changed, gone.reboot_required) == (True, True) and os.path.exists(boot.record_path(state))
    machine.boot()
    assert sorted(machine.read("/proc/cmdline").split()) == sorted(BEFORE.split())
    assert boot.absent(machine, state).reboot_required is False and not os.path.exists(boot.record_path(state))
    assert boot.absent(machine, state).changed is False and not machine.exists(boot.DROP_IN)


def test_check_mode_changes_nothing(machine, state):
    shown = boot.present(machine, state, ARGUMENTS, check=True)
    assert shown.changed and shown.after == BEFORE + " intel_idle.max_cstate=0 idle=poll"
    assert (machine.next, os.path.exists(state)) == (BEFORE, False)
    boot.present(machine, state, ARGUMENTS)
    with_arguments = machine.next
    assert boot.absent(machine, state, check=True).changed and machine.next == with_arguments != BEFORE


def test_other_arguments_take_the_place_of_the_first_and_the_first_command_line_comes_back(machine, state):
    boot.present(machine, state, ARGUMENTS)
    machine.boot()
    assert boot.present(machine, state, ["idle=halt"]).changed
    machine.boot()
    assert boot.missing_arguments(machine.read("/proc/cmdline"), ["idle=halt", "intel_idle.max_cstate=1"]) == []
    assert boot.absent(machine, state).after == BEFORE
    machine.boot()
    assert sorted(machine.read("/proc/cmdline").split()) == sorted(BEFORE.split())


def test_the_record_is_there_before_the_change(machine, state):
    machine.fails = machine.tool == "update-grub"
    if machine.fails:
        with pytest.raises(boot.BootError, match="update-grub: no space left"):
            boot.present(machine, state, ARGUMENTS)
        assert not machine.exists(boot.DROP_IN)
    else:
        boot.present(machine, state, ARGUMENTS)
    assert os.path.exists(boot.record_path(state))


def test_an_argument_that_was_there_before_us_stays(machine, state):
    boot.present(machine, state, ["quiet", "idle=poll"])
    machine.boot()
    boot.absent(machine, state)
    machine.boot()
    assert "quiet" in machine.read("/proc/cmdline").split() and boot.absent(machine, state).reboot_required is False


def test_an_argument_that_waits_for_its_first_boot_stays_and_one_of_a_single_boot_goes(tmp_path):
    """What grubby has counts, not what the kernel was started with: somebody added one and did not boot yet, or typed
    one at the boot menu.
    """
    machine, state = Rhel(tmp_path), str(tmp_path / "state")
    machine.put("/proc/cmdline", BEFORE + " typed=1")
    machine.next = before = BEFORE + " waiting=1"
    boot.present(machine, state, ["waiting=1", "typed=1", "idle=poll"])
    machine.boot()
    boot.absent(machine, state)
    assert sorted(machine.next.split()) == sorted(before.split())


def test_what_the_command_line_will_be_is_told_of_the_kernel_that_runs(machine, state):
    boot.present(machine, state, ARGUMENTS)
    machine.next = machine.next.replace("/boot/vmlinuz", "/boot/vmlinuz-newer")
    machine.boot()
    after = boot.absent(machine, state, check=True).after
    assert sorted(after.split()) == sorted(BEFORE.replace("/boot/vmlinuz", "/boot/vmlinuz-newer").split())


def test_nothing_that_takes_a_reboot_is_done_while_a_run_has_the_host(machine, state):
    boot.present(machine, state, ["quiet"])  # which is there: nothing to boot for
    for done in (
        lambda check: boot.present(machine, state, ARGUMENTS, check),
        lambda check: boot.absent(machine, state, check),
    ):
        before = machine.next
        with locks.host_lock({"run": "other"}):
            assert done(True).changed is True
            with pytest.raises(boot.BootError, match='a run is using this host.*"other"'):
                done(False)
            assert machine.next == before
        done(False)


@pytest.mark.parametrize("wrong", [["a b"], ['x="y"'], [], ["$(reboot)"], [""]])
def test_what_a_boot_loader_would_misread_is_refused(machine, state, wrong):
    with pytest.raises(boot.BootError, match="is not a kernel argument"):
        boot.present(machine, state, wrong)
    assert machine.commands == []


def test_a_host_without_a_known_boot_loader_is_told_so(tmp_path):
    with pytest.raises(boot.BootError, match="neither grubby nor update-grub"):
        boot.present(Machine(tmp_path), str(tmp_path / "state"), ARGUMENTS)


@pytest.mark.parametrize(
    "line, missing",
    [
        ("idle=poll", []),
        ("idle=poll idle=halt", ["idle=poll"]),
        ("idle=poll2", ["idle=poll"]),
        ("", ["idle=poll"]),
        ("xidle=poll", ["idle=poll"]),
    ],
)
def test_the_last_of_several_counts(line, missing):
    assert boot.missing_arguments(line, ["idle=poll"]) == missing


def test_of_several_that_are_asked_for_all_count():
    asked = ["hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "hugepages=512"]
    assert boot.missing_arguments("ro " + " ".join(asked), asked) == []
    assert boot.missing_arguments("ro hugepagesz=2M hugepages=512", asked) == ["hugepagesz=1G", "hugepages=8"]
