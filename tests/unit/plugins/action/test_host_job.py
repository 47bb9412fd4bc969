# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the engine is sent with the order to start."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest

from ansible_collections.ssdlab.fleet.plugins.action import host_job
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.compression import unpack

HERE = host_job.ENGINE.name


@pytest.fixture
def start(monkeypatch, tmp_path):
    """`start(has, listed, attach, check)`: (whether each question carried the engine, the answer)."""

    def begin(has, listed, attach=None, check=False):
        action = host_job.ActionModule(SimpleNamespace(check_mode=check), None, None, None, None, None)
        carried = []

        def ask(plan, engine):
            assert plan == "packed"
            data = engine.get("data")
            carried.append(data is not None)
            if data is not None:
                assert hashlib.sha256(unpack(data)).hexdigest() == engine["sha256"]
            if attach or check:
                return {"changed": False, "action": "attach" if attach else "start"}
            known = data is not None and has != "never"
            return {"action": "start" if known or has is True else "send_engine"}

        monkeypatch.setattr(host_job.decision_record, "plan", lambda *_: "packed")
        order = host_job.Order("h", "r", str(tmp_path / "r"), bool(attach), listed)
        return carried, action.start_job(order, ask)

    return begin


@pytest.mark.parametrize(
    ("has", "listed", "carried"),
    [
        # As preflight saw it, so that each host is asked once.
        (True, [HERE], [False]),
        (False, [], [True]),
        (False, ["engine-0.0.1-0f5a3d1c9f11.pyz"], [True]),
        # Nobody looked.
        (True, None, [False]),
        (False, None, [False, True]),
        # What lay there is another file by now, or was never what its name says.
        (False, [HERE], [False, True]),
    ],
)
def test_the_engine_is_sent_where_it_is_not(start, has, listed, carried):
    assert start(has, listed) == (carried, {"action": "start"})


@pytest.mark.parametrize(("attach", "check"), [("running", False), (None, True)])
def test_no_engine_for_a_host_that_starts_nothing(start, attach, check):
    assert start(False, [], attach, check)[0] == [False]


def test_a_host_that_asks_for_ever_fails(start):
    carried, answer = start("never", [HERE])
    assert carried == [False, True] and answer["failed"] and "asks for the engine again" in answer["msg"]
