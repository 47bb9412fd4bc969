# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bad input gets: a message that names host, drive and key, an exit code, and nothing erased."""

from __future__ import annotations

import copy
import json
import os

import pytest


@pytest.fixture
def fleet(site, loop_drive):
    """Two drives of one server, with data that nothing may touch."""
    drives = [loop_drive("one"), loop_drive("two", sector_bytes=4096)]
    for drive in drives:
        with open(drive.file, "r+b") as out:
            out.seek(1 << 20)
            out.write(b"somebody's data" * 1000)
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector for drive in drives]}}
    site.drives = drives
    return site


def plan(site, **changes):
    test = dict(copy.deepcopy(site.vars["ssd_plan"][0]), **changes)
    return [{key: value for key, value in test.items() if value is not None}]


def cell(site, **changes):
    """The plan with another cell, which is then the tracked one."""
    made = dict(site.vars["ssd_plan"][0]["cells"][0], **changes)
    tracked = {"block_size": made["block_size"], "read_pct": made["read_pct"], "metric": "iops"}
    return plan(site, cells=[made], steady_state={"tracked": [tracked]})


def set_var(**values):
    return lambda site: site.vars.update(values)


def set_drives(*drives):
    return lambda site: site.hosts["rack1-07"].update(ssd_drives=list(drives))


CASES = {
    "no drives named": (set_drives(), ["rack1-07", "ssd_drives"]),
    "a drive that is not there": (set_drives({"serial": "NOSUCH1"}), ["rack1-07", "NOSUCH1", "not_found"]),
    "an unknown selector": (set_drives({"path": "/dev/sda"}), ["rack1-07", "ssd_drives[0]", "path"]),
    "a serial that YAML read as a number": (set_drives({"serial": 123}), ["rack1-07", "123", "quote"]),
    "mode: a boolean": (set_var(ssd_mode=True), ["ssd_mode", "plan, destructive"]),
    "mode: another word": (set_var(ssd_mode="Destructive"), ["ssd_mode", "'Destructive'"]),
    "a wrong key": (lambda s: s.vars.update(ssd_plan=plan(s, raunds={"max": 3})), ["ssd_plan[0]", "raunds", "rounds"]),
    "an unknown test": (set_var(ssd_plan=["wsatt"]), ["wsatt", "wsat"]),
    "an unknown plan": (set_var(ssd_plan="demonstration"), ["demonstration", "demo"]),
    "no plan": (set_var(ssd_plan=[]), ["ssd_plan"]),
    "a cell below the block size": (
        lambda s: s.vars.update(ssd_plan=cell(s, block_size="512B"), ssd_criteria=[]),
        ["rack1-07", "two.img", "512"],
    ),
    "an impossible mix": (lambda s: s.vars.update(ssd_plan=cell(s, read_pct=101)), ["ssd_plan[0]", "read_pct", "101"]),
    "fio too old": (set_var(ssd_fio_min_version="99.1"), ["rack1-07", "fio", "99.1"]),
    "a tool missing": (set_var(preflight_tools=["fio", "no-such-tool"]), ["rack1-07", "no-such-tool"]),
    "a folder that can't be written": (
        set_var(ssd_results_dir="/proc/ssd-results"),
        ["ssd_results_dir", "/proc/ssd-results"],
    ),
    "a run id that leaves its folder": (set_var(ssd_run_id="../../etc"), ["ssd_run_id", "../../etc"]),
    "a criterion without a limit": (set_var(ssd_criteria=[{"metric": "write_iops"}]), ["ssd_criteria", "write_iops"]),
    "a criterion for no model": (
        set_var(ssd_criteria=[{"metric": "write_iops", "min": 1, "model": "NOSUCH*"}]),
        ["ssd_criteria", "'NOSUCH*' matches no drive"],
    ),
    "parallel drives as a word": (
        set_var(ssd_parallel_drives="two"),
        ["rack1-07", "ssd_parallel_drives: 'two' must be a whole number"],
    ),
    "a negative interval": (
        set_var(ssd_watch_interval_s=-3),
        ["rack1-07", "ssd_watch_interval_s: -3 must be 0 (automatic)"],
    ),
    # A choice and a type of a role's spec: Ansible itself would only drop the host.
    "a word that is no choice": (
        set_var(ssd_look="ful"),
        ["rack1-07", "ssd_look: 'ful' must be one of: sample, full; did you mean full?"],
    ),
    "a switch that is none": (
        set_var(tune_smt_enabled="maybe"),
        ["rack1-07", "tune_smt_enabled: 'maybe' must be true or false"],
    ),
    "a queue attribute that is a path": (set_var(tune_queue={"../x": 1}), ["rack1-07", "tune_queue: '../x'"]),
    "a misspelt variable": (
        set_var(ssd_criterias=[], tune_govenor="performance"),
        [
            "rack1-07: ssd_criterias: there is no such variable, so it would be ignored; did you mean ssd_criteria?",
            "rack1-07: tune_govenor: there is no such variable, so it would be ignored; did you mean tune_governor?",
        ],
    ),
    "a host name with a slash": (
        lambda s: s.hosts.update({"a/b": s.hosts.pop("rack1-07")}),
        ["a/b: the host's inventory name"],
    ),
    "one drive named twice": (
        lambda s: set_drives(s.drives[0].selector, s.drives[0].selector)(s),
        ["rack1-07", "one.img", "duplicate"],
    ),
    "one machine under two names": (
        lambda s: s.hosts.update({"alias": {"ssd_drives": [s.drives[0].selector]}}),
        ["rack1-07", "alias", "one.img", "same drive"],
    ),
}


