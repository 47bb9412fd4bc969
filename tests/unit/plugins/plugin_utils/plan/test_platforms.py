# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs for Windows, Solaris and Iometer, held to what the documents print. Nothing of them runs here, and fio's parser
accepts any engine, so the tables below stand for the platforms.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import platforms
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import plans

# ioMemory VSL Peak Performance Guide, Appendix A, "Windows Substitutions" and "Solaris Substitutions": what a line of
# its Linux jobs becomes, None: the line is removed.
GUIDE = {
    "windows": {
        ("ioengine", "libaio"): "windowsaio",
        ("ioengine", "sync"): "windowsaio",
        ("thread", "0"): "1",
        ("filename", "/dev/fioa"): r"\\.\PhysicalDrive2",
        ("cpus_allowed", "1-4"): None,
    },
    "solaris": {
        ("ioengine", "libaio"): "solarisaio",
        ("direct", "1"): "0",
        ("filename", "/dev/fioa"): "/dev/rdsk/c1d0p0",
        ("cpus_allowed", "1-4"): None,
    },
}
DEVICES = {name: rows["filename", "/dev/fioa"] for name, rows in GUIDE.items()}
# fio's HOWTO, numa_cpu_nodes: "to enable NUMA options support, fio must be built on a system with libnuma-dev(el)".
LINUX_ONLY = {"numa_mem_policy"}
IDENTITY = {"size_bytes": 785_000_079_360, "logical_block_size_bytes": 512}
HOWTO = Path("/usr/share/doc/fio/HOWTO.rst.gz")


def linux_jobs(plan):
    drives = [{"selector": {"serial": "S1"}, "identity": {"serial": "S1", **IDENTITY}}]
    about = {"run": {"id": "r", "name": "n"}, "host": "h", "boot_id": "b", "engine_version": "0", "variables": {}}
    (drive,) = plans.rendered(load_plan(plan), drives=drives, **about)["drives"]
    return {cell["id"]: cell["job"] for test in drive["tests"] for cell in test["cells"]}


def rendered(plan, platform, **changed):
    given = {"device": DEVICES.get(platform, ""), "identity": IDENTITY, "queue_depth": 32, **changed}
    given["identity"] = plans.known(**given["identity"])
    return platforms.files(load_plan(plan), platform, **given)


def options(job):
    return {(name, *item) for name, section in fio_sanity.sections(job).items() for item in section.items()}


@pytest.mark.parametrize("platform", ["windows", "solaris"])
@pytest.mark.parametrize("plan", ["iomemory-guide", "micron-p420m-small", "smoke"])
def test_a_job_differs_from_linux_by_the_guides_substitutions_alone(plan, platform):
    guide, linux = GUIDE[platform], linux_jobs(plan)
    jobs = {name: text for name, text in rendered(plan, platform).items() if name.endswith(".fio")}
    cells = {name: text for name, text in jobs.items() if "precondition" not in name}
    assert {name.split("/")[1][4:-4] for name in cells} == set(linux)
    for name, text in cells.items():
        expected = set()
        for section, key, value in options(linux[name.split("/")[1][4:-4]]):
            printed = {"filename": "/dev/fioa", "cpus_allowed": "1-4"}.get(key, value)
            other = guide.get((key, printed), value)
            if other is not None and key not in LINUX_ONLY and "@" not in other:
                expected.add((section, key, other))
        found = options(text)
        assert expected <= found
        # What was a placeholder has a value now.
        loaded = {"numjobs", "iodepth", "offset_increment"} if re.search("tc1to8|tcauto", name) else set()
        assert {key for _section, key, _value in found - expected} <= {"randseed", "size", *loaded}
    assert all("@" not in text and "libaio" not in text for text in jobs.values())


def test_every_job_runs_as_threads_on_windows():
    jobs = [text for name, text in rendered("iomemory-guide", "windows").items() if name.endswith(".fio")]
    assert jobs and all(fio_sanity.sections(text)["global"]["thread"] == "1" for text in jobs)


def test_each_substitution_of_the_guide_is_in_the_data_and_no_other():
    for name, wanted in platforms.platforms().items():
        replaced = {(key, old): new for key, values in wanted["replace"].items() for old, new in values.items()}
        printed = {row: new for row, new in GUIDE[name].items() if row[0] not in ("filename", "cpus_allowed")}
        assert replaced == printed and set(wanted["remove"]) == {"cpus_allowed", *LINUX_ONLY}


@pytest.mark.skipif(not HOWTO.is_file(), reason="needs fio's documentation (Debian's package fio)")
def test_fios_documentation_has_these_words():
    text = " ".join(gzip.decompress(HOWTO.read_bytes()).decode("utf-8").split())
    for said in (
        "**windowsaio** Windows native asynchronous I/O",
        "**solarisaio** Solaris native asynchronous I/O",
        "On Windows the synchronous ioengines don't support direct I/O",
        "ZFS on Solaris don't support direct I/O",
        r"On Windows, disk devices are accessed as :file:`\\\\.\\PhysicalDrive0`",
        "fio must be built on a system with libnuma-dev(el)",
        "Sequential trims (Linux block devices and SCSI character devices only)",
    ):
        assert said in text, said


