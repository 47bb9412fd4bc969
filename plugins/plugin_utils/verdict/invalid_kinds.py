# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of reason for which a test or drive is invalid: their words, what they mean, and what to do."""

from __future__ import annotations

from ...module_utils.measure import disturbances
from ...module_utils.measure.disturbances import TITLES
from .reason_kinds import AFTER_CRASH, GO_ON, ReasonKind

_RESEAT = "Reseat the drive, or try it in another slot; a fault that moves with it is the drive's."
_COOL = "Improve the airflow: fans, blanking panels, hot neighbours."
_STOP_LOAD = "Stop what else runs on the host; measure again."
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
        "somebody discarded blocks of the drive (trim), so it was partly as fresh as after a purge",
        "Stop what trims it (fstrim.timer, blkdiscard).",
    ),
    disturbances.NOT_FILLED: (
        "fewer I/Os were in flight than the test asks for",
        "Raise queue/nr_requests or device/queue_depth, whichever the sentence names, or ask for a smaller depth.",
    ),
    disturbances.IDLE_GAP: (
        "the drive had nothing to do between two cells, and may have collected garbage in the meantime",
        "Stop what else runs on the host. Where the sentence names a wait for a self-test, have smartd or cron test "
        "drives at other times.",
    ),
    disturbances.SUSPENDED: ("the host slept while the drive was measured", "Keep the host from suspending."),
    "link": (
        "the drive's link fell to a lower speed or width",
        _RESEAT,
    ),
    "throttled": (
        "the drive slowed down because of heat; mostly it is the airflow",
        f"{_COOL} A criterion on throttled_pct makes it count against the drive.",
    ),
    "pcie_errors": (
        "errors between the drive and its slot that the link did not correct",
        _RESEAT,
    ),
    "settings": (
        "a setting of the host that bears on the figures changed while it was measured",
        "Stop what sets it back (tuned, a configuration agent).",
    ),
    "self_test": (
        "somebody else had started a self-test of the drive, which ran while it was measured",
        "Have smartd or cron test drives at other times; a run waits for a self-test that is under way.",
    ),
}

