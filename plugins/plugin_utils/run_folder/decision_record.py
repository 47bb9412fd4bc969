# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight decided to erase, with each host's plan, kept on the controller for the tasks of the same play, where
no variable can take its place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import typing as t

from ...module_utils.core.compression import pack
from ...module_utils.core.files import now, read_json, write_atomic
from ...module_utils.records import base
from ...module_utils.records.plan import Plan
from ...module_utils.run import digests

SCHEMA_VERSION = 1
FILE = "decision.json"
# A plan's file has the SHA-256 of its content for a name: an inventory may call a host anything, and the digest of a
# decision leaves out what is not done to drives.
PLANS = "plans"


def play() -> dict[str, t.Any]:
    """Return which ansible-playbook this is. To be called in an action: each runs in a child of that process."""
    pid = os.getppid()
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as source:
            started = source.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # a controller without procfs
        started = ""
    return {"pid": pid, "started": started}


def write(run_folder: str, plans: t.Mapping[str, Plan], mode: str = digests.DESTRUCTIVE) -> None:
    """Keep that this play erases, or only reads, what these plans say, by host, and the plans. Raises OSError."""
    os.makedirs(os.path.join(run_folder, PLANS), exist_ok=True)
    hosts = {host: _write_plan(run_folder, plan, mode) for host, plan in plans.items()}
    record = {"schema_version": SCHEMA_VERSION, "made": now(), "play": play(), "hosts": hosts}
    write_atomic(os.path.join(run_folder, FILE), json.dumps(record, indent=1, sort_keys=True) + "\n")


def plan(run_folder: str, host: str) -> str:
    """Return a host's plan.json as this play's preflight decided on it, packed (core/compression.py). The host job
    holds it to its digest. Raises ValueError, saying why, when there is none.
    """
    try:
        record = read_json(os.path.join(run_folder, FILE))
    except (OSError, ValueError) as error:
        raise ValueError(f"preflight's decision cannot be read: {error}") from error
    if record is None or record.get("play") != play():
        raise ValueError(
            "preflight of this play did not approve anything in this run (ssd_mode=destructive, or read_only)"
        )
    made = record.get("hosts", {}).get(host)
    if made is None:
        raise ValueError("preflight of this play decided nothing for this host")
    try:
        with open(os.path.join(run_folder, PLANS, made["sha256"]), encoding="ascii") as source:
            packed = source.read()
    except OSError as error:
        raise ValueError(f"the plan that preflight approved cannot be read: {error}") from error
    if _sha256(packed) != made["sha256"]:
        raise ValueError("the plan that preflight approved is damaged; run the play again")
    return packed


def _write_plan(run_folder: str, plan: Plan, mode: str) -> dict[str, str]:
    """Return the decision for a plan, and the name of its file. What lies there already is that plan, or is found
    damaged.
    """
    decided = dataclasses.replace(plan, decision=digests.decision(plan, mode))
    packed = pack(json.dumps(base.sparse_json(decided)).encode())
    name = _sha256(packed)
    with open(os.path.join(run_folder, PLANS, name), "w", encoding="ascii") as out:
        out.write(packed)
    return {**base.sparse_json(decided.decision), "sha256": name}


def _sha256(packed: str) -> str:
    return hashlib.sha256(packed.encode("ascii")).hexdigest()


def erases(run_folder: str, host: str) -> bool:
    """Return whether preflight of this play decided to erase drives of a host in this run."""
    try:
        record = read_json(os.path.join(run_folder, FILE))
    except (OSError, ValueError):
        return False
    if record is None or record.get("play") != play():
        return False
    return (record.get("hosts", {}).get(host) or {}).get("mode") == "destructive"
