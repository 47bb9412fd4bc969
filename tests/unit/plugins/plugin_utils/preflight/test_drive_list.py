# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import drive_list
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

ANY_TEXT = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["0123", "1e5", "NO", "null", "~", "a: b", "# x", "\x85- serial: Z", "x\n- serial: Z"]
)
REFUSED = [{"code": "mounted", "message": "S2 (/dev/sda): it is mounted: /dev/sda1 on /. Unmount it."}]


def found(selector, eligible=True, refusals=(), **identity):
    return {
        **host_answers.DRIVE,
        "selector": selector,
        "eligible": eligible,
        "path": "/dev/sda",
        "identity": identity or None,
        "refusals": list(refusals),
    }


def test_what_it_looks_like():
    answers = {
        "rack1-07": {
            "drives": [
                found({"serial": "0123"}, model="EXAMPLE 9000", size_bytes=3200631791616, transport="nvme"),
                found({"serial": "S2"}, False, REFUSED, model="EXAMPLE 100", size_bytes=480103981056, transport="sata"),
                found(
                    None, False, [{"code": "no_identity", "message": "/dev/sda: It cannot be named."}], size_bytes=1000
                ),
            ]
        },
        "rack1-08": {"unreachable": True, "msg": "no route to host"},
        "rack1-09": {"drives": []},
    }
    assert drive_list.render(answers).splitlines()[3:] == [
        "ssd_servers:",
        "  hosts:",
        "    rack1-07:",
        "      ssd_drives:",
        '        - serial: "0123"  # EXAMPLE 9000, 3.201 TB, nvme, /dev/sda',
        "        # not eligible: EXAMPLE 100, 480.1 GB, sata, /dev/sda",
        '        # - serial: "S2"',
        "        #   mounted: it is mounted: /dev/sda1 on /. Unmount it.",
        "        # not eligible: 1 kB, /dev/sda",
        "        #   no_identity: It cannot be named.",
        "    rack1-08:",
        "      # no answer: no route to host",
        "      ssd_drives: []",
        "    rack1-09:",
        "      ssd_drives: []",
        "        # no drive found",
    ]
    assert drive_list.failures(answers) == {"rack1-08": "no route to host"}


@given(ANY_TEXT, st.sampled_from(["serial", "wwn", "by_id", "backing_file"]), ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_reads_back_as_the_eligible_drives_whatever_a_drive_calls_itself(host, key, value, model, message):
    answers = {
        host: {
            "drives": [
                found({key: value}, model=model, size_bytes=5),
                found({key: value}, False, [{"code": "mounted", "message": message}], model=model),
                found({key: "x"}, "yes"),
                found(None),
            ]
        }
    }
    assert yaml.safe_load(drive_list.render(answers)) == {
        "ssd_servers": {"hosts": {host: {"ssd_drives": [{key: value}]}}}
    }


@pytest.mark.parametrize(
    "answer", [None, {}, "text", {"msg": "broken", "module_stderr": "Traceback\nmore"}, {"drives": None}]
)
def test_a_host_without_an_answer_has_no_drives(answer):
    assert yaml.safe_load(drive_list.render({"a": answer}))["ssd_servers"]["hosts"]["a"] == {"ssd_drives": []}
    assert "a" in drive_list.failures({"a": answer})


@pytest.mark.parametrize("eligible", [True, False])
@pytest.mark.parametrize(
    "selector", [{}, {"model": "x"}, {"serial": {"a": 1}}, {"serial": None}, ["serial"], "serial", 5, None]
)
def test_a_selector_that_names_nothing_does_not_end_the_list(selector, eligible):
    answers = {"odd": {"drives": [found(selector, eligible)]}, "good": {"drives": [found({"serial": "S1"})]}}
    hosts = yaml.safe_load(drive_list.render(answers))["ssd_servers"]["hosts"]
    assert hosts == {"odd": {"ssd_drives": []}, "good": {"ssd_drives": [{"serial": "S1"}]}}


def test_a_used_drive_only_has_to_be_uncommented():
    used = found({"serial": "S2"}, False, REFUSED, model="EXAMPLE 100", size_bytes=480103981056, transport="sata")
    used.update(may_retire="true", power_on_hours=12345, holds=["a GPT", 'partition 1: ext, label "a\nb"'])
    text = drive_list.render({"rack1-07": {"drives": [used]}})
    lines = text.splitlines()[6:]
    assert lines[1:] == [
        '        # - serial: "S2"  # used: EXAMPLE 100, 480.1 GB, sata, /dev/sda, in use for 12,345 h',
        "        #   retired: true",
        "        #   # holds a GPT",
        '        #   # holds partition 1: ext, label "a b"',
    ]
    uncommented = [line.replace("# ", "", 1) if line.startswith(8 * " ") else line for line in text.splitlines()]
    uncommented = [line.replace("ssd_drives: []", "ssd_drives:") for line in uncommented]
    drives = yaml.safe_load("\n".join(uncommented))["ssd_servers"]["hosts"]["rack1-07"]["ssd_drives"]
    assert drives == [{"serial": "S2", "retired": True}]
