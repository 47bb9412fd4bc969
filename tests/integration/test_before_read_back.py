# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an integrity test does to a drive before it reads back, by real host jobs on a loop device that is shown as an
NVMe drive; nvme is the emulator of tests/emulators. A controller of which somebody uses another namespace is not reset.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from emulated_nvme import SIZE, benched

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

BLOCK, LOST = 4096, 8192
# Until its input ends.
HOLD = "import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); print('held', flush=True); sys.stdin.read()"
STATES = [{"max_power": 9, "non-operational_state": flag} for flag in (0, 0, 0, 1, 1)]


@pytest.fixture
def bench(loop_drive, tmp_path, monkeypatch):
    yield from benched(loop_drive(size_bytes=SIZE), tmp_path, monkeypatch)


def run(bench, asked, tuned=None, keys=None, **drive):
    """The end of the drive's test, the test's integrity event or None, and what nvme was told to do."""
    bench.set(nodes=[bench.loop.path], **drive)
    test = {"base": "integrity", "purge": False, "integrity": {"passes": 2, **asked}, **(keys or {})}
    bench.job(bench.plan("auto", planning.load_plan([test]), **(tuned or {}))).run()
    (ended,) = bench.journal("test_finished")
    with open(bench.run_dir.commands) as file:
        argvs = [json.loads(line)["argv"] for line in file]
    told = [argv[1:2] + argv[3:] for argv in argvs if argv[:2] in (["nvme", "reset"], ["nvme", "set-feature"])]
    return ended, next(iter(reversed(bench.journal("integrity"))), None), told


def content(bench):
    """Without the block that proves that fio can write."""
    return bench.loop.file.read_bytes()[BLOCK:]


def value(number, feature=2):
    return ["set-feature", f"--feature-id={feature}", f"--value={number}"]


def test_a_reset_comes_between_writing_and_reading_back(bench):
    ended, found, told = run(bench, {"reset": True})
    assert (ended["ended"], found["wrong_blocks"], found["resets"]) == (None, {}, 2)
    assert told == [["reset"]] * 2 and bench.state()["resets"] == 2 and "power_state" not in found


def test_settings_that_a_reset_loses_are_made_again_before_the_next_pass(bench):
    """The drive's write cache is on again after a reset: each pass is written with it as the test needs it."""
    rule = {"write_cache": {"state": "leave", "plp_models": []}}
    ended, _found, told = run(bench, {"reset": True}, rule, {"write_cache": "off"}, write_cache=1)
    assert (ended["ended"], ended["disturbed"]) == (None, [])
    assert told == [value(0, 6), *[["reset"], value(0, 6)] * 2, value(1, 6)] and bench.state()["write_cache"] == 1


def test_what_a_reset_loses_is_found(bench):
    _ended, found, _told = run(bench, {"reset": True}, loses={"reset": [LOST]})
    assert [(block["offset_bytes"], block["kind"]) for block in found["first"]] == [(LOST, "blank")] * 2
    (left,) = bench.journal("left")
    assert left["state"] == "evidence"


def test_a_drive_rests_in_its_state_of_least_power(bench):
    """Once before anything is written, to see that it can; and it gets back to the state that it was in."""
    ended, found, told = run(bench, {"low_power": True, "pause_s": 1}, psds=STATES, power_state=1)
    assert (ended["ended"], found["wrong_blocks"], found["power_state"]) == (None, {}, 4)
    assert told == [value(4), value(1)] * 3 and bench.state()["power_state"] == 1


def test_a_drive_that_does_not_stay_at_rest_is_told(bench):
    """By itself, as drives may that are asked something: it has a remark, once, and is no reason against it."""
    ended, found, _told = run(bench, {"low_power": True, "pause_s": 1}, psds=STATES, wakes_to=1)
    told = [item for item in ended["conditions"] if "put to rest" in item["message"]]
    assert (ended["ended"], found["wrong_blocks"]) == (None, {}) and [item["level"] for item in told] == ["told"]
    text = "it was put to rest in power state 4, and did not stay there: it reported power state 1"
    assert told[0]["message"] == text


def test_what_a_drive_loses_at_rest_is_found(bench):
    _ended, found, _told = run(bench, {"low_power": True, "pause_s": 1}, psds=STATES, loses={"rest": [LOST]})
    assert [(block["offset_bytes"], block["kind"]) for block in found["first"]] == [(LOST, "blank")] * 2


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        ({"psds": STATES[:3]}, "the drive can't rest: it tells of no power state in which it does no I/O"),
        ({"psds": STATES, "stays_awake": True}, "the drive does not rest: it reports power state 0, not 4"),
    ],
)
def test_a_drive_that_can_t_rest_is_not_written(bench, drive, reason):
    before = content(bench)
    ended, found, _told = run(bench, {"low_power": True}, **drive)
    assert (ended["ended"], ended["reasons"], found) == ("invalid", [reason], None) and content(bench) == before


# --- the wrong drive ---


@pytest.fixture
def neighbour(bench, loop_drive):
    """Another namespace of the controller."""
    made = loop_drive(name="neighbour", size_bytes=SIZE)
    bench.names.append(made.name)
    bench.sysfs[f"/sys/block/{made.name}/nsid"] = "2"
    bench.facts["namespaces"]["2"] = {"media": str(made.file), "size_bytes": SIZE, "lbaf": 0}
    return made


def refused(bench, text):
    """The reset is not done, and nothing is written."""
    before = content(bench)
    ended, found, told = run(bench, {"reset": True})
    assert ended["ended"] == "invalid" and told == [] and found is None and content(bench) == before
    assert ended["reasons"][0].startswith("its controller can't be reset: ") and text in ended["reasons"][0]


def test_a_controller_whose_other_namespace_nobody_uses_is_reset(bench, neighbour):
    before = neighbour.digest()
    _ended, found, told = run(bench, {"reset": True})
    assert told == [["reset"]] * 2 and found["wrong_blocks"] == {} and neighbour.digest() == before


def test_a_controller_of_a_mounted_namespace_is_not_reset(bench, neighbour, tmp_path):
    (tmp_path / "mnt").mkdir()
    subprocess.run(["mkfs.ext4", "-q", neighbour.path], check=True)
    subprocess.run(["mount", neighbour.path, tmp_path / "mnt"], check=True)
    try:
        refused(bench, f"{neighbour.path}, another namespace of its controller, is in use (mounted)")
    finally:
        subprocess.run(["umount", tmp_path / "mnt"], check=True)


def test_a_controller_of_a_namespace_that_is_held_is_not_reset(bench, neighbour):
    argv = [sys.executable, "-c", HOLD, neighbour.path]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        refused(bench, f"{neighbour.path}, another namespace of its controller, is in use")
        other.communicate()


def test_a_controller_of_a_namespace_that_can_t_be_seen_is_not_reset(bench):
    bench.facts["namespaces"]["7"] = {"media": None, "size_bytes": SIZE}
    refused(bench, "who uses its namespace 7 can't be seen")


def test_a_controller_among_several_of_its_subsystem_is_not_reset(bench):
    bench.set(cmic=2, controller_ids=[1, 2])
    refused(bench, "its NVM subsystem has 2 controllers")