INVALID = (
    *(
        ReasonKind("invalid", f"…{TITLES[cause]} in … rounds", TITLES[cause], *told)
        for cause, told in _OF_ROUNDS.items()
    ),
    ReasonKind("invalid", "its link fell", TITLES["link"], *_OF_ROUNDS["link"]),
    ReasonKind(
        "invalid",
        "its link of … can no longer be seen",
        TITLES["link"],
        "the kernel no longer tells the link of the drive, as where it has dropped off the bus",
        "See whether the drive is still there (lsblk, the kernel's log). A power cycle may bring it back.",
    ),
    ReasonKind(
        "invalid",
        "… is unknown: too few rounds are left (",
        "host delayed I/Os",
        "the host delayed I/Os in so many rounds that no percentile is left; the rates count all the same",
        _STOP_LOAD,
    ),
    ReasonKind(
        "invalid",
        "… is unknown: … I/Os in the window are too few",
        "too few I/Os for a percentile",
        "fewer than 10 I/Os lie beyond the percentile, so a single slow one would decide it",
        "Measure longer (runtime_s, rounds), or ask for a lower percentile; plan mode tells which can be had.",
    ),
    ReasonKind(
        "invalid",
        "steady state was not attained",
        "not steady",
        "no window of rounds was as even as the test asks for; the sentence says by how much it was not",
        "Look at the curve: one that still falls needs more rounds (rounds.max), one that goes up and down may be bad.",
    ),
    ReasonKind(
        "invalid",
        "interrupted…: the host job failed with",
        "host job failed",
        "the job could not go on, as with a full disk, before the test was done",
        AFTER_CRASH,
    ),
    ReasonKind(
        "invalid",
        "interrupted",
        "stopped",
        "the run was stopped (stop.yml, a reboot, a killed job) before the test was done",
        GO_ON,
    ),
    ReasonKind(
        "invalid",
        "the campaign of … was interrupted",
        "stopped",
        "the run was stopped (stop.yml, a reboot, a killed job) before the drive's tests were done",
        GO_ON,
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
        "the kernel counted only … of the fill, regardless of fio's result",
        "fill not complete",
        "the kernel counted fewer writes than the fill consists of, so the drive is not preconditioned",
        "Look at the kernel's log and the drive's health; report it if both are clean.",
    ),
    ReasonKind(
        "invalid",
        "its …power state changed from",
        "power state changed",
        "the drive or its PCI function went to a state that allows it less power",
        "Stop what saves power (nvme set-feature, tlp, an agent); tune_runtime_power keeps the PCI function awake.",
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
        "the drive was hotter than its maker allows",
        _COOL,
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
        "the drive… write cache",
        "write cache not as asked",
        "the drive's write cache is not as the test needs it, or the drive does not report it",
        "Switch it by hand (nvme set-feature, hdparm -W, sdparm), or choose a test that does not need it.",
    ),
    ReasonKind(
        "invalid",
        "its write cache changed from",
        "write cache not as asked",
        "somebody switched the drive's write cache while it was measured",
        "Stop what sets it (hdparm, sdparm, nvme set-feature, a configuration agent).",
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
        "its … the inventory wants",
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
        "the test before it, …, did not complete its purge and fill",
        "the test before failed",
        "this test builds on what the one before it leaves, and that is unknown",
        _NEXT_TEST,
    ),
    ReasonKind(
        "invalid",
        "in test … before it",
        "the test before failed",
        "somebody discarded blocks during the test before, or an error ended it, and this one builds on what it left",
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
        "… bytes were written to",
        "other I/O",
        "the array's drives took more or less than the array wrote",
        _OF_ROUNDS[disturbances.OTHER_IO][1],
    ),
    ReasonKind(
        "invalid",
        "… is missing; install",
        "a tool is missing",
        "the host lacks a program that the test needs",
        "Install the package that the sentence names.",
    ),
    ReasonKind(
        "invalid",
        "the kernel does not count the drive's writes",
        "writes not counted",
        "the test wipes a file system of its own, and without the kernel's counts nobody can tell that it is that one",
        "Write 1 to /sys/block/<name>/queue/iostats.",
    ),
    ReasonKind(
        "invalid",
        "cell …to take threads and depth from",
        "no sweep to take the load from",
        "the test takes its threads and depth from a sweep that has no such cell",
        "Put the sweep's test before it in ssd_plan; if it is there, see why it has no figure.",
    ),
    ReasonKind(
        "invalid",
        "…, so its figures can't be computed",
        "journal damaged",
        "the journal of the test is not whole",
        "Look at the host's disk, and measure again; the raw results are kept.",
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
        "the baseline … has no valid",
        "no baseline",
        "the criterion is relative to an earlier run, which has no such figure of this drive",
        "Name a run in baseline in which the drive was measured with this test.",
    ),
    ReasonKind(
        "invalid",
        "the baseline … is this run itself",
        "no baseline",
        "the criterion compares the run with itself",
        "Name an earlier run in baseline.",
    ),
    ReasonKind(
        "invalid",
        "the baseline … was measured under other conditions",
        "no baseline",
        "something that bears on the figure has changed since that run; the sentence says what",
        "Name a run in baseline that was measured as this one, or undo the change and measure again.",
    ),
    ReasonKind(
        "invalid",
        "there is no report of the baseline",
        "no baseline",
        "the criterion is relative to an earlier run that has no report",
        "Run report.yml with the ssd_run_id of the baseline, then again with that of this run.",
    ),
    ReasonKind(
        "invalid",
        "a baseline has no figures of single cells",
        "no baseline",
        "the criterion names a cell, and a report keeps the figures of whole tests alone",
        "Leave cell out of the criterion, or give it an absolute limit.",
    ),
    ReasonKind(
        "invalid",
        "run … has several drives with the serial",
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
        "… has no figure (",
        "no figure",
        "the test ran, and gave no figure for a criterion",
        "Look at the test's remarks for what its host could not tell; take out the criterion if nothing counts it.",
    ),
    ReasonKind(
        "invalid",
        "its record has the model …, but preflight saw",
        "another drive was measured",
        "the model of the drive's record is not that which preflight saw",
        "See which drive is in the slot, and whether somebody replaced it during the run; then measure again.",
    ),
    ReasonKind(
        "invalid",
        "its record has no model",
        "model unknown",
        "it is unknown whether criteria for models apply",
        "Run collect.yml with this ssd_run_id again; if it is still missing, look at what the host says of the drive.",
    ),
    ReasonKind(
        "invalid",
        "the measurement is invalid, and the host gave no reason",
        "no reason given",
        "the host's record has no reason",
        "Run collect.yml with this ssd_run_id again; if it is still missing, please report it.",
    ),
    ReasonKind(
        "invalid",
        "not all that was to be written was read back",
        "not all read back",
        "the integrity test ended before it had read back all that it wrote, so nothing is proved of the rest",
        "See the drive's other reasons, and measure again.",
    ),
    ReasonKind(
        "invalid",
        "its controller can't be reset",
        "no reset",
        "somebody uses, or may use, another namespace of the drive's controller, or the drive is no NVMe drive",
        "Stop what the sentence names, or take reset out of the test.",
    ),
    ReasonKind(
        "invalid",
        "its controller can't rest",
        "no low power",
        "somebody uses, or may use, another namespace of the drive's controller, which would keep it awake",
        "Stop what the sentence names, or take low_power out of the test.",
    ),
    ReasonKind(
        "invalid",
        "the drive can't rest",
        "no low power",
        "the drive has no power state without I/O, or does not tell of one; only NVMe drives do",
        "Take low_power out of the test for this drive.",
    ),
    ReasonKind(
        "invalid",
        "the drive does not rest",
        "no low power",
        "the drive did not go to its power state without I/O, or says that it is in another one",
        "Look at what the sentence says; take low_power out of the test for this drive.",
    ),
    ReasonKind(
        "invalid",
        "its log tells nothing of the self-test",
        "no self-test result",
        "the drive tested itself, and keeps no result: nobody knows what it found",
        "Take self-tests out of the plan for this drive.",
    ),
    ReasonKind(
        "invalid",
        "a self-test can't be started",
        "no self-test",
        "the drive has no self-tests, or the host's tools can't read them",
        "Take the test out of the drive's plan, or install what the sentence names.",
    ),
    ReasonKind(
        "invalid",
        "its self-test came to no result",
        "no result of a self-test",
        "the host's record has no result of the self-test that it was to start",
        "See the reason beside it; measure again.",
    ),
    ReasonKind(
        "invalid",
        "the drive was busy with the host's own I/O",
        "drive in use",
        "a drive in service was busy for longer than the test waits (in_service: patience_s)",
        "Run the plan at a quieter time, or raise busy_iops, busy_mib_s or patience_s of the test.",
    ),
    ReasonKind(
        "invalid",
        "not all that was to be read was read",
        "not all read",
        "the scrub ended before it had read its part of the drive",
        "See the drive's other reasons, and measure again.",
    ),
    ReasonKind(
        "invalid",
        "somebody else wrote, or the memory erred",
        "other I/O",
        "what the host's record has of the blocks does not show whether the drive changed them",
        "Measure again, with nothing else that uses the drive.",
    ),
    ReasonKind(
        "invalid",
        "…; but somebody else",
        "other I/O",
        "another process, host or namespace wrote to the drive, so the wrong blocks may be its doing",
        _OF_ROUNDS[disturbances.OTHER_IO][1],
    ),
    ReasonKind(
        "invalid",
        "…is unknown",
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
        "Write 1 to /sys/block/<name>/queue/iostats, or leave ssd_unknown_causes at warn.",
    ),
)
