# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_findings, host_tests
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers


def view(tools):
    return host_answers.of("h1", {"ssd_fio_min_version": "3.28"}, facts={"tools": tools})


def texts(found):
    return [finding.text() for finding in found]


@pytest.mark.parametrize(
    ("fio", "expected"),
    [
        (None, "h1: fio is missing"),
        ({"path": "/x/fio", "version": None}, "does not report its version"),
        ({"path": "/x/fio", "version": "3.27"}, "h1: fio 3.27 (/x/fio) is older than 3.28"),
        ({"path": "/x/fio", "version": "2.30"}, "is older than 3.28"),
        ({"path": "/x/fio", "version": "3.28"}, ""),
        ({"path": "/x/fio", "version": "3.100"}, ""),
        ({"path": "/x/fio", "version": "4.0"}, ""),
    ],
)
def test_fio_is_there_and_new_enough(fio, expected):
    found = texts(host_findings.missing_tools(view({"fio": fio, "wipefs": {"path": "/sbin/wipefs"}})))
    assert len(found) == bool(expected) and expected in "".join(found)


@pytest.mark.parametrize(("version", "is_told"), [("2.32.1", True), ("2.33", False), ("2.38.1", False), (None, False)])
def test_a_setpriv_that_cannot_end_fio_is_told(version, is_told):
    found = texts(host_findings.missing_tools(view({"setpriv": {"path": "/bin/setpriv", "version": version}})))
    said = f"h1: setpriv {version} (/bin/setpriv) is older than util-linux 2.33"
    assert [text.startswith(said) for text in found] == [True] * is_told


@pytest.mark.parametrize(
    ("engine", "other", "remedies"),
    [
        ("libaio", "io_uring", ("install the package", ", or raise fs.aio-max-nr")),
        ("io_uring", "libaio", ("install a fio", ", or set kernel.io_uring_disabled to 0", "in a container, allow ")),
        ("io_uring_fixed", "io_uring or libaio", ("install a fio", "fixedbufs", "kernel.io_uring_disabled to 0")),
    ],
)
def test_an_engine_that_fio_cannot_use_is_told_before_anything_is_erased(engine, other, remedies):
    answer = host_answers.of(
        "h1",
        {"ssd_fio_min_version": "3.28"},
        facts={"tools": {}, "fio_engines": {engine: "fio: it fails", other: ""}},
    )
    (found,) = texts(host_findings.missing_tools(answer))
    assert found.startswith(f"h1: fio can't use {engine}: fio: it fails; {remedies[0]}")
    assert all(remedy in found for remedy in remedies) and found.endswith(f", or set workload_ioengine: {other}")


def test_every_missing_tool_is_named():
    found = texts(
        host_findings.missing_tools(view({"fio": {"path": "f", "version": "3.33"}, "wipefs": None, "setpriv": None}))
    )
    assert found == [f"h1: {name} is missing; install it with the package manager" for name in ("setpriv", "wipefs")]


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ({"ssd_plan": "iomemory-raid0"}, True),
        ({"ssd_plan": ["raid0-single"]}, False),
        ({"ssd_plan": ["raid0-single"], "preflight_tools": ["mdadm"]}, True),
        # Told as a wrong plan.
        ({"ssd_plan": "nothing"}, False),
    ],
)
def test_mdadm_is_missing_only_where_a_test_makes_an_array(asked, missing):
    tools = {"fio": {"path": "f", "version": "3.33"}, "mdadm": None}
    host = host_answers.of("h1", {"ssd_fio_min_version": "3.28", **asked}, facts={"tools": tools})
    found = texts(host_findings.missing_tools(host, host_tests.of_hosts([host])["h1"].asked))
    assert found == ["h1: mdadm is missing; install it with the package manager"] * missing


MIX = {"sizes": [{"size": "4KiB", "pct": 60}, {"size": "64KiB", "pct": 40}]}
LOAD = {"access": "random", "block_size": "4KiB", "read_pct": 100, "threads": 1, "queue_depth": 8, "runtime_s": 60}


@pytest.mark.parametrize(
    ("cell", "version", "refused"),
    [
        ({**LOAD, "mix": MIX, "rate_iops": 100}, "3.36", True),
        ({**LOAD, "mix": MIX, "rate_iops": 100}, "3.42", False),
        ({**LOAD, "mix": MIX}, "3.33", False),
        ({**LOAD, "rate_iops": 100}, "3.33", False),
    ],
)
def test_a_rate_of_several_sizes_needs_a_fio_that_keeps_it(cell, version, refused):
    plan = [{"name": "mixed", "precondition": {"passes": 1}, "rounds": {"max": 1}, "cells": [cell]}]
    tools = {"fio": {"path": "f", "version": version}}
    host = host_answers.of("h1", {"ssd_fio_min_version": "3.28", "ssd_plan": plan}, facts={"tools": tools})
    asked = host_tests.of_hosts([host])["h1"].asked
    assert asked and len(asked[0].cells) == 1
    found = texts(host_findings.missing_tools(host, asked))
    told = f"h1: test mixed, cell {asked[0].cells[0].id}: fio {version} does not keep rate_iops"
    assert len(found) == refused and all(text.startswith(told) for text in found)


