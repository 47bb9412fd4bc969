# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of reason for which a drive or a test is invalid, error or not_tested, by its words: its cause in few
words, what it means, and what to do. docs/invalid.md is made of it; a new reason without a kind fails a test. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.checks.table import CODES
from ...module_utils.guard.refusals import REFUSALS
from ...module_utils.measure import disturbances
from ...module_utils.measure.disturbances import TITLES
from ...module_utils.measure.kernel_faults import OF_HOST

ANYTHING = "…"
# Codes for which preflight leaves drives out, beside those of the guard.
FURTHER_CODES = {
    "wrong_list": (
        "another drive of the host's list is in use (root, mounted, swap, held …), so the list may be that of another "
        "host, and this entry overrides the guard",
        "Mend or remove the entry of the drive in use; or remove the override if the list is right.",
    ),
    "ssd_approved_plan": (
        "the approved plan does not have this drive, or not as it is by now",
        "Look at the differences that plan mode prints, and have the new plan approved; or leave the drive out.",
    ),
    "older_ledger": (
        "the controller knows a later run on this drive than the host's ledger does: ssd_state_dir was lost or "
        "restored from a backup. Where that run kept the drive as evidence it is refused, else it is a warning",
        "Put the newest state folder back; or, once the drive is examined, add release_evidence with that run's id to "
        "its entry.",
    ),
    "quarantined": (
        "the drive failed several nights in a row (ssd_quarantine_after)",
        "Repair or replace it, then release it with release.yml.",
    ),
}
_CODE = re.compile(r"[^:]*: (?:drive [^:]*: |the approved plan leaves it out: )?([a-z_]+)(?=[:( ])")


class ReasonKind(t.NamedTuple):
    """One kind of reason. says: its words, ANYTHING for what differs; cause: in a headline. general: any other kind
    that fits too tells more. coded: the words go on with a code, which the headline names.
    """

    verdict: str
    says: str
    cause: str
    means: str
    remedy: str
    general: bool = False
    coded: bool = False


_STOP_LOAD = "Stop what else runs on the host; measure again."
_MEASURE_AGAIN = "Measure again (ssd_run_id is a new one)."
_NEXT_TEST = "See why that test does not count, and measure both again."
# Of a cause that disturbs rounds: what it means, and what to do.
_OF_ROUNDS = {
    disturbances.HOST_LIMITED: (
        "fio had to wait for a CPU, or had none left: the rates would be the host's, not the drive's",
        "Stop other load on the host (backups, virtual machines, agents). Where fio's threads use a whole CPU each, "
        "give the cell more threads or larger blocks.",
    ),
    disturbances.OTHER_IO: (
        "another process, host or namespace used the drive at the same time",
        "Find and stop it (iotop, lsof, fstrim timers, monitoring that reads the drive).",
    ),
    disturbances.DISCARDED: (
        "somebody gave blocks of the drive back (trim), so it was partly as fresh as after a purge",
        "Stop what trims it (fstrim.timer, blkdiscard).",
    ),
    disturbances.NOT_FILLED: (
        "fewer I/Os were in flight than the test asks for",
        "Raise queue/nr_requests or device/queue_depth, or ask for less; the sentence names the limit.",
    ),
    disturbances.IDLE_GAP: (
        "the drive had nothing to do between two cells, and may have recovered in the meantime",
        "Where the sentence names a wait for a self-test: have smartd or cron test drives at other times. Else stop "
        "what runs on the host.",
    ),
    disturbances.SUSPENDED: ("the host slept while it measured", "Keep the host from suspending."),
    "link": (
        "the drive's link fell to a lower speed or width",
        "Seat the drive again, or try it in another slot: where the fault goes along, it is the drive's.",
    ),
    "throttled": (
        "the drive slowed down because of heat; mostly it is the airflow",
        "Cool it: fans, blanks, neighbours. A criterion on throttled_pct makes it count against the drive.",
    ),
    "pcie_errors": (
        "errors on the way to the drive that its link did not correct",
        "Seat the drive again, or try it in another slot.",
    ),
    "settings": (
        "a setting of the host that bears on the figures changed while it was measured",
        "Stop what sets it back (tuned, a configuration agent).",
    ),
    "self_test": (
        "the drive was testing itself while it was measured, which somebody else had started",
        "Have smartd or cron test drives at other times; a run waits for a self-test that is under way.",
    ),
}

