# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's part of a run as OCP Test & Validation output, version 2.0 of its specification
(opencomputeproject/ocp-diag-core, json_spec). Pure.

One test run for each drive: the host is the device under test, the drive its hardware, a test a step. Only a missed
criterion is a FAIL, and only where the drive is at fault: one that failed only because of its host ends in an ERROR.
"""

from __future__ import annotations

import json
import typing as t

from ..common import units
from ..common.version import collection_version
from ..run_folder import run_record
from ..validation.record_check import NO_TIME

VERSION = {"major": 2, "minor": 0}
DRIVE_ID, FIRMWARE_ID, HOST_ID = "0", "0", "0"
# (TestStatus, TestResult, DiagnosisType); the specification allows no other pairs of the first two.
OUTCOMES = {
    "pass": ("COMPLETE", "PASS", "PASS"),
    "fail": ("COMPLETE", "FAIL", "FAIL"),
    "invalid": ("ERROR", "NOT_APPLICABLE", "UNKNOWN"),
    "error": ("ERROR", "NOT_APPLICABLE", "UNKNOWN"),
    "not_tested": ("SKIP", "NOT_APPLICABLE", None),
}
# States of a host in which it is at fault that a drive was not tested.
HOST_FAULTS = ("unreachable", "failed")
# The verdict whose fault a host's is then: of a drive that could not be tested, and of one that it slowed down.
LOST, SLOWED = "not_tested", "fail"

Mapping = t.Mapping[str, t.Any]
Times = t.Mapping[str, tuple[str | None, str | None]]


def lines(run: Mapping, drive: Mapping, host: tuple[str | None, str | None], times: Times) -> str:
    """JSON Lines (common/schemas/ocptv.schema.json). run: run.json; drive: as judged; host: its (state, message);
    times: {test: (started, finished)}.
    """
    began = run.get("started") or NO_TIME
    ended = max([finished or started or began for started, finished in times.values()] or [began])
    told: list[tuple[str, Mapping]] = [
        (began, {"schemaVersion": VERSION}),
        (began, {"testRunArtifact": {"testRunStart": _start(run, drive)}}),
    ]
    fault = _of_host(drive, host[0])
    if drive["verdict"] in ("error", "invalid") or fault:
        symptom = {LOST: f"host-{host[0]}", SLOWED: "host-low", "": f"drive-{drive['verdict']}"}[fault]
        told.append(
            (
                began,
                {
                    "testRunArtifact": {
                        "error": {"symptom": symptom, "message": "; ".join(drive["reasons"]) or str(host[1] or "")}
                    }
                },
            )
        )
    for number, test in enumerate(drive["tests"]):
        started, finished = times.get(test["test"], (None, None))
        for last, artifact in _step(test, fault):
            told.append(
                (
                    (finished if last else started) or began,
                    {"testStepArtifact": {"testStepId": str(number), **artifact}},
                )
            )
    status, result, _type = OUTCOMES["error" if fault else drive["verdict"]]
    told.append((ended, {"testRunArtifact": {"testRunEnd": {"status": status, "result": result}}}))
    return "".join(
        json.dumps({**artifact, "sequenceNumber": number, "timestamp": time}, separators=(",", ":"), allow_nan=False)
        + "\n"
        for number, (time, artifact) in enumerate(told)
    )


def _of_host(drive: Mapping, state: str | None) -> str:
    """Return which verdict of the drive is its host's fault: LOST, SLOWED or none, ""."""
    if drive["verdict"] == LOST and state in HOST_FAULTS:
        return LOST
    return SLOWED if drive.get("host_fault") else ""


def _start(run: Mapping, drive: Mapping) -> Mapping:
    known = {"serialNumber": drive["serial"], "version": drive["firmware"], "partNumber": drive["model"]}
    hardware = {"hardwareInfoId": DRIVE_ID, "name": drive["model"] or drive["drive"], "partType": "SSD"}
    hardware.update({"location": drive["drive"], "computerSystem": drive["host"]})
    hardware.update({name: value for name, value in known.items() if value})
    dut: dict[str, t.Any] = {"dutInfoId": HOST_ID, "name": drive["host"], "hardwareInfos": [hardware]}
    if drive["firmware"]:
        dut["softwareInfos"] = [
            {
                "softwareInfoId": FIRMWARE_ID,
                "name": "drive firmware",
                "version": drive["firmware"],
                "softwareType": "FIRMWARE",
            }
        ]
    version = str((run.get("versions") or {}).get("collection") or collection_version())
    parameters = {
        "run_id": run["run"]["id"],
        "run_name": run["run"].get("name") or "",
        "tests": [test["test"] for test in drive["tests"]],
    }
    at_once = max((test.get("parallel_drives") or 0 for test in drive["tests"]), default=0)
    parameters.update({"parallel_drives": at_once} if at_once else {})
    elsewhere = run_record.elsewhere(run)
    parameters.update({"measured_elsewhere": elsewhere} if elsewhere else {})
    return {"name": "ssdlab.fleet", "version": version, "commandLine": "", "parameters": parameters, "dutInfo": dut}


def _step(test: Mapping, fault: str) -> t.Iterator[tuple[bool, Mapping]]:
    """(whether it belongs to the end, artifact) of a test. fault: of _of_host."""
    verdict = "error" if test["verdict"] == fault else test["verdict"]
    status = OUTCOMES[verdict][0]
    # Of what was not tested there is nothing to diagnose.
    told = test["verdict"] if test["verdict"] == LOST else verdict
    type_ = OUTCOMES[told][2]
    yield False, {"testStepStart": {"name": test["test"]}}
    checks = [check for check in test["criteria"] if check.get("value") is not None]
    whole: dict[str, list[Mapping]] = {check["metric"]: [] for check in checks if not check.get("cell")}
    for check in checks:
        if not check.get("cell"):
            whole[check["metric"]] += _validators(check)
    for metric, value in test["metrics"].items():
        if value is not None:
            yield True, {"measurement": _measurement(metric, value, whole.get(metric) or [])}
    for check in checks:
        if check.get("cell"):
            yield (
                True,
                {
                    "measurement": {
                        **_measurement(check["metric"], check["value"], _validators(check)),
                        "metadata": {"cell": check["cell"]},
                    }
                },
            )
    message = "; ".join(test["reasons"])
    if verdict in ("error", "invalid"):
        yield True, {"error": {"symptom": f"test-{verdict}", "message": message}}
    if type_:
        yield (
            True,
            {
                "diagnosis": {
                    "verdict": f"{test['test']}-{told}",
                    "type": type_,
                    "message": message,
                    "hardwareInfoId": DRIVE_ID,
                }
            },
        )
    yield True, {"testStepEnd": {"status": status}}


def _measurement(metric: str, value: float, validators: list[Mapping]) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {"name": metric, "value": value, "unit": units.base(metric), "hardwareInfoId": DRIVE_ID}
    return {**found, "validators": validators} if validators else found


def _validators(check: Mapping) -> list[Mapping]:
    limits = (("min", "GREATER_THAN_OR_EQUAL"), ("max", "LESS_THAN_OR_EQUAL"))
    return [
        {"type": type_, "value": float(check[limit]), "name": str(check["criterion"])}
        for limit, type_ in limits
        if check.get(limit) is not None
    ]
