# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's rules: pure, over the facts that its probes read. What is unknown is a refusal.

A new rule is a line in REFUSALS and one in RULES, and where it needs a new fact, a field of `facts.Facts`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Sequence

from ..drive.entry import label, options, selector_problem
from .facts import WRITING, Facts

Refusal = Dict[str, str]
_MOST_SHOWN = 4


class _Text(NamedTuple):
    """What is wrong (`{detail}` is the finding), what the operator can do, and the option of the drive's entry that
    lifts it ("": none does).
    """

    problem: str
    remedy: str
    overridable: str = ""


_KEEP_OUT = "or take the drive out of ssd_drives."
_ALLOW, _OVERWRITE, _RELEASE = "allow", "ssd_overwrite_data", "release_evidence"
REFUSALS: dict[str, _Text] = {
    "bad_selector": _Text(
        "this entry of ssd_drives is invalid: {detail}",
        'Write it as discover.yml prints it, such as - serial: "22123A4F5B6C".',
    ),
    "not_found": _Text(
        "this host has no such drive{detail}",
        (
            "Compare it with the output of discover.yml (the whole value must match, letter case included), and look "
            "for a drive that dropped off the bus."
        ),
    ),
    "ambiguous": _Text(
        "several block devices match: {detail}", "Name the drive by wwn or by_id instead; discover.yml proposes one."
    ),
    "duplicate": _Text("other entries of ssd_drives name the same drive: {detail}", "Keep only one of them."),
    "no_identity": _Text(
        "it has no serial, wwn, by_id or backing_file of its own{detail}",
        "It cannot be named safely, so it cannot be qualified.",
    ),
    "not_whole_drive": _Text("it is not a whole drive: {detail}", "Name the whole drive; discover.yml lists them."),
    "no_capacity": _Text(
        "its capacity is {detail}", "Check the drive's health and the kernel log; the drive may be in recovery mode."
    ),
    "read_only": _Text(
        "it is read-only: {detail}",
        "Find the cause (worn out, write-protected); if only the kernel's flag is set, clear it with blockdev --setrw.",
    ),
    "root_disk": _Text(
        "the running system is on it: {detail}", "Take the drive out of ssd_drives: this host runs from it."
    ),
    "mounted": _Text(
        "it is mounted: {detail}",
        "Unmount it everywhere, containers included, if nothing on it is needed, " + _KEEP_OUT,
    ),
    "swap": _Text("it is used as swap: {detail}", "Run swapoff on it if the host can do without, " + _KEEP_OUT),
    "hibernation": _Text(
        "the host resumes from it: {detail}",
        "Remove resume= from the kernel command line and the initramfs, " + _KEEP_OUT,
    ),
    "held": _Text(
        "another device is built on it: {detail}",
        "Take that device apart first (vgchange -an, mdadm --stop, cryptsetup close, losetup -d), " + _KEEP_OUT,
    ),
    "busy": _Text(
        "another process holds it exclusively{detail}",
        "Find that process (lsof, fuser -v) and stop it, " + _KEEP_OUT,
    ),
    "opened": _Text("it is open in {detail}", "Stop what uses the drive (a virtual machine, a database), " + _KEEP_OUT),
    "unseen_users": _Text(
        "its users cannot be seen: {detail}",
        "Run the play on the machine itself, as root; if nothing outside can use the drive, set allow: [unseen_users], "
        + _KEEP_OUT,
        _ALLOW,
    ),
    "exported": _Text("it is exported by {detail}", "Remove the export (nvmetcli, targetcli), " + _KEEP_OUT),
    "configured": _Text(
        "the host is configured to use it: {detail}",
        "If nothing on the drive is needed, remove that entry, " + _KEEP_OUT,
    ),
    "mentioned": _Text(
        "a file on the host names it: {detail}",
        (
            "Check what the file is for; remove the line or, if nothing will use the drive through it, set "
            "allow: [mentioned], "
        )
        + _KEEP_OUT,
        _ALLOW,
    ),
    "partition_table": _Text(
        "it has a partition table: {detail}",
        "If nothing on it is needed, empty it by hand (blkdiscard), or set allow: [partition_table], " + _KEEP_OUT,
        _ALLOW,
    ),
    "efi_system_partition": _Text(
        "it has an EFI system partition: {detail}",
        "A system may boot from it; if none does, set allow: [efi_system_partition], " + _KEEP_OUT,
        _ALLOW,
    ),
    "signature": _Text(
        "it holds data: {detail}",
        (
            "If nothing on it is needed, empty it by hand (blkdiscard), or set allow: [signature], and "
            "ssd_overwrite_data: true for the data behind it, "
        )
        + _KEEP_OUT,
        _ALLOW,
    ),
    "shared_filesystem": _Text(
        "it has a file system that several hosts may share: {detail}",
        "Ask who uses it; wipe it there (wipefs --all), " + _KEEP_OUT,
    ),
    "unsigned_data": _Text(
        "it holds data without a signature that no run of ours left: {detail}",
        (
            "If nothing on it is needed (it may be a database's raw device), set ssd_overwrite_data: true in this "
            "drive's entry, "
        )
        + _KEEP_OUT,
        _OVERWRITE,
    ),
    "evidence": _Text(
        "it is kept as evidence: {detail}",
        "Once you have examined it, add release_evidence with that run's id to this drive's entry, " + _KEEP_OUT,
        _RELEASE,
    ),
    "shared_namespace": _Text(
        "more than one controller or host may reach it: {detail}",
        "Detach the namespace from the others (nvme detach-ns), " + _KEEP_OUT,
    ),
    "reserved": _Text(
        "a host has reserved it: {detail}",
        "Find out who holds the reservation and have that host release it, " + _KEEP_OUT,
    ),
    "fabric": _Text(
        "it is not local to this host: {detail}",
        "Only local drives are qualified; take the drive out of ssd_drives.",
    ),
    "transport": _Text(
        "it is not an NVMe, SATA or SAS drive; its transport is {detail}",
        "If it is a drive to test, set allow: [transport], " + _KEEP_OUT,
        _ALLOW,
    ),
    "removable": _Text(
        "it is removable or virtual media: {detail}",
        "If it is a drive to test, set allow: [removable], " + _KEEP_OUT,
        _ALLOW,
    ),
    "raid_volume": _Text(
        "it is a volume of a RAID controller: {detail}",
        "Set the controller to HBA or JBOD mode, so that it shows the drives themselves, " + _KEEP_OUT,
    ),
    "sanitize_running": _Text(
        "a sanitize is running that this run did not start: {detail}",
        "Wait until it ends (nvme sanitize-log), then start again.",
    ),
    "sanitize_failed": _Text(
        "its last sanitize failed: {detail}",
        (
            "Sanitize it by hand until one succeeds; if the drive takes writes all the same, set "
            "allow: [sanitize_failed]."
        ),
        _ALLOW,
    ),
    "ata_security": _Text(
        "ATA security is on: {detail}",
        "Unlock it and disable its password (hdparm --security-disable), or power-cycle it, " + _KEEP_OUT,
    ),
    "opal_locked": _Text(
        "Opal hides its data: {detail}", "Unlock or revert it with its owner's password (sedutil-cli), " + _KEEP_OUT
    ),
    "identity_changed": _Text(
        "it is not the same drive as before: {detail}", "Start over with preflight; never force this one."
    ),
    "locked": _Text(
        "another run or check is using this drive: {detail}", "Wait for it (watch.yml), or end the run (stop.yml)."
    ),
    "not_held": _Text(
        "this job does not hold it{detail}", "Nothing was written. Report this, and attach the run's journal."
    ),
    "purge_unsupported": _Text("this purge cannot be used: {detail}", "Choose another purge_method, or auto."),
    "purge_hits_others": _Text(
        "the purge would erase more than this drive: {detail}", "Choose another purge_method, or auto."
    ),
    "untrusted_state": _Text(
        "this collection's state folders cannot be trusted: {detail}",
        "Others could put records or programs there, or remove what keeps a drive as evidence. Find out who did. "
        "Check in the reports of its runs that the drive need not be kept. Then make root the only writer "
        "(chown root, chmod go-w), or move a damaged file away.",
    ),
    "probe_failed": _Text(
        "it could not be checked: {detail}",
        "Fix that first; the check needs root, util-linux (wipefs, blkid) and a drive that answers.",
    ),
}

