# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus


@given(st.sets(st.integers(min_value=0, max_value=300)))
def test_a_list_says_what_it_was_made_of(numbers):
    assert cpus.parse(cpus.format_cpu_list(numbers)) == sorted(numbers)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), min_size=1, max_size=8))
def test_however_it_is_spelled_the_canonical_form_is_one(ranges):
    spelled = ",".join(f"{first}-{first + more}" for first, more in ranges)
    assert (
        cpus.canonical(spelled) == cpus.canonical(cpus.canonical(spelled)) == cpus.format_cpu_list(cpus.parse(spelled))
    )


@pytest.mark.parametrize(
    "text, says",
    [
        ("0-", "not a list"),
        ("a", "not a list"),
        ("1,,2", "not a list"),
        ("-1", "not a list"),
        ("0-3:2", "not a list"),
        ("3-1", "backwards"),
        ("0-99999", "no CPU"),
    ],
)
def test_a_wrong_list_is_refused_in_words(text, says):
    with pytest.raises(ValueError, match=says):
        cpus.parse(text)


@pytest.mark.parametrize("text, numbers", [("", []), (" 0-2,5 ", [0, 1, 2, 5]), ("5,0-1,1", [0, 1, 5])])
def test_a_list_is_read(text, numbers):
    assert cpus.parse(text) == numbers


def test_the_cores_and_nodes_of_a_host(fake):
    """Two sockets of two cores with two threads each; CPU 7 is off."""
    fake.put("/sys/devices/system/cpu/online", "0-6\n")
    for cpu in range(8):
        base = f"/sys/devices/system/cpu/cpu{cpu}/topology/"
        fake.put(base + "physical_package_id", str(cpu // 2 % 2))
        # Each package has two dies, and the number of a core is there once on each.
        fake.put(base + "core_id", "0")
        fake.put(base + "thread_siblings_list", ",".join(str(each) for each in (cpu % 4, cpu % 4 + 4) if each < 7))
    fake.put("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
    fake.put("/sys/devices/system/node/node1/cpulist", "2-3,6\n")
    fake.put("/sys/devices/system/node/has_cpu", "0-1\n")
    seen = cpus.topology(fake)
    assert (seen.online, seen.nodes, seen.of_node(1)) == ([0, 1, 2, 3, 4, 5, 6], [0, 1], [2, 3, 6])
    assert seen.cores(seen.online) == [[0, 4], [1, 5], [2, 6], [3]]
    assert cpus.missing([3, 7, 8], seen.online) == "7-8"


@pytest.mark.parametrize(
    "cgroup, files, allowed",
    [
        # cgroup v2, where the controller ends above the unit; v1; hybrid; a container that does not see its path; none.
        (
            "0::/system.slice/ssd.service",
            {"/system.slice/cpuset.cpus.effective": "0-1", "/cpuset.cpus.effective": "0-3"},
            [0, 1],
        ),
        ("4:cpu,cpuacct:/a\n3:cpuset:/machine/b\n0::/c", {"/cpuset/machine/b/cpuset.effective_cpus": "2"}, [2]),
        ("3:cpuset:/\n0::/c", {"/cpuset/cpuset.effective_cpus": "0-3"}, [0, 1, 2, 3]),
        ("0::/docker/1234", {"/cpuset.cpus.effective": "3"}, [3]),
        ("0::/", {}, [0, 1, 2, 3]),
        ("", {}, [0, 1, 2, 3]),
        # One that has nothing to do with the CPUs that are on: better to try than to run nowhere.
        ("0::/", {"/cpuset.cpus.effective": "8"}, [0, 1, 2, 3]),
    ],
)
def test_fio_may_be_bound_to_the_cpus_of_its_cpuset_only(fake, cgroup, files, allowed):
    fake.put("/sys/devices/system/cpu/online", "0-3\n")
    fake.put("/proc/self/cgroup", cgroup + "\n")
    for path, content in files.items():
        fake.put("/sys/fs/cgroup" + path, content + "\n")
    assert cpus.usable(fake).online == sorted(cpus.usable(fake).node_of) == allowed
    assert cpus.count(fake, cpus.NOWHERE) == len(allowed)
    assert cpus.count(fake, cpus.NOWHERE._replace(cpus="0-3,8")) == 5


def test_a_host_that_tells_nothing_has_cores_of_one_cpu_and_no_node(fake):
    fake.put("/sys/devices/system/cpu/online", "0-1\n")
    seen = cpus.topology(fake)
    assert (seen.cores([0, 1]), seen.nodes) == ([[0], [1]], [])
