# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order what is built on retired drives is taken apart, and what stays."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import retired_layers
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.retired_layers import Layer, plan, take_apart
from ansible_collections.ssdlab.fleet.tests.fixtures.fake_host import FakeHost

IDS = {"vg": 16 * "vg", "other": (6 * "otherx")[:32]}


def lvm(group, *below):
    return Layer("lvm", group, IDS[group], frozenset(below))


def crypt(name, *below):
    return Layer("crypt", name, "", frozenset(below))


def md(name, *below):
    return Layer("md", "/dev/" + name, "", frozenset(below))


def down(number):
    return f"vgchange --activate n --select vg_uuid={number}"


DOWN = {name: down(retired_layers._dashed(number)) for name, number in IDS.items()}
# A root disk's usual cake on both halves of a mirror, two volumes of one group.
CAKE = {
    "dm-1": lvm("vg", "dm-0"),
    "md7": md("md7", "sda", "sdb"),
    "dm-0": crypt("cake", "md7"),
    "dm-2": lvm("vg", "dm-0"),
}
SPANNING = {"dm-0": lvm("vg", "sda"), "dm-1": lvm("vg", "sdb"), "dm-2": lvm("other", "sda")}
NAMESAKES = {"dm-0": lvm("vg", "sda"), "dm-1": Layer("lvm", "vg", 32 * "z", frozenset(["sdb"]))}
SNAPSHOT = {"dm-0": lvm("vg", "sda"), "dm-1": lvm("vg", "dm-0"), "dm-2": lvm("vg", "dm-1", "dm-0")}


@pytest.mark.parametrize(
    "layers, retired, kept, commands, stays",
    [
        (CAKE, ["sda", "sdb"], {}, [DOWN["vg"], "cryptsetup close cake", "mdadm --stop /dev/md7"], {}),
        (CAKE, ["sda"], {}, [], {name: "also on sdb" for name in CAKE}),
        (CAKE, ["sda"], {"sdb": "mounted: …"}, [], {name: "mounted" for name in CAKE}),
        (CAKE, [], {}, [], {}),
        (CAKE, ["sdc"], {}, [], {}),
        (SPANNING, ["sda"], {}, [DOWN["other"]], {"dm-0": "vg is also on sdb"}),
        (SPANNING, ["sda", "sdb"], {}, [DOWN["vg"], DOWN["other"]], {}),
        (NAMESAKES, ["sda"], {}, [], {"dm-0": "another lvm is called vg too"}),
        (SNAPSHOT, ["sda"], {}, [DOWN["vg"]], {}),
        # What is above something that stays by hand keeps what it is built on.
        (
            {"dm-0": crypt("c", "sda"), "dm-1": Layer("mpath", "paths", "", frozenset(["dm-0"]))},
            ["sda"],
            {},
            [],
            {"dm-1": "taken apart by hand", "dm-0": "built on it"},
        ),
        ({"dm-0": crypt("--help", "sda")}, ["sda"], {}, [], {"dm-0": "no command gets"}),
        (
            {"bcache0": Layer("bcache", "/dev/bcache0", "", frozenset(["sda", "sdb"]))},
            ["sda", "sdb"],
            {},
            [],
            {"bcache0": ""},
        ),
    ],
)
def test_only_what_is_on_retired_drives_alone_is_taken_apart(layers, retired, kept, commands, stays):
    planned = plan(layers, retired, kept)
    assert [" ".join(step.argv) for step in planned.steps] == commands
    assert {one.layer: one.why for one in planned.kept}.keys() == stays.keys()
    for one in planned.kept:
        assert stays[one.layer] in one.why and one.by_hand
    for step in planned.steps:
        assert set(step.drives) <= set(retired)


def test_what_is_left_to_hands_is_named_from_the_top_down():
    by_hand = [one.by_hand for one in plan(CAKE, ["sda"], {}).kept]
    commands = [DOWN["vg"], "cryptsetup close cake", "mdadm --stop /dev/md7"]
    assert list(dict.fromkeys(by_hand)) == commands


class Stacked(FakeHost):
    """A drive with a volume on it, which goes when its group is deactivated."""

    def __init__(self, root):
        super().__init__(root)
        block = self.nvme("nvme0n1", "259:0", "SN1", wwid="eui.0025385b71b00eb0")
        self.other = self.nvme("nvme1n1", "259:1", "SN2", wwid="eui.0025385b71b00eb1")
        above = self.disk("dm-0", "254:0", "/sys/devices/virtual", dm__name="my--vg-root", dm__uuid="LVM-" + 64 * "a")
        self.put(above + "/slaves/nvme0n1/dev", "259:0")
        self.put(block + "/holders/dm-0/dev", "254:0")
        self.holder = block + "/holders/dm-0/dev"
        self.answers["vgchange"] = (0, "", "")

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        if argv[0] == "vgchange":
            os.unlink(self.path("/sys/block/dm-0"))
            os.unlink(self.path("/sys/class/block/dm-0"))
            os.unlink(self.path(self.holder))
            os.rmdir(self.path(os.path.dirname(self.holder)))
        return super().run(argv, timeout_s, stdin, started)


def retiring(host, tmp_path, acts, **options):
    entry = parse({"serial": "SN1", **options})
    return take_apart(host, [entry], str(tmp_path / "state"), acts)


@pytest.mark.parametrize("acts", [True, False])
def test_a_volume_group_is_deactivated_only_if_asked_to(tmp_path, acts):
    host = Stacked(tmp_path / "host")
    apart = retiring(host, tmp_path, acts, retired=True)
    assert [step.argv for step in (apart.done if acts else apart.plan.steps)] == [
        tuple(down("-".join("a" * length for length in (6, 4, 4, 4, 4, 4, 6))).split())
    ]
    assert apart.plan.kept == [] and not apart.failed
    assert any(argv[0] == "vgchange" for argv in host.commands) is acts
    if acts:
        assert apart.drives[0].eligible, apart.drives[0].refusals


def spanning(host):
    host.put("/sys/devices/virtual/block/dm-0/slaves/nvme1n1/dev", "259:1")


@pytest.mark.parametrize(
    "stage, says",
    [
        (lambda host: host.mount("/dev/dm-0", "254:0", "/srv"), "mounted"),
        (lambda host: host.put("/proc/swaps", "Filename\n/dev/dm-0 partition 1 0 -2\n"), "swap"),
        (lambda host: host.put("/etc/libvirt/qemu/vm.xml", "<source dev='/dev/mapper/my--vg-root'/>"), "configured"),
        (lambda host: host.put("/etc/default/backup", "DEVICE=/dev/dm-0\n"), "mentioned"),
        (spanning, "also on nvme1n1"),
    ],
)
def test_what_is_used_or_spans_another_drive_stays(tmp_path, stage, says):
    host = Stacked(tmp_path / "host")
    host.put("/dev/mapper/x", "")
    os.symlink("../dm-0", host.path("/dev/mapper/my--vg-root"))
    stage(host)
    apart = retiring(host, tmp_path, True, retired=True)
    assert apart.done == [] and [says in one.why for one in apart.plan.kept] == [True], apart.plan
    assert apart.plan.kept[0].by_hand.startswith("vgchange --activate n --select vg_uuid=aaaaaa-aaaa-")
    assert not any(argv[0] == "vgchange" for argv in host.commands)


def test_without_the_statement_nothing_is_taken_apart(tmp_path):
    host = Stacked(tmp_path / "host")
    apart = retiring(host, tmp_path, True)
    assert apart.done == [] and apart.plan.steps == [] and apart.plan.kept == []
