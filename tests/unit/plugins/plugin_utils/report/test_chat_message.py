# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message of a run: what it says, that it fits, and that nothing in it acts on a chat."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import chat_message
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict.verdicts import VERDICTS

RUN = {"run": {"id": "20261122T200000Z-nightly", "name": "nightly"}}
HOSTILE = [
    "<!channel>",
    "@everyone",
    "<@U123>",
    "[here](http://evil.example/)",
    "`code`",
    "{{ lookup('pipe', 'id') }}",
    "a\nb",
    "\x1b[2J",
    "\u202egnp",
    "x" * 9000,
]


def drive(host, name, verdict, *reasons):
    return {"host": host, "drive": name, "verdict": verdict, "reasons": list(reasons)}


def judgement(*drives):
    verdicts = {verdict: sum(one["verdict"] == verdict for one in drives) for verdict in VERDICTS}
    return {"drives": list(drives), "verdicts": verdicts}


def before(*drives):
    return {"run": {"id": "20261121T200000Z-nightly"}, "drives": list(drives)}


def test_the_drives_of_a_slow_host_hide_no_bad_drive():
    """More of them failed than fit, and they come first in the inventory."""
    slow = [
        {**drive("a", f"S{number}", "fail", "the host's fault: a is slow"), "host_fault": True} for number in range(99)
    ]
    text = chat_message.run_message(RUN, judgement(*slow, drive("b", "S99", "fail", "worn")))
    assert "\nfail: b S99: worn\nfail: a S0: the host's fault" in text


def test_a_drive_without_a_result_is_named_once_and_one_of_few_says_all_of_its_reason():
    why = "mounted: it is mounted on /data; unmount it, and take it out of /etc/fstab if it is to be erased" + " x" * 60
    left = drive("rack1-07", "S1", "not_tested", f"S1 on rack1-07 was left out: {why}")
    text = chat_message.run_message(RUN, judgement(left))
    assert f"\nnot tested: rack1-07 S1: left out: {why}\n" in text
    assert why not in chat_message.run_message(RUN, judgement(*[left] * 5))


@pytest.mark.parametrize(
    ("drives", "was", "said"),
    [
        ([], None, ["20261122T200000Z-nightly: no drive was asked for", "No earlier run to compare with"]),
        (
            [drive("a", "S1", "pass")],
            before(drive("a", "S1", "pass")),
            ["20261122T200000Z-nightly: the drive passed", "Nothing changed since 20261121T200000Z-nightly"],
        ),
        (
            [
                drive("a", "S1", "pass"),
                drive("a", "S2", "invalid", "throttled"),
                drive("b", "S3", "fail", "slow", "worn"),
                drive("b", "S4", "not_tested"),
            ],
            before(
                drive("a", "S1", "fail"),
                drive("a", "S2", "invalid"),
                drive("b", "S3", "pass"),
                drive("c", "S9", "pass"),
            ),
            [
                "20261122T200000Z-nightly: 1 of 4 drives passed; 1 failed: slow; 1 not measured validly: throttled; "
                "1 not tested: no reason known",
                "changed: a S1: fail before, pass now",
                "changed: b S3: pass before, fail now",
                "new: b S4: not tested",
                "gone: c S9: pass before",
                "fail: b S3: slow",
                "invalid: a S2: throttled",
                "not tested: b S4: no reason known",
            ],
        ),
    ],
)
def test_it_says_the_verdicts_and_what_changed(drives, was, said):
    assert chat_message.run_message(RUN, judgement(*drives), was).splitlines() == said


def test_a_large_fleet_fits_and_the_rest_is_counted():
    drives = [drive(f"rack{number}", f"SERIAL{number}", "fail", "slow " * 60) for number in range(3000)]
    said = chat_message.run_message(RUN, judgement(*drives), before())
    assert len(said) <= chat_message.MOST
    left_out = [int(found) for found in re.findall(r"…and (\d+) more", said)]
    assert left_out == [3000 - said.count("\nnew: "), 3000 - said.count("\nfail: ")] and said.count("\nfail: ") > 2


names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40))


@given(st.lists(st.tuples(names, names, st.sampled_from(VERDICTS), names, st.booleans()), max_size=30))
def test_nothing_from_a_host_acts_on_a_chat(told):
    drives = [drive(host, name, verdict, reason) for host, name, verdict, reason, _known in told]
    was = before(*[drive(host, name, "pass") for host, name, _verdict, _reason, known in told if known])
    said = chat_message.run_message(RUN, judgement(*drives), was)
    assert len(said) <= chat_message.MOST and said.endswith("\n")
    assert not set(said) & set("<>@`[]{}|&") and "://" not in said
    assert all(line.isprintable() and line for line in said.rstrip("\n").split("\n"))
    # A name with a line break is no line of its own.
    begins = re.compile(
        r"2026\S+: |changed: |new: |gone: |fail: |error: |invalid: |not tested: |Nothing |No run |…and \d"
    )
    assert all(begins.match(line) for line in said.splitlines())


@given(names, st.lists(names, min_size=1, max_size=30))
def test_findings_act_on_no_chat_and_fit(name, findings):
    said = chat_message.of_findings(name, findings)
    assert len(said) <= chat_message.MOST and said.endswith("\n") and "not started" in said.splitlines()[0]
    assert not set(said) & set("<>@`[]{}|&") and "://" not in said


def test_findings_are_told_and_name_their_playbooks():
    said = chat_message.of_findings(
        "nightly", ["h1: wait for it (watch.yml, run.json), see www.evil.example", "h2: no tool"]
    )
    assert said.splitlines() == [
        "nightly: not started, preflight found 2 things to fix",
        "h1: wait for it (watch.yml, run.json), see www. evil. example",
        "h2: no tool",
    ]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("or set allow: [partition_table], or take", "or set allow: [partition_table], or take"),
        ("allow: [partition_table](evil)", "allow: (partition_table)(evil)"),
        ("allow: [partition_table]: evil", "allow: (partition_table): evil"),
        ("allow: [here]", "allow: (here)"),
    ],
)
def test_an_override_stays_as_it_is_typed_and_nothing_else_in_brackets(told, said):
    assert chat_message.of_findings("n", [told]).splitlines()[1] == said