_INVALID = (
    *(
        ReasonKind("invalid", f"{TITLES[cause]} in … rounds", TITLES[cause], *told)
        for cause, told in _OF_ROUNDS.items()
    ),
    ReasonKind("invalid", "its link fell", TITLES["link"], *_OF_ROUNDS["link"]),
    ReasonKind("invalid", "its link of … can no longer be seen", TITLES["link"], *_OF_ROUNDS["link"]),
    ReasonKind(
        "invalid",
        "is unknown: too few rounds are left (",
        "host delayed I/Os",
        "the host held I/Os up in so many rounds that no percentile is left; the rates count all the same",
        _STOP_LOAD,
    ),
    ReasonKind(
        "invalid",
        "is unknown: … I/Os in the window are too few",
        "too few I/Os for a percentile",
        "fewer than 10 I/Os lie beyond the percentile, so one slow I/O more or less moves it anywhere",
        "Measure longer (runtime_s, rounds), or ask for a lower percentile. Plan mode warns of it.",
    ),
    ReasonKind(
        "invalid",
        "steady state was not attained",
        "not steady",
        "no window of rounds was as even as the test asks for; the sentence says by how much",
        "Look at the curve: a drive that still falls needs more rounds (rounds.max), one that jumps may be bad.",
    ),
    ReasonKind(
        "invalid",
        "interrupted: the host job failed with",
        "host job failed",
        "the job met what it can't go on from, such as a full disk, before the test was done",
        "Mend what it names, then go on with the run; a Python exception in it is ours: please report it.",
    ),
    ReasonKind(
        "invalid",
        "interrupted",
        "stopped",
        "the run was stopped (stop.yml, a reboot, a killed job) before the test was done",
        "Go on with the same run: qualify.yml with its ssd_run_id.",
    ),
    ReasonKind(
        "invalid",
        "no round was completed",
        "no round completed",
        "a limit (rounds.time_limit_s) ended the test before its first round did",
        "Raise the limit, or shorten the cells.",
    ),
    ReasonKind(
        "invalid",
        "of the fill, regardless of fio's result",
        "fill not complete",
        "the kernel counted fewer writes than the fill consists of, so the drive is not preconditioned",
        "Look at the kernel's log and the drive's health; report it if both are clean.",
    ),
    ReasonKind(
        "invalid",
        "power state",
        "power state changed",
        "the drive or its PCI function went to a state with less power",
        "Look for what saves power (nvme set-feature, runtime power management); tune sets it.",
    ),
    ReasonKind(
        "invalid",
        "its link power management changed",
        "power state changed",
        "the link's power management changed while it was measured",
        "Stop what sets it (tlp, a configuration agent).",
    ),
    ReasonKind(
        "invalid",
        "it was above its critical temperature",
        "too hot",
        "the drive was hotter than it may be",
        "Cool it: fans, blanks, neighbours.",
    ),
    ReasonKind(
        "invalid",
        "it was throttled by thermal management",
        TITLES["throttled"],
        *_OF_ROUNDS["throttled"],
    ),
    ReasonKind("invalid", "PCI Express errors rose", TITLES["pcie_errors"], *_OF_ROUNDS["pcie_errors"]),
    ReasonKind(
        "invalid",
        "write cache",
        "write cache not as asked",
        "the drive's write cache is not as the test needs it, changed on the way, or cannot be told",
        "Switch it by hand (nvme set-feature, hdparm -W, sdparm), or choose a test that does not need it.",
    ),
    ReasonKind(
        "invalid",
        "the loop device uses the page cache",
        "page cache measured",
        "memory was measured, not a drive",
        "Attach the loop device with --direct-io=on.",
    ),
    ReasonKind(
        "invalid",
        "the inventory wants",
        "vendor's setting differs",
        "a setting of the vendor's tool is not as the inventory has it",
        "Run vendor.yml, with the power cycle that it asks for.",
    ),
    ReasonKind(
        "invalid",
        "neither purged nor measured",
        "host not tuned",
        "the host could not be set as planned, so nothing that is measured would count",
        "Mend what the sentence names, or leave that setting out (tune_…_enabled: false).",
    ),
    ReasonKind(
        "invalid",
        "the host was not tuned as planned",
        "host not tuned",
        "a setting was not, or no longer, as planned",
        "Stop what sets it back, or leave that setting out (tune_…_enabled: false).",
    ),
    ReasonKind(
        "invalid",
        "did not complete its purge and fill",
        "the test before failed",
        "this test builds on what the one before it leaves, and that is unknown",
        _NEXT_TEST,
    ),
    ReasonKind(
        "invalid",
        "not measured: in test … before it",
        "the test before failed",
        "in the test before, somebody gave back what this one builds on",
        _NEXT_TEST,
    ),
    ReasonKind(
        "invalid",
        "it builds on the drive state that test … leaves",
        "the test before failed",
        "this test goes on from another's state, and that one does not count",
        _NEXT_TEST,
    ),
    ReasonKind(
        "invalid",
        "no array was made",
        "no array",
        "a member of the array was missing, refused or failed its own tests",
        "Mend that drive, or take the array's test out of the plan.",
    ),
    ReasonKind(
        "invalid",
        "bytes were written to",
        "other I/O",
        "the members of the array got other amounts than the array was given",
        _OF_ROUNDS[disturbances.OTHER_IO][1],
    ),
    ReasonKind(
        "invalid",
        "is missing; install",
        "a tool is missing",
        "the host lacks a program that the test needs",
        "Install the package that the sentence names.",
    ),
    ReasonKind(
        "invalid",
        "the kernel does not count the drive's writes",
        "writes not counted",
        "without the kernel's counts nobody can tell whether a file system may be wiped",
        "Write 1 to queue/iostats of the drive.",
    ),
    ReasonKind(
        "invalid",
        "to take threads and depth from",
        "no sweep to take the load from",
        "the test takes its threads and depth from a sweep that has no such cell",
        "Put the sweep's test before it in ssd_plan, and see why that has no figure.",
    ),
    ReasonKind(
        "invalid",
        "so its figures can't be computed",
        "journal damaged",
        "the journal of the test is not whole",
        "The raw results are kept; look at the host's disk, and measure again.",
    ),
    ReasonKind(
        "invalid",
        "too few peers",
        "too few peers",
        "the criterion is relative, and too few drives are like this one",
        "Qualify more of the model together, or give an absolute limit.",
    ),
    ReasonKind(
        "invalid",
        "baseline",
        "no baseline",
        "the criterion is relative to an earlier run, which has no such figure of this drive",
        "Name another run in baseline, or run report.yml of that one first.",
    ),
    ReasonKind(
        "invalid",
        "several drives with the serial",
        "serial not unique",
        "two drives of the baseline have this serial number",
        "Name the drive by wwn or by_id.",
    ),
    ReasonKind(
        "invalid",
        "the fleet was not compared",
        "fleet not compared",
        "a relative criterion needs the comparison of the fleet",
        "Install what the report says is missing (pandas, SciPy), and run report.yml again.",
    ),
    ReasonKind(
        "invalid",
        "has no figure (",
        "no figure",
        "the test ran, and gave no figure for a criterion",
        "Look at the test's remarks for what its host could not tell; take out the criterion if nothing counts it.",
    ),
    ReasonKind(
        "invalid",
        "but preflight saw",
        "another drive was measured",
        "the model of the drive's record is not that which preflight saw",
        "Check which drive was measured.",
    ),
    ReasonKind(
        "invalid",
        "its record has no model",
        "model unknown",
        "it is unknown whether criteria for models apply",
        "Run collect.yml again; see why the drive's identity is missing.",
    ),
    ReasonKind(
        "invalid",
        "the measurement is invalid, and the host gave no reason",
        "no reason given",
        "the host's record has no reason",
        "Run collect.yml again, and report it.",
    ),
    ReasonKind(
        "invalid",
        "not all that was to be written was read back",
        "not all read back",
        "the integrity test ended before it had read back all that it wrote, so nothing is proved of the rest",
        "See the reason beside it; measure again.",
    ),
    ReasonKind(
        "invalid",
        "somebody else wrote",
        "other I/O",
        "another process, host or namespace wrote to the drive while its blocks were to keep what the test wrote",
        _OF_ROUNDS[disturbances.OTHER_IO][1],
    ),
    ReasonKind(
        "invalid",
        "is unknown",
        "something is unknown",
        "what would show a wrong figure cannot be observed, and ssd_unknown_causes is disturb",
        "Make it observable, as the sentence says, or leave ssd_unknown_causes at warn.",
        general=True,
    ),
    ReasonKind(
        "invalid",
        "the kernel does not count writes to this drive",
        "writes not counted",
        "whether the fill was complete is unknown, and ssd_unknown_causes is disturb",
        "Write 1 to queue/iostats, or leave ssd_unknown_causes at warn.",
    ),
)