# The checks are the same code in check mode; three of them show that it runs.
IN_CHECK_MODE = ("no drives named", "a drive that is not there", "one machine under two names")


@pytest.mark.parametrize(
    "case, arguments", [(case, ["--check"]) for case in IN_CHECK_MODE] + [(case, []) for case in CASES]
)
def test_bad_input_stops_everything_before_anything(fleet, case, arguments):
    change, words = CASES[case]
    before = [drive.digest() for drive in fleet.drives]
    change(fleet)
    code, output = fleet.play("qualify", *arguments)
    assert code != 0, output
    flat = " ".join(output.split())
    for word in words:
        assert word in flat, f"{word!r} is not in:\n{output}"
    assert [drive.digest() for drive in fleet.drives] == before
    assert fleet.run_folders() == []


def released(fleet):
    """The data on the drives may go; whether the guard's samples meet so few bytes is chance."""
    set_drives(*({**drive.selector, "ssd_overwrite_data": True} for drive in fleet.drives))(fleet)


def test_a_missing_group_is_no_success(fleet):
    code, output = fleet.play("qualify", group="web_servers")
    assert code != 0 and "ssd_servers" in output


def test_plan_mode_shows_all_and_changes_nothing(fleet):
    before = [drive.digest() for drive in fleet.drives]
    released(fleet)
    code, output = fleet.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0, output
    for word in ("would erase", "one.img", "two.img", "purge", "rounds"):
        assert word in output
    assert [drive.digest() for drive in fleet.drives] == before
    assert fleet.run_folders() == [] and os.listdir(fleet.results) == ["_plans"]


def test_an_extra_variable_may_be_misspelt_too(fleet):
    code, output = fleet.play("preflight", "-e", "ssd_paralel_drives=2")
    assert code != 0 and "did you mean ssd_parallel_drives?" in " ".join(output.split()), output


def test_names_of_the_users_own_stop_nothing(fleet):
    """One in a template, one near none of ours; and another ssd_ name is a remark, once for all hosts."""
    released(fleet)
    first, second = fleet.hosts["rack1-07"]["ssd_drives"]
    fleet.hosts = {
        "rack1-07": {"ssd_drive": first, "ssd_drives": ["{{ ssd_drive }}"]},
        "rack1-08": {"ssd_drives": [second]},
    }
    fleet.vars.update(report_mail_to="x@example.com", tune_kernel_network=1, ssd_site="north")
    code, output = fleet.play("preflight", "-e", "ssd_mode=plan")
    flat = " ".join(output.split())
    assert "there is no such variable" not in flat and "report_mail_to" not in flat and "tune_kernel" not in flat, (
        output
    )
    assert flat.count("ssd_site: no variable of this collection") == 1, output
    assert "rack1-07, rack1-08: unknown_variable: ssd_site" in flat, output
    # Which both are, here.
    assert "found 1 thing to fix" in flat and "rack1-07: same_machine" in flat and code != 0, output


def test_names_that_an_inventory_plugin_uses_are_no_finding(fleet, tmp_path):
    released(fleet)
    fleet.vars.update(ssd_site="north", ssd_host="asset")
    (tmp_path / "plugins").mkdir()
    config = {
        "plugin": "ansible.builtin.constructed",
        "compose": {"place": "ssd_site"},
        "groups": {"assets": "ssd_host is defined"},
    }
    (tmp_path / "plugins/groups.yml").write_text(json.dumps(config))
    _code, output = fleet.play("preflight", "-e", "ssd_mode=plan", "-i", str(tmp_path / "plugins"))
    assert "would erase" in output and "ssd_site" not in output and "did you mean" not in output, output


def test_a_shipped_suite_lists_what_a_drive_cannot_do(fleet):
    fleet.vars["ssd_plan"] = ["iops"]
    released(fleet)
    code, output = fleet.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0, output
    assert "not applicable" in output.replace("_", " ")
