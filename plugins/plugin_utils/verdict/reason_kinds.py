# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kind of reason is, and those of error and not_tested: what the words of a reason mean, and what to do."""

from __future__ import annotations

import typing as t

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


class ReasonKind(t.NamedTuple):
    """One kind of reason. says: its words from the beginning, ANYTHING for what differs; cause: in a headline. general:
    any other kind that fits too tells more. coded: a code follows the words, which the headline names.

    A name stands only where says has ANYTHING, so whatever a drive or a test is called, it is no other reason. Words
    behind a leading ANYTHING are several, as no name has blanks.
    """

    verdict: str
    says: str
    cause: str
    means: str
    remedy: str
    general: bool = False
    coded: bool = False


GO_ON = "Go on with the run: qualify.yml with its ssd_run_id."
AFTER_CRASH = f"Mend what the sentence names. {GO_ON} A Python exception without a cause is ours: please report it."

ERROR = (
    ReasonKind(
        "error",
        f"…{OF_HOST}",
        "host fault",
        "the kernel reset what drives share (an HBA, a switch, a bus), or reset or lost several drives within a "
        "minute; none of it counts against the drive",
        "Look at the HBA, the cables, the backplane, the power supply and the HBA's firmware; then measure again. One "
        "sick drive can do it too: the kernel_event lines of the journal show which timed out first.",
    ),
    ReasonKind(
        "error",
        "…memory errors that it could not correct",
        "the host's memory erred",
        "blocks were wrong, and the host's memory erred meanwhile, which may have changed them on the way",
        "Replace the memory module that EDAC or the host's BMC names; test the drive again, best in another host.",
    ),
    ReasonKind(
        "error",
        "… drives of … have wrong blocks",
        "wrong blocks on several drives",
        "several drives of a host returned other data than was written to them, which what they share may have done",
        "Look at the host's memory, HBA, cables and backplane, and test one of the drives in another host: what is "
        "wrong there too is the drive's. A bad batch of drives looks the same.",
    ),
    ReasonKind(
        "error",
        "…: its self-test…did not end within",
        "self-test does not end",
        "a self-test that somebody else had started takes longer than the drive says that it does",
        "Wait for it, or end it with the command that the sentence names, and start again.",
    ),
    ReasonKind(
        "error",
        "…: its self-test…stood still for",
        "self-test does not end",
        "a self-test that somebody else had started makes no progress",
        "End it with the command that the sentence names, and start again; if it goes on, look at the drive's health.",
    ),
    ReasonKind(
        "error",
        "…: its … self-test aborted: ",
        "self-test aborted",
        "something ended the drive's self-test before it was done: the sentence says what",
        "Find who did it (a reset, a format, a tool of the vendor), and start again.",
    ),
    ReasonKind(
        "error",
        "…: its … self-test unknown: ",
        "no result of a self-test",
        "the drive's log has a result that the standard does not know",
        "Look at the log (nvme self-test-log, smartctl -l selftest), and start again.",
    ),
    ReasonKind(
        "error",
        "…: the drive did not begin a self-test",
        "self-test not begun",
        "the drive did not take the command, or its log has nothing of it",
        "Start one by hand with the command that the sentence names, and look at the drive's health.",
    ),
    ReasonKind(
        "error",
        "…: its controller was not reset",
        "reset failed",
        "nvme reset ended with an error: the sentence says which; the drive may be gone",
        "Look at the kernel's log and whether the drive is still there; a power cycle may bring it back.",
    ),
    ReasonKind(
        "error",
        "…: the drive… hangs",
        "the drive hangs",
        "the drive gave no answer for minutes; fio or a command waits for it in the kernel",
        "Look at the kernel's log; the run kept the drive's own logs. It counts for quarantine. A power cycle may "
        "bring it back.",
    ),
    ReasonKind(
        "error",
        "…: no answer",
        "the drive hangs",
        "a step that asks the drive did not end in time",
        "Look at the kernel's log and the drive's health; a power cycle may bring it back.",
    ),
    ReasonKind(
        "error",
        "…: fio ended with exit code",
        "fio failed",
        "fio could not do the I/O, or could not run; the sentence has its last words",
        "An I/O error is the drive's: look at the kernel's log. Anything else is the test's or the host's.",
    ),
    ReasonKind(
        "error",
        "…: fio was killed",
        "fio was killed",
        "the host ran out of memory, or somebody killed fio",
        "Look at the kernel's log; free memory; measure again.",
    ),
    ReasonKind(
        "error",
        "… can still be read after",
        "purge not verified",
        "the purge reported success, and blocks written before it can still be read",
        "Try another purge_method. Do not trust this one on the model: report it to the maker.",
    ),
    ReasonKind(
        "error",
        "the test ended with an error…: refused: ",
        "refused by the guard",
        "the last look before a write found the drive in use, or another one",
        "The code is explained in [refusals.md](refusals.md).",
        coded=True,
    ),
    ReasonKind(
        "error",
        "… names no test of this drive's plan",
        "criterion without a test",
        "a criterion names a test that the plan does not have",
        "Mend the name, or take out the criterion.",
    ),
    ReasonKind(
        "error",
        "… has no figure to compare with",
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
        "the power cuts of … ended early",
        "power cuts ended early",
        "the host did not come back after a power cut, or its BMC did not do as it was told; the sentence says which",
        "Look at the host's console and the BMC's log, have it boot, and start the run again with this ssd_run_id "
        "([power cuts](power-cut.md#when-something-goes-wrong)).",
    ),
    ReasonKind(
        "error",
        "the test ended with an error",
        "a test failed",
        "a purge, a fill or a cell could not be done; the sentence has the tool's own words",
        f"Mend what the sentence names. {GO_ON}",
        general=True,
    ),
    ReasonKind(
        "error",
        "the campaign of … ended with an error",
        "the campaign failed",
        "the drive's part of the run ended early, for the reason that follows",
        AFTER_CRASH,
        general=True,
    ),
)

