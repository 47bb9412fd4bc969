# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order what is built on retired drives is taken apart, and what stays."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.retired_layers import Layer, plan


def lvm(group, *below):
    return Layer("lvm", group, "id of " + group, frozenset(below))


def crypt(name, *below):
    return Layer("crypt", name, "", frozenset(below))


def md(name, *below):
    return Layer("md", "/dev/" + name, "", frozenset(below))


# A root disk's usual cake on both halves of a mirror, two volumes of one group.
CAKE = {
    "dm-1": lvm("vg", "dm-0"),
    "md7": md("md7", "sda", "sdb"),
    "dm-0": crypt("cake", "md7"),
    "dm-2": lvm("vg", "dm-0"),
}
SPANNING = {"dm-0": lvm("vg", "sda"), "dm-1": lvm("vg", "sdb"), "dm-2": lvm("other", "sda")}
SNAPSHOT = {"dm-0": lvm("vg", "sda"), "dm-1": lvm("vg", "dm-0"), "dm-2": lvm("vg", "dm-1", "dm-0")}


@pytest.mark.parametrize(
    "layers, retired, kept, commands, stays",
    [
        (CAKE, ["sda", "sdb"], {}, ["vgchange --activate n vg", "cryptsetup close cake", "mdadm --stop /dev/md7"], {}),
        (CAKE, ["sda"], {}, [], {name: "also on sdb" for name in CAKE}),
        (CAKE, ["sda"], {"sdb": "mounted: …"}, [], {name: "mounted" for name in CAKE}),
        (CAKE, [], {}, [], {}),
        (CAKE, ["sdc"], {}, [], {}),
        (SPANNING, ["sda"], {}, ["vgchange --activate n other"], {"dm-0": "vg is also on sdb"}),
        (SPANNING, ["sda", "sdb"], {}, ["vgchange --activate n vg", "vgchange --activate n other"], {}),
        (SNAPSHOT, ["sda"], {}, ["vgchange --activate n vg"], {}),
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
