# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 96 to 98 and 101 of docs/wrong-drives.md: what a play leaves out, and what a later play of a run forgets."""

from __future__ import annotations

import json
import os
import signal

import holding
import pytest
from waiting import wait_until
from wrong_drive import SERVER, run

OTHER = "rack1-08"
NOWHERE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def bench(make_bench):
    return make_bench()


@pytest.fixture
def shared(bench):
    """A drive with data that its entry gives up, by a name that means the same on every machine: as one in a shelf."""
    disk = bench.disk("shared")
    disk.write(0, b"another machine's data")
    disk.entry = {"by_id": bench.by_id(disk.path), "ssd_overwrite_data": True}
    return disk


@pytest.mark.case(96)
def test_case_96_the_other_host_that_names_it_does_not_answer(bench, shared):
    outcome = bench.play(
        playbook="purge", entries={SERVER: [shared.entry], OTHER: [shared.entry]}, variables={OTHER: NOWHERE}
    )
    assert outcome.codes("shared") == {"duplicate"} and f"{OTHER} names it too and is unreachable" in outcome.output
    outcome.nothing_happened()


@pytest.mark.case(97)
def test_case_97_the_other_host_that_names_it_is_not_in_the_play(bench, shared):
    entries = {SERVER: [shared.entry], OTHER: [shared.entry]}
    outcome = bench.play("--limit", SERVER, playbook="purge", entries=entries)
    assert (
        outcome.codes("shared") == {"duplicate"} and f"{OTHER} names it too and is not in this play" in outcome.output
    )
    outcome.nothing_happened()


def test_a_host_that_is_left_out_and_names_other_drives_keeps_nobody_away(bench, shared):
    own, file = bench.disk("own"), bench.disk("a path that means another file there")
    others = [{"by_id": os.path.basename(own.file)}, file.entry, {"serial": "{{ undefined }}"}, "no entry"]
    entries = {SERVER: [shared.entry, file.entry], OTHER: others, "rack1-09": "{{ undefined }}"}
    outcome = bench.play("--limit", SERVER, playbook="purge", entries=entries)
    assert outcome.code == 0 and outcome.changed == ["shared"], outcome.output


@pytest.mark.case(98)
def test_case_98_a_run_that_goes_on_without_its_criteria(bench):
    """Its job died after a drive had missed one. Played again without them, the run would leave the drive blank."""
    (test,) = bench.site.vars["ssd_plan"]
    quick = dict(test, steady_state=False, rounds={"max": 1})
    long = dict(quick, name="long", purge={"method": "none"}, cells=[dict(test["cells"][0], runtime_s=10)])
    bench.site.vars.update(ssd_plan=[dict(quick, name="first"), long], ssd_leave="blank")
    run("losetup", "--direct-io=on", bench.spare.path)  # what goes through the page cache is no valid measurement
    entries, arguments = [bench.spare.entry], ("-e", "ssd_run_id=forgetful")
    missed = json.dumps({"ssd_criteria": [{"test": "first", "metric": "write_iops", "min": 1e9}]})
    _kill_in("long", bench, *arguments, "-e", missed, entries=entries)
    outcome = bench.play(*arguments, playbook="qualify", entries=entries)
    left = [record for record in outcome.journal if record["event"] == "left"]
    assert [record["state"] for record in left] == ["evidence"], outcome.output
    assert bench.play(entries=entries).codes("spare") == {"evidence"}


@pytest.mark.case(101)
def test_case_101_a_run_that_goes_on_where_its_link_leads_to_another_drive(bench):
    """A blank one, so that nothing else speaks against it: it would be erased, and measured for the first."""
    (test,) = bench.site.vars["ssd_plan"]
    quick = dict(test, steady_state=False, rounds={"max": 1})
    long = dict(quick, name="long", purge={"method": "none"}, cells=[dict(test["cells"][0], runtime_s=10)])
    bench.site.vars["ssd_plan"] = [dict(quick, name="first"), long]
    first, other = bench.disk("first"), bench.disk("other")
    link, arguments = bench.by_id(first.path), ("-e", "ssd_run_id=goes-on")
    _kill_in("long", bench, *arguments, entries=[{"by_id": link}])
    os.unlink("/dev/disk/by-id/" + link)
    os.symlink(other.path, "/dev/disk/by-id/" + link)
    outcome = bench.play(*arguments, playbook="qualify", entries=[{"by_id": link}])
    assert outcome.codes(link) == {"identity_changed"} and outcome.code != 0, outcome.output
    outcome.untouched("other")


def _kill_in(test, bench, *arguments, entries):
    """Start a run, and end its host job by SIGKILL while it measures a test."""

    def start():
        outcome = bench.play(*arguments, entries=entries)
        return outcome.code, outcome.output

    with bench.site.held(start, holding.measures(test)) as (code, output):
        assert code == 0, output
        (folder,) = bench.site.run_folders()
        pid = json.loads((folder / "status.json").read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}/exe"), "the end of the job")
