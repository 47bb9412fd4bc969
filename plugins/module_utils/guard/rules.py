# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's rules: pure, over the facts that its probes read. What is unknown is a refusal.

A new rule is a line in refusals.REFUSALS and one in RULES, and where it needs a new fact, a field of `facts.Facts`.
"""

from __future__ import annotations

import typing as t

from ..drive.entry import Entry
from ..records.guard import Refusal
from ..records.ledger import OwnData
from .facts import WRITING, Facts
from .refusals import ALLOW, OVERWRITE, REFUSALS, UNFINISHED, Text

_MOST_SHOWN = 4


def _not_whole(facts: Facts) -> list[str]:
    if facts.block_backing:
        return [f"its backing_file is the block device {facts.block_backing}"]
    names = {"partition": "%s is a partition", "stacked": "%s is a virtual or stacked device"}
    return [names[facts.kind] % facts.path] if facts.kind in names else []


def _no_capacity(facts: Facts) -> list[str]:
    size = facts.identity.size_bytes
    unknown = [] if size or facts.kind != "drive" else ["unknown" if size is None else f"{size} bytes"]
    return unknown or facts.placeholder


# (code, findings): a rule refuses when it finds something. Order is that of the report.
RULES: tuple[tuple[str, t.Callable[[Facts], t.Iterable[str]]], ...] = (
    ("not_whole_drive", _not_whole),
    ("no_capacity", _no_capacity),
    ("root_disk", lambda facts: facts.system),
    ("mounted", lambda facts: facts.mounts),
    ("swap", lambda facts: facts.swaps),
    ("hibernation", lambda facts: facts.hibernation),
    ("held", lambda facts: facts.holders),
    ("opened", lambda facts: facts.opened),
    ("unseen_users", lambda facts: facts.unseen),
    ("exported", lambda facts: facts.exported),
    ("configured", lambda facts: [*facts.configured, *facts.lines]),
    ("mentioned", lambda facts: facts.mentioned),
    ("partition_table", lambda facts: [*facts.tables, *facts.partitions]),
    ("efi_system_partition", lambda facts: facts.efi),
    ("signature", lambda facts: facts.signatures),
    ("shared_filesystem", lambda facts: facts.cluster),
    ("unsigned_data", lambda facts: facts.unsigned),
    ("evidence", lambda facts: facts.evidence),
    ("shared_namespace", lambda facts: facts.shared),
    ("reserved", lambda facts: facts.reserved),
    ("fabric", lambda facts: facts.fabric),
    ("transport", lambda facts: facts.transport),
    ("removable", lambda facts: facts.removable),
    ("raid_volume", lambda facts: facts.raid_volume),
    ("zoned", lambda facts: facts.zoned),
    ("hard_disk", lambda facts: facts.hard_disk),
    ("sanitize_running", lambda facts: facts.sanitizing),
    ("sanitize_failed", lambda facts: facts.sanitize_failed),
    ("ata_security", lambda facts: facts.ata_security),
    ("opal_locked", lambda facts: facts.opal),
    ("read_only", lambda facts: facts.read_only),
    ("busy", lambda facts: [""] if facts.busy else []),
    ("identity_changed", lambda facts: facts.changed),
    ("untrusted_state", lambda facts: facts.untrusted),
    ("probe_failed", lambda facts: facts.failures),
)
# What lies on a drive. It does not count for what a run of ours left there (own_data).
CONTENT_CODES = ("partition_table", "efi_system_partition", "signature", "unsigned_data")
# What random data of ours may look like.
BY_CHANCE = ("partition_table", "signature")
# What must be the same between plan and run. The kernel name is not: it may change at every boot.
_SAME = ("serial", "wwn", "model", "size_bytes", "logical_block_size_bytes", "backing_file", "backing")


def entry_problem(entry: Entry) -> str | None:
    """Return what is wrong with an entry of ssd_drives, the codes of its `allow` included; None if nothing is."""
    if entry.problem:
        return entry.problem
    lifted = [code for code, text in REFUSALS.items() if text.overridable == ALLOW]
    for code in entry.options.allow:
        if code not in lifted:
            other = REFUSALS[code].overridable if code in REFUSALS else ""
            reason = (
                f"can only be lifted by {other}"
                if other
                else "can't be overridden"
                if code in REFUSALS
                else "is not a code of the guard"
            )
            return "its option allow names {!r}, which {}; allow takes: {}".format(code, reason, ", ".join(lifted))
    return None


def refusals(facts: Facts, label: str | None = None) -> list[Refusal]:
    """Return every reason, from the facts alone, why the drive may not be erased. label: its entry's; None
    without one.
    """
    who = facts.path if label is None else f"{label} ({facts.path})"
    return [
        refusal
        for code, rule in RULES
        for refusal in make_refusals(code, who, list(rule(facts)), _text_of(code, facts.own_data))
    ]


def _text_of(code: str, known: OwnData | None) -> Text:
    """Return the words for a code; known: what the ledger says of the drive."""
    unfinished = known is not None and known.state == WRITING and (known.proved or known.reason)
    if known is None or code != "unsigned_data" or not unfinished:
        return REFUSALS[code]
    reason = f" ({known.reason})" if known.reason else ""
    words = {"run_id": known.run_id, "reason": reason.replace("{", "{{").replace("}", "}}"), "detail": "{detail}"}
    return Text(UNFINISHED.problem.format(**words), UNFINISHED.remedy.format(**words))


def refuse(code: str, label: str, path: str | None, detail: str) -> list[Refusal]:
    """Return a refusal for something that was found outside the rules, in the same words as theirs."""
    return make_refusals(code, f"{label} ({path})" if path else label, [detail])


def compare(expected: t.Any, actual: t.Any, same_boot: bool, who: str = "the drive") -> list[Refusal]:
    """Is a drive still the one that was planned? Both are identities; `diskseq` counts only within one boot. `who`: its
    name for people.
    """
    if not isinstance(expected, t.Mapping) or not isinstance(actual, t.Mapping) or not expected or not actual:
        return make_refusals("identity_changed", who, ["its identity is missing"])
    keys = (*_SAME, "diskseq") if same_boot else _SAME
    changes = [
        f"{key} was {expected.get(key)}, is {actual.get(key)}" for key in keys if expected.get(key) != actual.get(key)
    ]
    return make_refusals("identity_changed", "{} ({})".format(who, actual.get("path")), changes)


def ours(known: OwnData | None, run_id: str | None) -> tuple[str, ...]:
    """Return the codes that do not count for a drive of which the ledger says `known`.

    A run that died while it wrote may still go on, and build on what it left: until it is ended, its data is for no
    other run to erase. What it keeps as evidence does not keep itself from going on, but a new run of the same id.
    """
    if known is None:
        return ()
    own = run_id == known.run_id
    proved = known.proved and (known.state != WRITING or own)
    return (*(("unsigned_data",) if proved else ()), *(("evidence",) if own and not known.removed else ()))


def without(found: t.Sequence[Refusal], codes: t.Collection[str]) -> list[Refusal]:
    """Return refusals without those of these codes; why `retired` lifts nothing goes with the last that it would
    lift.
    """
    left = [refusal for refusal in found if refusal.code not in codes]
    if len(left) == len(found):
        return left
    wanted = any(refusal.code in (*CONTENT_CODES, "configured") for refusal in left)
    return [refusal for refusal in left if wanted or refusal.code != "not_given_up"]


def lifted_codes(entry: Entry | None, known: OwnData | None = None) -> tuple[str, ...]:
    """Return the codes that the entry overrides; `known`: what the ledger says of the drive. An entry that is not right
    overrides nothing.
    """
    if entry is None or entry_problem(entry) is not None:
        return ()
    given = entry.options
    overwrite = [code for code, text in REFUSALS.items() if text.overridable == OVERWRITE]
    released = known is not None and given.release_evidence == known.run_id
    return (*given.allow, *(overwrite if given.ssd_overwrite_data else ()), *(("evidence",) if released else ()))


def make_refusals(code: str, who: str, details: t.Sequence[str], text: Text | None = None) -> list[Refusal]:
    """One refusal with all its findings; none without a finding. text: other words than the code's own."""
    if not details:
        return []
    shown = list(dict.fromkeys(details))
    more = [f"{len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    text = text or REFUSALS[code]
    return [Refusal(code, f"{who}: {text.problem.format(detail='; '.join(shown[:_MOST_SHOWN] + more))}. {text.remedy}")]
