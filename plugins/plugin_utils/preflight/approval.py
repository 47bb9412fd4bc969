# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The approved plan: what a plan would erase, one line a drive, as a file for people and packed for an AWX artifact.
Digests show damage and edits; they do not show who wrote the plan (docs/awx.md).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import typing as t
from types import MappingProxyType

from ...module_utils.core.compression import pack, unpack
from ...module_utils.core.files import write_atomic
from ...module_utils.records.base import Json
from ...module_utils.run.folder import RUN_ID_PATTERN

FORMAT = "ssdlab.fleet approved plan"
SCHEMA_VERSION = 1
# Of ssd_results_dir. No run's folder has that name, as the id of a run begins with a letter or a digit.
FOLDER = "_plans"
MOST_BYTES = 256 * 1024 * 1024
# The parts of a line that have to be as approved.
PARTS = ("identity", "tests", "purge", "overrides")
PLAYBOOKS = {"qualify": "qualify.yml", "purge": "purge.yml", "precondition": "precondition.yml"}
_AGAIN = "make the plan again (ssd_mode=plan)"
# What key=value after -e takes for a path without quotes of its own.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@%:,~-]+")


class Line(t.NamedTuple):
    """What is done to one drive. identity: who it is, in words. tests: {name: digest of its definition}. purge: {test:
    its method and options}. overrides: what the inventory allows beside, as name=value.
    """

    host: str
    drive: str
    identity: str
    tests: t.Mapping[str, str]
    purge: t.Mapping[str, str]
    overrides: t.Sequence[str]

    def digest(self) -> str:
        """Return the line in 12 hexadecimal digits, for people to compare."""
        return hashlib.sha256(_json(self._asdict()).encode()).hexdigest()[:12]

    def part(self, name: str) -> str:
        """One of PARTS in words."""
        value = getattr(self, name)
        if name == "tests":
            return ", ".join(f"{test}@{digest}" for test, digest in value.items()) or "none"
        if name == "purge":
            same = len(set(value.values())) == 1
            return next(iter(value.values())) if same else ", ".join(f"{test}: {how}" for test, how in value.items())
        return ", ".join(value) or "none" if name == "overrides" else str(value)

    def text(self) -> str:
        """Return the line for people, without its host."""
        words = "; ".join(f"{name} {self.part(name)}" for name in PARTS[1:])
        return f"{self.drive}: {self.identity}; {words}; line {self.digest()}"


class ApprovedPlan(t.NamedTuple):
    """left_out: {(host, drive): why} of drives that the plan leaves out; hosts_left_out: of whole hosts."""

    run_id: str
    run_name: str
    step: str
    made: str
    lines: t.Sequence[Line]
    left_out: t.Mapping[tuple[str, str], str] = MappingProxyType({})
    hosts_left_out: t.Mapping[str, str] = MappingProxyType({})

    def by_drive(self) -> dict[tuple[str, str], Line]:
        """Return the lines by (host, drive)."""
        return {(line.host, line.drive): line for line in self.lines}


def dump(plan: ApprovedPlan) -> str:
    """Return the plan as JSON Lines: a head with the SHA-256 of everything, then one line a drive, with its digest."""
    head, rows = _rows(plan)
    lines = [{**row, "digest": line.digest()} for row, line in zip(rows, plan.lines)]
    return _text(head, [*lines, *rows[len(lines) :]])


def sha256(plan: ApprovedPlan) -> str:
    """Return the digest of the whole plan."""
    return str(_rows(plan)[0]["sha256"])


def artifact(plan: ApprovedPlan) -> Json:
    """Return the plan as AWX passes it on (ssd_approved_plan). Without the lines' digests, which do not compress."""
    head, rows = _rows(plan)
    packed = pack(_text(head, rows).encode())
    return {"run_id": plan.run_id, "drives": len(plan.lines), "sha256": head["sha256"], "packed": packed}


def write(plan: ApprovedPlan, results_dir: str) -> str:
    """Write the plan below ssd_results_dir and return its path; each plan has a file of its own. Raises OSError."""
    folder = os.path.join(results_dir, FOLDER)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{plan.run_id}-{sha256(plan)[:12]}.jsonl")
    write_atomic(path, dump(plan))
    return path