def test_a_fill_writes_every_byte_once():
    test = {"name": "own", "cells": [{"block_size": "4KiB", "read_pct": 100}]}
    found = rendered([test], "windows", queue_depth=64)
    assert list(found)[:3] == [
        "README.txt",
        "01-own/001-precondition.fio",
        "01-own/002-precondition-remainder.fio",
    ]
    whole, rest = (fio_sanity.sections(found[name]) for name in list(found)[1:3])
    size = int(whole["precondition"]["size"])
    assert size % 131_072 == 0 and whole["precondition"]["iodepth"] == "64"
    assert rest["precondition-remainder"]["offset"] == str(size)
    assert size + int(rest["precondition-remainder"]["size"]) == IDENTITY["size_bytes"]


def test_what_cannot_be_had_there_is_left_out_and_told():
    found = rendered("hyperscale", "windows")
    (gone,) = (line for line in found["README.txt"].splitlines() if "fdatasync1" in line and "Left out" in line)
    assert gone.strip() == "Left out, as fio does not support it there: seq-4k-w100-tc1-qd1-fdatasync1."
    # Trims; the fill before them stays, as later tests go on from it.
    assert [name for name in found if "l2r6" in name and "precondition" not in name] == []
    assert any("o_dsync" in name for name in found)


@pytest.mark.parametrize("device", ["", "C:", r"\\.\PhysicalDrive", "/dev/sda", "\\\\.\\PhysicalDrive1\nfilename=x"])
@pytest.mark.parametrize("platform", ["windows", "solaris"])
def test_a_device_that_is_no_whole_drive_is_refused(platform, device):
    with pytest.raises(PlanError, match="is not a whole drive on"):
        rendered("smoke", platform, device=device)


def load_icf(text):
    """Access specifications as Iometer's AccessSpecList::LoadConfigNew reads them: {name: lines of numbers}."""
    lines = text.splitlines()
    version = re.fullmatch(r"Version (\d{4})\.(\d\d)\.(\d\d) ", lines[0])
    assert int("".join(version.groups())) >= 19980521 and lines[1].startswith("'ACCESS SPECIFICATIONS ")
    found, place = {}, 2
    while lines[place] != "'END access specifications":
        assert lines[place] == "'Access specification name,default assignment"
        name, assignment = lines[place + 1].strip().split(",")
        assert assignment == "NONE" and name not in found and len(name) < 80 and lines[place + 2][0] == "'"
        place, found[name] = place + 3, []
        while lines[place][0] != "'":
            found[name].append([int(number) for number in lines[place].split(",")])
            place += 1
        assert sum(line[1] for line in found[name]) == 100 and all(len(line) == 8 for line in found[name])
    return found


def test_an_icf_has_the_cells_that_iometer_knows():
    sizes = [{"size": "8KiB", "pct": 67}, {"size": "64KiB", "pct": 33}]
    cells = [
        {"block_size": "4KiB", "read_pct": 0, "threads": 8, "queue_depth": 32, "ramp_s": 5},
        {"access": "sequential", "block_size": "128KiB", "read_pct": 100},
        {"block_size": "512B", "read_pct": 67},
        {"block_size": "8KiB", "read_pct": 40, "mix": {"sizes": sizes}},
        {"block_size": "4KiB", "read_pct": 0, "rate_iops": 100},
    ]
    found = rendered([{"name": "own", "cells": cells}], "iometer")
    specs = load_icf(found["01-own/own.icf"])
    # size, % of size, % reads, % random, delay, burst, align, reply
    assert [line for lines in specs.values() for line in lines] == [
        [4096, 100, 0, 100, 0, 1, 4096, 0],
        [131072, 100, 100, 0, 0, 1, 4096, 0],
        [512, 100, 67, 100, 0, 1, 512, 0],
        [8192, 67, 40, 100, 0, 1, 8192, 0],
        [65536, 33, 40, 100, 0, 1, 8192, 0],
    ]
    told = found["README.txt"]
    assert "rand-4k-w100-tc8-qd32-ramp5s: 8 workers, 32 outstanding I/Os each, 60 s after a ramp of 5 s." in told
    assert "Fill 100 % of it 2 times: sequential writes of 128 KiB." in told
    assert "Left out, as Iometer does not support them: rand-4k-w100-tc1-qd1-100iops." in told


def test_the_preferred_size_is_the_one_given():
    identity = {**IDENTITY, "minimum_io_size_bytes": 16_384}
    assert "01-preferred-writes/003-rand-16k-w100-tc4-qd32.fio" in rendered(
        ["preferred-writes"], "solaris", identity=identity
    )


def test_what_the_host_job_alone_can_do_is_refused():
    with pytest.raises(PlanError, match="test integrity: only the host job reads back what it wrote"):
        rendered(["integrity"], "windows")
    with pytest.raises(PlanError, match="test zoned-reads: fio knows zones only on Linux"):
        rendered(["zoned-reads"], "windows")
