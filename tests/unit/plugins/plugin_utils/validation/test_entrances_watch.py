# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways in of watch, driven with mutated statuses and outputs (docs/trust.md)."""

from __future__ import annotations

import json
import random

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.run_files import Status
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import progress, remote_status
from ansible_collections.ssdlab.fleet.tests.fixtures import mutations
from ansible_collections.ssdlab.fleet.tests.fixtures.statuses import STATUS
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.validation import test_entrances as entrances

NOW, TRIES, no_process = entrances.NOW, entrances.TRIES, entrances.no_process

STREAM = (
    "\n--- ssdlab.fleet pid\n4711"
    "\n--- ssdlab.fleet stat\n4711 (python3) S 1 {zeros} 7 0"
    "\n--- ssdlab.fleet init\n1 (init) S"
    "\n--- ssdlab.fleet boot\nb"
    "\n--- ssdlab.fleet status\n{status}"
    "\n--- ssdlab.fleet end\n"
)


def seen(text):
    """What watch prints of a host that answers so, beside an honest one; a host that can't be believed has a problem
    instead.
    """
    try:
        answer = remote_status.parse(text, "")
    except remote_status.NoStatus as problem:
        answer = progress.HostView("bad", "", None, 3.0, str(problem))
    except IndexError:  # heard by the sweep as any error of one host
        answer = progress.HostView("bad", "", None, 3.0, "no sense")
    view = answer if isinstance(answer, progress.HostView) else progress.HostView("bad", answer.state, answer.status)
    honest = progress.HostView("good", "running", base.parse(Status, STATUS))
    few, many = progress.lines([view, honest], NOW), progress.lines([view] + [honest] * 25, NOW)
    assert sum("iops (1 of 2)" in line and line.lstrip().startswith("good") for line in few) == 1
    return few + many


def test_statuses_that_watch_reads():
    text = STREAM.format(zeros=" ".join("0" * 17), status="{status}")
    assert not any("no sense" in line for line in seen(text.format(status=json.dumps(STATUS))))
    for seed in mutations.seeds(TRIES["status"]):
        status = json.dumps(mutations.mutated(STATUS, seed))
        assert all(line.isprintable() for line in seen(text.replace("{status}", status))), seed


def test_streams_that_watch_reads():
    whole = STREAM.format(zeros=" ".join("0" * 17), status=json.dumps(STATUS))
    for seed in mutations.seeds(TRIES["stream"]):
        chance = random.Random(seed)
        letters = list(whole)
        for _change in range(chance.randint(1, 30)):
            letters[chance.randrange(len(letters))] = chance.choice(
                ["\n", "\x1b", "{", "]", "9", "-", "\x00", "\u202e", "--- ssdlab.fleet end\n"]
            )
        text = "".join(letters[: chance.randint(1, len(letters))] if seed % 2 else letters)
        assert all(line.isprintable() for line in seen(text)), seed