def command_text(plan: ApprovedPlan, path: str) -> list[str]:
    """Return what to do with a written plan. path: empty in a job of AWX, whose files are gone when it ends."""
    what = f"this plan ({len(plan.lines)} drive{'s' * (len(plan.lines) != 1)}, SHA-256 {sha256(plan)})"
    if not path:
        return [f"To be approved: {what}. It goes to the job that starts it as the artifact ssd_approved_plan"]
    given = f"ssd_approved_plan={path}" if _PLAIN_PATH.fullmatch(path) else json.dumps({"ssd_approved_plan": path})
    return [
        f"To be approved: {what}: {path}",
        "What it lists, and nothing else, is then erased by this, with the same inventory and other -e as now: "
        f"ansible-playbook {PLAYBOOKS[plan.step]} -i <inventory> -e ssd_mode=destructive -e {shlex.quote(given)}",
    ]


def load(given: t.Any) -> ApprovedPlan | None:
    """Return the plan that ssd_approved_plan gives: the path of a file, or an artifact's content. None where it is
    empty. Raises ValueError, saying why it can't be used.
    """
    if given in (None, "", {}):
        return None
    if isinstance(given, str):
        path = os.path.abspath(os.path.expanduser(given))
        return parse(_read(path), path)
    packed = given.get("packed") if isinstance(given, t.Mapping) else None
    if not isinstance(packed, str):
        raise ValueError("it is neither the path of a file nor the artifact of a plan; " + _AGAIN)
    try:
        content = unpack(packed).decode()
    except ValueError:
        raise ValueError("the plan's artifact is damaged; " + _AGAIN) from None
    return parse(content, "the plan's artifact")


def parse(content: str, source: str) -> ApprovedPlan:
    """Return a plan from what `dump` or `artifact` wrote. Raises ValueError."""
    head_text, *rows_text = content.removesuffix("\n").split("\n")
    try:
        head = json.loads(head_text)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError("no head")
    except ValueError:
        raise ValueError(f"{source} is no plan that ssd_mode=plan wrote; {_AGAIN}") from None
    if head.get("schema_version") != SCHEMA_VERSION:
        known = f"it has schema_version {head.get('schema_version')!r}, and this version reads {SCHEMA_VERSION}"
        raise ValueError(f"{source} was written by another version of the collection: {known}; {_AGAIN}")
    try:
        rows = [json.loads(row) for row in rows_text]
        stated = [row.pop("digest", None) for row in rows]
        given = head.pop("sha256", None)
        if given != _sha256(head, rows):
            raise ValueError("its SHA-256 differs")
        plan = _plan(head, rows)
        wrong = [line.drive for line, digest in zip(plan.lines, stated) if digest not in (None, line.digest())]
        if wrong:
            raise ValueError(f"the digest of the line of drive {wrong[0]} differs")
        return plan
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{source} was changed or damaged after the plan was made: {error}; {_AGAIN}") from None


def _rows(plan: ApprovedPlan) -> tuple[Json, list[Json]]:
    """Return the head, and the rows without digests: the lines come first."""
    rows: list[Json] = [line._asdict() for line in plan.lines]
    rows += [{"host": host, "drive": drive, "left_out": why} for (host, drive), why in plan.left_out.items()]
    rows += [{"host": host, "left_out": why} for host, why in plan.hosts_left_out.items()]
    head = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "run": {"id": plan.run_id, "name": plan.run_name, "step": plan.step},
        "made": plan.made,
        "drives": len(plan.lines),
    }
    return {**head, "sha256": _sha256(head, rows)}, rows


def _text(head: Json, rows: t.Sequence[Json]) -> str:
    return "\n".join(map(_json, [head, *rows])) + "\n"


def _plan(head: Json, rows: t.Sequence[Json]) -> ApprovedPlan:
    run = head["run"]
    if not RUN_ID_PATTERN.fullmatch(run["id"]):
        raise ValueError(f"its run id {run['id']!r} is not valid")
    lines = [Line(**row) for row in rows if "left_out" not in row]
    without = [row for row in rows if "left_out" in row]
    return ApprovedPlan(
        run["id"],
        run["name"],
        run["step"],
        head["made"],
        lines,
        {(row["host"], row["drive"]): row["left_out"] for row in without if "drive" in row},
        {row["host"]: row["left_out"] for row in without if "drive" not in row},
    )


def _read(path: str) -> str:
    try:
        with open(path, "rb") as source:
            content = source.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); check the path, or {_AGAIN}") from None
    try:
        return content[:MOST_BYTES].decode() if len(content) <= MOST_BYTES else ""
    except UnicodeDecodeError:
        return ""  # as every other file that is no plan


def _sha256(head: Json, rows: t.Sequence[Json]) -> str:
    return hashlib.sha256(_text(head, rows).encode()).hexdigest()


# Any order of keys would do, but not another one at each call: tests go in the order in which they run.
_json = functools.partial(json.dumps, separators=(",", ":"), ensure_ascii=True)
