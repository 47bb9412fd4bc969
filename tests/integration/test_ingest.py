# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From jobs to a verdict on a machine where this collection does not run: render.yml, the commands of its README.txt
with real fio, ingest.yml. fio's engine and device are those of Linux while it runs, and Windows' in its job files and
results; the files of its results have the names that cmd.exe gives them.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures import elsewhere

SIZE_BYTES = 64 << 20
PLAN = [
    {
        "name": name,
        **({"precondition": {"passes": 1}} if name == "first" else {"precondition": False, "purge": False}),
        "cells": [{"block_size": "4KiB", "read_pct": share, "runtime_s": 1} for share in (100, 0)],
        "rounds": {"max": 3},
        "steady_state": {
            **{"tracked": [{"read_pct": 0, "metric": "iops"}], "window": 3, "range_limit": 1, "slope_limit": 1},
            **{"min_capacity_multiple": 0, "confirm_windows": 0},
        },
    }
    for name in ("first", "second")
]
DRIVE = {"serial": "22123A4F5B6C", "model": "MTFDHAL960TDP", "firmware": "E2MU200", "size_bytes": SIZE_BYTES}
FOR = re.compile(r"for /L %r in \(1,1,(?P<rounds>[0-9]+)\) do for %f in \((?P<names>[^)]*)\) do (?P<command>fio .*)")


def commands(readme):
    """[(folder of a test, command)] of a README.txt, its loops as cmd.exe runs them."""
    folder, found = "", []
    for line in readme.splitlines():
        if head := re.match(r"(?P<folder>[0-9]{2}-\S+): ", line):
            folder = head["folder"]
        loop = FOR.fullmatch(line.strip())
        if loop:
            rounds, names = range(1, int(loop["rounds"]) + 1), loop["names"].split()
            found += [
                (folder, loop["command"].replace("%f", name).replace("%r", str(number)))
                for number in rounds
                for name in names
            ]
        elif line.strip().startswith("fio "):
            found.append((folder, line.strip()))
    return found


def run_fio(folder, command, device):
    """Run a command of the README, with Linux' engine and device while fio runs."""
    *options, job = command.split()[1:]
    output = next(text.partition("=")[2] for text in options if text.startswith("--output="))
    windows = (folder / job).read_text()
    assert f"filename={elsewhere.DEVICE}\n" in windows and "ioengine=windowsaio\n" in windows
    own = folder / "own.fio"
    own.write_text(windows.replace("windowsaio", "libaio").replace(elsewhere.DEVICE, str(device)))
    subprocess.run(["fio", *options, "--eta=never", own.name], cwd=folder, check=True, capture_output=True)
    own.unlink()
    # cmd.exe has the folder made; here the name keeps its backslash, as some archives bring it.
    text = (folder / output).read_text()
    text = text.replace(json.dumps(str(device)), json.dumps(elsewhere.DEVICE)).replace('"libaio"', '"windowsaio"')
    (folder / output).write_text(text)
    return output


@pytest.fixture
def rendered(site, tmp_path):
    """The folder of a rendered plan, and the site with what the README asks for."""
    folder = tmp_path / "rendered"
    given = {"render_platform": "windows", "render_device": elsewhere.DEVICE, "render_dest": str(folder)}
    code, said = site.play("render", "-e", json.dumps({**given, "ssd_plan": PLAN, "render_size_bytes": SIZE_BYTES}))
    assert code == 0, said
    site.vars.update(ssd_criteria=[{"metric": "write_iops", "min": 1}], ssd_plan=PLAN, ssd_store_url="")
    site.hosts = {"server": {}}
    return folder


def play(site, folder, *args, **changed):
    given = {"ingest_files": [str(folder)], "ingest_host": "win-3", "ingest_system": "Windows Server 2022"}
    given.update(ingest_drive=DRIVE, ingest_platform="windows", ssd_run_id="windows-1", ssd_hosts="ssd_servers")
    return site.play("ingest", "-e", json.dumps({**given, **changed}), *args)


def test_a_person_at_a_windows_machine_gets_from_jobs_to_a_verdict(site, rendered, tmp_path):
    device = tmp_path / "drive.img"
    with open(device, "wb") as file:
        file.truncate(SIZE_BYTES)
    done = [
        run_fio(rendered / folder, command, device)
        for folder, command in commands((rendered / "README.txt").read_text())
    ]
    assert len(done) == 13 and all(name.startswith("results\\") for name in done)
    code, said = play(site, rendered, "--check")
    assert code == 0 and not (site.results / "windows-1").exists(), said
    code, said = play(site, rendered)
    assert code == 0 and "win-3  22123A4F5B6C" in said, said
    summary = site.summary()
    (drive,) = summary["drives"]
    assert (drive["verdict"], drive["host"], drive["model"]) == ("pass", "win-3", "MTFDHAL960TDP")
    assert [(test["test"], test["outcome"]) for test in drive["tests"]] == [("first", "steady"), ("second", "steady")]
    assert summary["run"]["measured_elsewhere"] == [f"Windows Server 2022, {fio_version()}"]
    filled = drive["tests"][0]["precondition"]
    assert filled["bytes_written"] == SIZE_BYTES and filled["data"] == "random"
    assert all(test["metrics"]["write_p99_latency_us"] > 0 for test in drive["tests"])
    assert (site.results / "store.sqlite").exists()
    code, said = play(site, rendered)
    assert code == 0 and "changed=0" in said, said

    # Of another size than was rendered: nothing says that it is the same drive.
    code, said = play(site, rendered, ingest_drive={**DRIVE, "size_bytes": 2 * SIZE_BYTES})
    assert code != 0 and re.search(r"line [0-9]+: fio worked with size=", said) and "render.yml" in said, said
    # Judged by others: it fails, and says so.
    code, said = site.play(
        "report", "-e", json.dumps({"ssd_run_id": "windows-1", "ssd_criteria": [{"metric": "write_iops", "min": 1e9}]})
    )
    assert code != 0 and site.summary()["drives"][0]["verdict"] == "fail", said


def test_what_the_operator_did_not_state_is_asked_for(site, tmp_path):
    site.hosts = {"server": {}}
    code, said = play(site, tmp_path, ingest_drive={}, ingest_host="")
    assert code != 0 and "Give ingest_host, ingest_drive (docs/ingest.md has an example)" in said, said


def fio_version():
    return subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