DEEP = {"threads": 32, "queue_depth": 128}
STREAMS = [
    {"name": name, "access": "random", "block_size": "4KiB", "read_pct": 100, "threads": threads, "queue_depth": 128}
    for name, threads in (("a", 4), ("b", 2))
]


@pytest.mark.parametrize(
    ("cell", "drives", "left", "engine", "found"),
    [
        (DEEP, 16, 65_536, "libaio", []),
        (DEEP, 17, 65_536, "libaio", [(4096, 17)]),
        ({"threads": "auto", "queue_depth": 4096}, 17, 65_536, "libaio", [(4096, 17)]),
        (DEEP, 1, 4095, "libaio", [(4096, 1)]),
        ({"name": "mixed", "runtime_s": 60, "jobs": STREAMS}, 1, 767, "libaio", [(768, 1)]),
        (DEEP, 17, None, "libaio", []),
        (DEEP, 17, 0, "io_uring", []),
    ],
)
def test_more_in_flight_than_the_kernel_takes_is_told_before_anything_is_erased(cell, drives, left, engine, found):
    cell = cell if "jobs" in cell else {**LOAD, **cell}
    plan = [{"name": "deep", "precondition": {"passes": 1}, "rounds": {"max": 1}, "cells": [cell]}]
    named = [{"serial": f"S{number}"} for number in range(drives)]
    variables = {"ssd_fio_min_version": "3.28", "ssd_plan": plan, "ssd_drives": named, "ssd_parallel_drives": 24}
    told = {"tools": {"fio": {"path": "f", "version": "3.42"}}, "fio_engines": {engine: ""}, "aio_left": left}
    host = host_answers.of("h1", variables, facts=told)
    asked = host_tests.of_hosts([host])["h1"].asked
    assert asked
    of_cell = f"h1: test deep, cell {asked[0].cells[0].id}: "
    said = [f"{of_cell}{count} I/Os in flight, of {at_once} drives at a time; the kernel" for count, at_once in found]
    texts_ = texts(host_findings.missing_tools(host, asked))
    assert len(texts_) == len(said) and all(map(str.startswith, texts_, said))


@pytest.mark.parametrize("drives", [None, "nonsense", [], [{"nonsense": 1}]])
def test_a_place_is_looked_for_only_where_drives_are_named(drives):
    snapshot = {"cpu": {"online": "0-7"}, "numa": {"nodes": {"0": {"cpus": "0-7"}}}, "tunables": {}}
    assert host_findings.tuning_findings(host_answers.of("h1", {"ssd_drives": drives}, snapshot=snapshot), None) == []


def test_a_place_that_the_host_lacks_is_told_of_the_drive():
    snapshot = {"cpu": {"online": "0-7"}, "numa": {"nodes": {"0": {"cpus": "0-7"}}}, "tunables": {}}
    asked = {"ssd_drives": [{"serial": " A ", "numa_node": 2}]}
    (found,) = texts(host_findings.tuning_findings(host_answers.of("h1", asked, snapshot=snapshot), None))
    assert found == "h1: drive A: numa_node: there is no node 2; this host has 0"


@pytest.mark.parametrize(("left", "is_told"), [(65_536, False), (4095, True)])
def test_what_drives_share_tells_how_many_a_host_takes_and_reads_do_not(left, is_told):
    plan = [{"name": "deep", "precondition": {"passes": 1}, "rounds": {"max": 1}, "cells": [{**LOAD, **DEEP}]}]
    named = [{"serial": f"S{number}"} for number in range(24)]
    variables = {"ssd_fio_min_version": "3.28", "ssd_plan": plan, "ssd_drives": named, "ssd_parallel_drives": "auto"}
    told = {"tools": {"fio": {"path": "f", "version": "3.42"}}, "fio_engines": {"libaio": ""}, "aio_left": left}
    host = host_answers.of("h1", variables, facts=told)
    found = texts(host_findings.missing_tools(host, host_tests.of_hosts([host])["h1"].asked))
    assert ["4096 I/Os in flight, of 1 drives at a time" in text for text in found] == [True] * is_told
