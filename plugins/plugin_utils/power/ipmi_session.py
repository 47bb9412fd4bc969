# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One question to a BMC by pyghmi, in a process of its own (ipmi.py starts it): pyghmi's sessions share sockets and
time-outs within a process, and a second one of the same BMC was seen to fail in the timers of the first.

It is run by its path, so it imports nothing of the collection.
"""

from __future__ import annotations

import json
import sys
import typing as t

# IPMI 2.0, 22.14: Get System GUID (NetFn App).
_APP, _SYSTEM_GUID = 0x06, 0x37
# How long pyghmi waits for the power to be as asked.
_SWITCH_S = 60


def answer(bmc: t.Any, question: str, raw: list[int] | None = None) -> dict[str, t.Any]:
    """Return what a BMC answers to power, off, on, guid, or to raw bytes."""
    if question == "raw" and raw:
        told = bmc.raw_command(netfn=raw[0], command=raw[1], data=raw[2:])
        return {"code": told.get("code"), "error": told.get("error")}
    if question == "guid":
        told = bmc.raw_command(netfn=_APP, command=_SYSTEM_GUID)
        return {"code": told.get("code"), "guid": bytes(told.get("data") or b"").hex(), "error": told.get("error")}
    found: dict[str, t.Any] = bmc.get_power() if question == "power" else bmc.set_power(question, wait=_SWITCH_S)
    return found


def main() -> None:
    """Answer the line of JSON on stdin: {host, port, user, password, question, raw}."""
    asked = json.loads(sys.stdin.readline())
    try:
        from pyghmi.ipmi import command

        place = {"bmc": asked["host"], "port": asked["port"]}
        bmc = command.Command(**place, userid=asked["user"], password=asked["password"])
        found = answer(bmc, asked["question"], asked.get("raw"))
    except ImportError:
        found = {"error": "IPMI needs pyghmi on the controller (requirements.txt)"}
    except Exception as error:  # pyghmi's own, and what it did not foresee of a broken answer
        found = {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