NOT_TESTED = (
    ReasonKind(
        "not_tested",
        "… on … was left out: …the host is unreachable",
        "host unreachable",
        "Ansible could not connect to the host when the run began",
        "Check that it is up, and ssh to it with the play's user.",
    ),
    ReasonKind(
        "not_tested",
        "… on … was left out: …the host could not be examined",
        "host could not be examined",
        "preflight's look at the host failed",
        "Mend what the sentence names, such as become or a missing Python.",
    ),
    ReasonKind(
        "not_tested",
        "… on … was left out: ",
        "left out",
        "preflight refused the drive or its host, or the drive is in quarantine",
        "A code before the first colon is one of the table below, or of "
        "[the guard](refusals.md#of-the-guard) or [the checks](checks.md#the-table).",
        coded=True,
        general=True,
    ),
    ReasonKind(
        "not_tested",
        "… was refused on",
        "refused",
        "the host job's guard refused the drive before anything was written",
        "The code is explained in [refusals.md](refusals.md).",
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
        "… had not finished when its results were collected",
        "not finished",
        "the host was still measuring",
        "Run watch.yml, then collect.yml, with this ssd_run_id.",
    ),
    ReasonKind(
        "not_tested",
        "… was unreachable",
        "host unreachable",
        "the connection to the host was lost",
        "If its job runs on, collect.yml brings the results later.",
    ),
    ReasonKind(
        "not_tested",
        "… reported no result for",
        "no result",
        "the host's records lack this drive",
        f"See the host's page of the report. {GO_ON}",
    ),
    ReasonKind(
        "not_tested",
        "the test has not finished",
        "not finished",
        "the record of the test has no end",
        GO_ON,
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
        "… was not judged: ssd_time_budget left out",
        "left out by the time budget",
        "a criterion is on a test for which the budget left no time",
        "Raise ssd_time_budget, or take a shorter plan.",
    ),
    ReasonKind(
        "not_tested",
        "the campaign of … was interrupted",
        "stopped",
        "the run was stopped before the drive's first test was done",
        GO_ON,
    ),
    ReasonKind(
        "not_tested",
        "the run failed on",
        "host failed",
        "the host's part of the run failed; the sentence says why",
        f"Mend it. {GO_ON}",
    ),
)