# The same code, where the ledger says more: a run of ours that died, or gave up a drive that hung.
_UNFINISHED = _Text(
    "run {run_id} was writing to it and never released it{reason}: {detail}",
    "Resume that run (qualify.yml), or end it (stop.yml; if it has already ended, collect.yml and then cleanup.yml), "
    "each with -e ssd_run_id={run_id}; then what it left may count as ours. Check the kernel log for a drive that "
    "hung. Or set "
    "ssd_overwrite_data: true in this drive's entry, " + _KEEP_OUT,
)


def _not_whole(facts: Facts) -> list[str]:
    if facts.block_backing:
        return [f"its backing_file is the block device {facts.block_backing}"]
    names = {"partition": "%s is a partition", "stacked": "%s is a virtual or stacked device"}
    return [names[facts.kind] % facts.path] if facts.kind in names else []


def _no_capacity(facts: Facts) -> list[str]:
    size = facts.identity.get("size_bytes")
    unknown = [] if size or facts.kind != "drive" else ["unknown" if size is None else f"{size} bytes"]
    return unknown or facts.placeholder


# (code, findings): a rule refuses when it finds something. Order is that of the report.
RULES: tuple[tuple[str, Callable[[Facts], Iterable[str]]], ...] = (
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
    ("configured", lambda facts: facts.configured),
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
# What must be the same between plan and run. The kernel name is not: it may change at every boot.
_SAME = ("serial", "wwn", "model", "size_bytes", "logical_block_size_bytes", "backing_file", "backing")


def entry_problem(entry: Any) -> str | None:
    """What is wrong with an entry of ssd_drives, the codes of its `allow` included; None if nothing is."""
    problem = selector_problem(entry)
    if problem:
        return problem
    lifted = [code for code, text in REFUSALS.items() if text.overridable == _ALLOW]
    for code in options(entry)["allow"]:
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


def refusals(facts: Facts, selector: Any = None) -> list[Refusal]:
    """Every reason, from the facts alone, why the drive may not be erased."""
    who = facts.path if selector is None else f"{label(selector)} ({facts.path})"
    return [
        refusal
        for code, rule in RULES
        for refusal in make_refusals(code, who, list(rule(facts)), _text_of(code, facts.own_data))
    ]


def _text_of(code: str, known: Mapping[str, Any] | None) -> _Text:
    """The words for a code; known: what the ledger says of the drive."""
    unfinished = known is not None and known["state"] == WRITING and (known["proved"] or known.get("reason"))
    if known is None or code != "unsigned_data" or not unfinished:
        return REFUSALS[code]
    reason = " ({})".format(known["reason"]) if known.get("reason") else ""
    words = {"run_id": known["run_id"], "reason": reason.replace("{", "{{").replace("}", "}}"), "detail": "{detail}"}
    return _Text(_UNFINISHED.problem.format(**words), _UNFINISHED.remedy.format(**words))


def refuse(code: str, selector: Any, path: str | None, detail: str) -> list[Refusal]:
    """A refusal for something that was found outside the rules, in the same words as theirs."""
    who = label(selector)
    return make_refusals(code, f"{who} ({path})" if path else who, [detail])


def compare(expected: Any, actual: Any, same_boot: bool, who: str = "the drive") -> list[Refusal]:
    """Is a drive still the one that was planned? Both are identities; `diskseq` counts only within one boot. `who`: its
    name for people.
    """
    if not isinstance(expected, Mapping) or not isinstance(actual, Mapping) or not expected or not actual:
        return make_refusals("identity_changed", who, ["its identity is missing"])
    keys = (*_SAME, "diskseq") if same_boot else _SAME
    changes = [
        f"{key} was {expected.get(key)}, is {actual.get(key)}" for key in keys if expected.get(key) != actual.get(key)
    ]
    return make_refusals("identity_changed", "{} ({})".format(who, actual.get("path")), changes)


def ours(known: Mapping[str, Any] | None, run_id: str | None) -> tuple[str, ...]:
    """The codes that do not count for a drive of which the ledger says `known`: {run_id, state, proved}.

    A run that died while it wrote may still go on, and build on what it left: until it is ended, its data is for no
    other run to erase. What it keeps as evidence does not keep itself from going on, but a new run of the same id.
    """
    if known is None:
        return ()
    own = run_id == known["run_id"]
    proved = known["proved"] and (known["state"] != WRITING or own)
    return (*(("unsigned_data",) if proved else ()), *(("evidence",) if own and not known.get("removed") else ()))


def lifted_codes(selector: Any, known: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The codes that the entry overrides; `known`: what the ledger says of the drive. An entry that is not right
    overrides nothing.
    """
    if entry_problem(selector) is not None:
        return ()
    given = options(selector)
    overwrite = [code for code, text in REFUSALS.items() if text.overridable == _OVERWRITE]
    released = known is not None and given[_RELEASE] == known["run_id"]
    return (*given["allow"], *(overwrite if given[_OVERWRITE] else ()), *(("evidence",) if released else ()))


def make_refusals(code: str, who: str, details: Sequence[str], text: _Text | None = None) -> list[Refusal]:
    """One refusal with all its findings; none without a finding. text: other words than the code's own."""
    if not details:
        return []
    shown = list(dict.fromkeys(details))
    more = [f"{len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    text = text or REFUSALS[code]
    return [
        {
            "code": code,
            "message": "{}: {}. {}".format(
                who, text.problem.format(detail="; ".join(shown[:_MOST_SHOWN] + more)), text.remedy
            ),
        }
    ]