_ERROR = (
    ReasonKind(
        "error",
        OF_HOST,
        "host fault",
        "the kernel reset what drives share (an HBA, a switch, a bus), or reset or lost several drives within a "
        "minute; none of it counts against the drive",
        "Look at the HBA, the cables, the backplane, the power supply and the HBA's firmware; then measure again. One "
        "sick drive can do it too: kernel_event of the journal shows which timed out first.",
    ),
    ReasonKind(
        "error",
        "its self-test…did not end within",
        "self-test does not end",
        "the drive tests itself, which somebody else had started, for longer than it says that it takes",
        "Wait for it, or end it with the command that the sentence names, and start again.",
    ),
    ReasonKind(
        "error",
        "its self-test…stood still for",
        "self-test does not end",
        "a self-test that somebody else had started makes no progress",
        "End it with the command that the sentence names, and start again; if it goes on, look at the drive's health.",
    ),
    ReasonKind(
        "error",
        "hangs",
        "the drive hangs",
        "the drive gave no answer for minutes; fio or a command waits for it in the kernel",
        "Look at the kernel's log; the run kept the drive's own logs. It counts for quarantine. A power cycle may "
        "bring it back.",
    ),
    ReasonKind(
        "error",
        "no answer",
        "the drive hangs",
        "a step that asks the drive did not end in time",
        "Look at the kernel's log and the drive's health.",
    ),
    ReasonKind(
        "error",
        "fio ended with exit code",
        "fio failed",
        "fio could not do the I/O, or could not run; the sentence has its last words",
        "An I/O error is the drive's: look at the kernel's log. Anything else is the job's or the host's.",
    ),
    ReasonKind(
        "error",
        "fio was killed",
        "fio was killed",
        "the host ran out of memory, or somebody killed fio",
        "Look at the kernel's log; free memory; measure again.",
    ),
    ReasonKind(
        "error",
        "can still be read after",
        "purge not verified",
        "the purge reported success, and blocks written before it can still be read",
        "Try another purge_method; report the drive to its maker.",
    ),
    ReasonKind(
        "error",
        "refused: ",
        "refused by the guard",
        "the last look before a write found the drive in use, or another one",
        "The code is explained in [wrong-drives.md](wrong-drives.md#what-lifts-a-code).",
        coded=True,
    ),
    ReasonKind(
        "error",
        "names no test of this drive's plan",
        "criterion without a test",
        "a criterion names a test that the plan does not have",
        "Mend the name, or take out the criterion.",
    ),
    ReasonKind(
        "error",
        "has no figure to compare with",
        "criterion without a figure",
        "the test that a criterion names gives no such metric",
        "Mend the metric or the cell: [the names](report.md#metrics).",
    ),
    ReasonKind(
        "error",
        "criterion ",
        "criterion can't be applied",
        "a criterion of run.json has a wrong form",
        "Mend ssd_criteria of run.json and run report.yml again.",
        general=True,
    ),
    ReasonKind(
        "error",
        "the test ended with an error",
        "a test failed",
        "a purge, a fill or a cell could not be done; the sentence has the tool's own words",
        "Mend what it names, then go on with the run.",
        general=True,
    ),
    ReasonKind(
        "error",
        "ended with an error",
        "the campaign failed",
        "the drive's part of the run ended early, for the reason that follows",
        "Mend what it names, then go on with the run; a Python exception in it is ours: please report it.",
        general=True,
    ),
)

