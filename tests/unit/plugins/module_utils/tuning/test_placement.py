# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.placement import CpuPlacement, CpuRequest


def server(nodes=2, cores=4, threads=2):
    """CPUs numbered as on most servers: first a thread of each core of all nodes, then the second threads."""
    per_thread = nodes * cores
    core_of = {cpu: (cpu % per_thread // cores, cpu % cores) for cpu in range(per_thread * threads)}
    return cpus.Topology(core_of, {cpu: cpu % per_thread // cores for cpu in core_of})


def listed(text):
    return set(cpus.parse(text))


def test_fio_runs_on_the_drives_node_and_its_interrupts_on_another_core_of_it():
    place = CpuPlacement(server(), [CpuRequest("A", 1)], interrupt_cores=1).take("A")
    assert (place.cpus, place.node, place.interrupt_cpus, place.note) == ("4-6,12-14", 1, "7,15", "")


@pytest.mark.parametrize(
    "cores, kept", [(1, "0,1"), (3, "0-5"), (4, "3,7"), (16, "14-15,30-31"), (64, "56-63,120-127")]
)
def test_one_core_of_eight_is_kept_for_interrupts_where_there_are_enough(cores, kept):
    """Where none is kept, the interrupts stay on the node."""
    places = CpuPlacement(server(nodes=1, cores=cores), [CpuRequest("A", 0)])
    assert listed(places.interrupt_cpus("A")) == listed(kept)


def test_a_drive_with_a_limit_gets_eight_cpus_on_eight_cores_and_the_rest_is_for_interrupts():
    """TN-FD-15, Using FIO: at most 8 CPUs."""
    place = CpuPlacement(server(nodes=1, cores=16), [CpuRequest("P420m", 0, most=8)], interrupt_cores=0).take("P420m")
    assert listed(place.cpus) == set(range(8)) and not listed(place.cpus) & listed(place.interrupt_cpus)


def test_a_drive_whose_node_is_unknown_is_pointed_out():
    place = CpuPlacement(server(), [CpuRequest("A")], interrupt_cores=0).take("A")
    assert (place.node, listed(place.cpus)) == (
        None,
        set(range(16)),
    ) and "unknown: set numa_node in the drive's entry" in place.note
    assert "no NUMA node 7" in CpuPlacement(server(), [CpuRequest("A", 7)]).take("A").note
    # A host with one node has nothing to choose from.
    assert CpuPlacement(server(nodes=1), [CpuRequest("A")], interrupt_cores=0).take("A")[1:] == (None, "0-7", "")


def test_a_drive_whose_node_has_no_cpu_that_may_be_used_is_pointed_out():
    """As in a cpuset of one node: the drive is on the other."""
    place = CpuPlacement(server(nodes=1), [CpuRequest("A", 1)]).take("A")
    assert place.cpus and place.note == "no CPU of its NUMA node 1 may be used, so fio runs far from it"
    assert CpuPlacement(server(nodes=1), [CpuRequest("A", 0)]).take("A").note == ""


@pytest.mark.parametrize(
    "distances, cpus_of, node, note",
    [
        (
            {0: 20, 1: 14},
            "4-6",
            1,
            "no CPU of its NUMA node 2 may be used, so fio runs on the nearest one with CPUs, node 1",
        ),
        (
            {0: 14, 1: 14},
            "0-2,4-6",
            None,
            "no CPU of its NUMA node 2 may be used, and no other node is the nearest: set numa_node in the drive's "
            "entry; fio may run far from it",
        ),
    ],
)
def test_a_drive_at_a_node_of_memory_alone_gets_the_nearest_cpus(distances, cpus_of, node, note):
    """As memory behind CXL, a GPU's, or a socket whose CPUs are off."""
    topology = server(threads=1)._replace(distances={0: {0: 10, 1: 20}, 1: {0: 20, 1: 10}, 2: distances})
    place = CpuPlacement(topology, [CpuRequest("A", 2)]).take("A")
    assert (place.cpus, place.node, place.note) == (cpus_of, node, note)


def test_a_drives_own_cpus_come_first_and_nobody_else_gets_them():
    places = CpuPlacement(server(), [CpuRequest("A", 0, "0-1"), CpuRequest("B", 0)], parallel=2, interrupt_cores=0)
    hand, other = places.take("A"), places.take("B")
    assert hand.cpus == "0-1" and not listed(hand.cpus) & listed(other.cpus)
    assert (
        "CPU 99 of its `cpus` does not exist, is offline, or is outside the host job's cpuset"
        in CpuPlacement(server(), [CpuRequest("A", 0, "0,99")]).take("A").note
    )


def test_more_cpus_by_hand_than_a_drive_is_to_have_are_pointed_out():
    place = CpuPlacement(server(cores=8), [CpuRequest("P420m", 0, "0-15", most=8)]).take("P420m")
    assert (
        place.cpus == "0-15"
        and place.note == "its `cpus` are 16 CPUs, more than the 8 that tune_cpu_limits allows for it"
    )


def test_too_few_cpus_are_shared_and_that_is_said():
    places = CpuPlacement(server(nodes=1, cores=1, threads=1), [CpuRequest("A", 0), CpuRequest("B", 0)], parallel=2)
    assert places.take("A").note == "" and places.take("B").note == "too few CPUs: shares some with A"


def test_a_drive_that_is_left_no_cpu_by_those_given_by_hand_shares_them_and_that_is_said():
    places = CpuPlacement(
        server(nodes=1, cores=2, threads=1), [CpuRequest("A", 0, "0-1"), CpuRequest("B", 0)], parallel=2
    )
    assert (places.take("A").note, places.take("B").note) == ("", "too few CPUs: shares some with A")
    places.release("A")
    assert places.take("B").note == ""


WANTS = st.lists(st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, None, 8])), min_size=1, max_size=8)


@given(WANTS, st.integers(1, 4), st.integers(1, 16), st.integers(1, 2), st.sampled_from([0, 1, "auto"]), st.randoms())
def test_drives_that_run_together_never_share_a_cpu_while_there_are_enough(
    wants, parallel, cores, threads, kept, chance
):
    topology = server(cores=cores, threads=threads)
    wants = [CpuRequest(str(number), node, None, most) for number, (node, most) in enumerate(wants)]
    places = CpuPlacement(topology, wants, parallel, kept)
    waiting, running = list(wants), {}
    while waiting or running:
        while waiting and len(running) < parallel:
            want = waiting.pop(0)
            place = running[want.drive] = places.take(want.drive)
            own = listed(place.cpus)
            assert own and own <= set(topology.online)
            assert want.node is None or own <= set(topology.of_node(want.node))
            assert want.most is None or len(own) <= want.most
            others = set().union(*(listed(other.cpus) for drive, other in running.items() if drive != want.drive))
            assert not own & others or "shares some with" in place.note
            # A CPU for each drive that may use a node at the same time is enough.
            if cores * threads >= parallel:
                assert not own & others
        done = chance.choice(sorted(running))
        places.release(done)
        del running[done]


@given(st.integers(1, 4), st.integers(2, 16))
def test_drives_side_by_side_have_equal_conditions(parallel, cores):
    wants = [CpuRequest(str(number), 0) for number in range(parallel)]
    places = CpuPlacement(server(cores=cores), wants, parallel)
    assert len({len(listed(places.take(want.drive).cpus)) for want in wants}) == 1