_NOT_TESTED = (
    ReasonKind(
        "not_tested",
        "was left out: …the host is unreachable",
        "host unreachable",
        "Ansible could not connect to the host when the run began",
        "Check that it is up, and ssh to it with the play's user.",
    ),
    ReasonKind(
        "not_tested",
        "was left out: …the host could not be examined",
        "host could not be examined",
        "preflight's look at the host failed",
        "Mend what the sentence names, such as become or a missing Python.",
    ),
    ReasonKind(
        "not_tested",
        "was left out",
        "left out",
        "preflight refused the drive or its host, or the drive is in quarantine",
        "A code before the first colon is one of the table below, or of "
        "[the guard](wrong-drives.md#what-lifts-a-code) or [the checks](checks.md#the-table).",
        coded=True,
        general=True,
    ),
    ReasonKind(
        "not_tested",
        "was refused on",
        "refused",
        "the host job's guard refused the drive before anything was written",
        "The code is explained in [wrong-drives.md](wrong-drives.md#what-lifts-a-code).",
        coded=True,
        general=True,
    ),
    ReasonKind(
        "not_tested",
        "nothing was collected from",
        "not collected",
        "the controller has no result of the host",
        "Run collect.yml with this ssd_run_id.",
    ),
    ReasonKind(
        "not_tested",
        "had not finished when its results were collected",
        "not finished",
        "the host was still measuring",
        "Run watch.yml, then collect.yml, with this ssd_run_id.",
    ),
    ReasonKind(
        "not_tested",
        "was unreachable",
        "host unreachable",
        "the connection to the host was lost",
        "If its job runs on, collect.yml brings the results later.",
    ),
    ReasonKind(
        "not_tested",
        "reported no result for",
        "no result",
        "the host's records lack this drive",
        "See the host's page; go on with the run.",
    ),
    ReasonKind(
        "not_tested",
        "the test has not finished",
        "not finished",
        "the record of the test has no end",
        "Go on with the run: qualify.yml with its ssd_run_id.",
    ),
    ReasonKind(
        "not_tested",
        "no test was planned for this drive",
        "nothing planned",
        "ssd_plan is empty for this drive",
        "Name tests in ssd_plan.",
    ),
    ReasonKind(
        "not_tested",
        "was not judged: ssd_time_budget left out",
        "left out by the time budget",
        "a criterion is on a test for which the budget left no time",
        "Raise ssd_time_budget, or take a shorter plan.",
    ),
    ReasonKind(
        "not_tested",
        "was interrupted",
        "stopped",
        "the run was stopped before the drive's first test was done",
        "Go on with the run: qualify.yml with its ssd_run_id.",
    ),
    ReasonKind(
        "not_tested",
        " failed",
        "host failed",
        "a task failed on the host; the sentence has its message",
        "Mend it, then go on with the run.",
        general=True,
    ),
)
_SLOT = "Seat the drive again, or try it in another slot or with another cable: "
_KEPT = "the drive is kept as evidence until release_evidence in its entry names the run."
_OWN_LOGS = f"Look at the drive's own logs, which the run kept, and update its firmware; replace it: {_KEPT}"
_NO_LIMIT = "No default limit: a remark, unless ssd_health_criteria has one."
# Of each metric of a drive's health that misses a limit: what it means, and what to do.
OF_HEALTH = {
    "media_errors": ("reads failed, or needed more than the drive's own correction", _OWN_LOGS),
    "critical_warnings": ("the drive says of itself that it is read-only, worn out or unreliable", _OWN_LOGS),
    "uncorrected_pcie_errors": (
        "errors between the drive and its slot that the link did not correct",
        f"{_SLOT}where they go along, they are the drive's.",
    ),
    "longest_io_s": (
        "an I/O took so long that an application would have given it up",
        "Look at the kernel's log and the drive's firmware. In virtual machines it may be the hypervisor's storage: "
        "there set ssd_health_criteria to none or a list.",
    ),
    "controller_resets": (
        "the kernel reset the drive's NVMe controller, as a rule because an I/O timed out",
        f"Update the firmware, and try another slot; replace the drive if it goes on: {_KEPT}",
    ),
    "drive_gone": (
        "the kernel lost the drive, or gave it up",
        f"{_SLOT}where the fault goes along, replace the drive. A power cycle may bring it back.",
    ),
    "link_degraded": (
        "the drive's own link ended slower or narrower than it began",
        f"{_SLOT}where the fault goes along, it is the drive's.",
    ),
    "link_resets": (
        "the link of a SATA or SAS drive was reset; mostly it is the cable, the backplane or the HBA",
        f"{_SLOT}interface_crc_errors that rise speak for the cable. {_NO_LIMIT}",
    ),
    "io_timeouts": ("I/Os timed out in the kernel", f"Look at the kernel's log and the drive's firmware. {_NO_LIMIT}"),
    "interface_crc_errors": (
        "data was damaged between the drive and its HBA",
        f"Change the cable or slot. {_NO_LIMIT}",
    ),
    "unsafe_shutdowns": ("the drive lost its power", f"Look at the power supply and the backplane. {_NO_LIMIT}"),
    "corrected_pcie_errors_per_h": (
        "the link to the drive corrects many errors",
        f"{_SLOT}they are no fault of data. {_NO_LIMIT}",
    ),
    "throttled_s": ("the drive slowed down because of heat", f"Cool it: fans, blanks, neighbours. {_NO_LIMIT}"),
    "highest_temperature_c": ("the drive was hot", f"Cool it: fans, blanks, neighbours. {_NO_LIMIT}"),
    "available_spare_pct": ("few spare blocks are left", f"Replace the drive. {_NO_LIMIT}"),
    "percentage_used": ("the drive has used up much of its rated life", f"Replace the drive. {_NO_LIMIT}"),
    "write_amplification": (
        "the drive wrote much more to its flash than the host wrote to it",
        f"Compare it with others of its model and firmware. {_NO_LIMIT}",
    ),
}
WRONG_BLOCKS = "wrong blocks"
# What else fails a drive: the words, the cause in a headline, what it means, what to do.
OTHER_FAILS = (
    (
        "not read back as written",
        WRONG_BLOCKS,
        "the drive returned other data than was written to it",
        f"Never use it; look at `first` of the record for what was found. Others like it and its firmware are suspect "
        f"too; {_KEPT}",
    ),
    (
        "(criterion …)",
        "… below its limit",
        "a figure misses a limit of ssd_criteria",
        "Compare it with the others of its model: where all miss it, look at the host and at the limit.",
    ),
)
KINDS = (*_INVALID, *_ERROR, *_NOT_TESTED)
_PIECES = [kind.says.split(ANYTHING) for kind in KINDS]


def kind_of(reason: str, verdict: str | None = None) -> ReasonKind | None:
    """Return what kind of reason it is; None where no words are known. verdict: only those of that verdict.

    Of several, the one whose words come first: of a sentence the main cause stands in front.
    """
    found = [
        (kind.general, place, number)
        for number, (kind, pieces) in enumerate(zip(KINDS, _PIECES))
        if verdict in (None, kind.verdict) and (place := _place(pieces, reason)) >= 0
    ]
    return KINDS[min(found)[2]] if found else None


def cause_of(reason: str, verdict: str) -> str:
    """Return a reason of a verdict in few words; "" where they are not known."""
    kind = kind_of(reason, verdict)
    if kind is None or not kind.coded:
        return kind.cause if kind else ""
    code = _CODE.match(reason, reason.find(kind.says))
    is_known = code and code[1] in {*REFUSALS, *FURTHER_CODES, *CODES}
    return f"{kind.cause} ({code[1]})" if code and is_known else kind.cause


def _place(pieces: t.Sequence[str], text: str) -> int:
    """Return where the words begin; -1 where they are not there."""
    first, at = text.find(pieces[0]), 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return -1
        at += len(piece)
    return first
