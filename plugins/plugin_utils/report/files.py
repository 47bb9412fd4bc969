# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""summary.json, results.csv and junit.xml from a judgement. Pure: each function returns the file's text."""

from __future__ import annotations

import csv
import io
import json
import re
import typing as t
from xml.etree import ElementTree

from ..common import schema as schemas
from ..gate import text as texts
from ..results import fill

SCHEMA_VERSION = 1
METRIC = re.compile(schemas.load("results")["$defs"]["metric"]["pattern"].rstrip("$"))
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
CSV_COLUMNS = (
    "run_id host drive serial model firmware drive_verdict test verdict outcome attempt rounds tracked_cell tracked_metric"
    " average range_ratio slope_ratio purge_method purge_class precondition_passes precondition_block_size_bytes precondition_data"
    " precondition_bandwidth_bytes_per_s precondition_kernel_bytes_written started finished reasons"
).split()
# JUnit has no word for these: a test that cannot be trusted is an error, one that was not run is skipped.
JUNIT_ELEMENT = {"fail": "failure", "error": "error", "invalid": "error", "not_tested": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Mapping = t.Dict[str, t.Any]
Records = t.Dict[t.Tuple[str, str, str], Mapping]


def summary(run: Mapping, judgement: Mapping) -> str:
    """summary.json (plugin_utils/common/schemas/summary.schema.json)."""
    about = {"id": run["run"]["id"], "name": run["run"]["name"], "started": run.get("started")}
    content = {"schema_version": SCHEMA_VERSION, "run": about, "verdicts": judgement["verdicts"], "drives": judgement["drives"]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def csv_text(run: Mapping, judgement: Mapping, records: Records) -> str:
    """results.csv: one row for each drive and test, then a column for each metric that any test has (units in the names).

    `records`: the test records by (host, drive, test).
    """
    # Only what may be the name of a figure (results.schema.json) becomes a column; none is called like a column that is there already.
    metrics = sorted({name for drive in judgement["drives"] for test in drive["tests"] for name in test["metrics"] if METRIC.fullmatch(name)})
    out = io.StringIO()
    writer = csv.DictWriter(out, [*CSV_COLUMNS, *metrics], lineterminator="\n", quoting=csv.QUOTE_ALL, extrasaction="ignore")
    writer.writeheader()
    for drive in judgement["drives"]:
        for test in drive["tests"] or [{"test": "", "verdict": drive["verdict"], "reasons": drive["reasons"], "metrics": {}}]:
            record = records.get((drive["host"], drive["drive"], test["test"]), {})
            row = {**test["metrics"], **_row(run, drive, test, record)}
            writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _row(run: Mapping, drive: Mapping, test: Mapping, record: Mapping) -> Mapping:
    window = (record.get("steady_state") or [{}])[0]
    purge, done = record.get("purge") or {}, fill.kind(record) or {}
    return {
        "run_id": run["run"]["id"],
        **{name: drive[name] for name in ("host", "drive", "serial", "model", "firmware")},
        "drive_verdict": drive["verdict"],
        "test": test["test"],
        "verdict": test["verdict"],
        "reasons": "; ".join(test["reasons"]),
        **{name: record.get(name) for name in ("outcome", "attempt", "rounds", "started", "finished")},
        "tracked_cell": window.get("cell"),
        "tracked_metric": window.get("metric"),
        **{name: window.get(name) for name in ("average", "range_ratio", "slope_ratio")},
        "purge_method": purge.get("method"),
        "purge_class": purge.get("purge_class"),
        **{f"precondition_{name}": value for name, value in done.items()},
    }


def _cell(value: t.Any) -> t.Any:
    """One line, and with a quote before what a spreadsheet would take for a formula: serials and messages come from hosts."""
    if not isinstance(value, str):
        return value
    # Also the wide forms, which some spreadsheets take for the same.
    return texts.line("'" + value if value.lstrip()[:1] in _FORMULA or value[:1] in "\t\r\n" else value) if value else value


def junit(run: Mapping, judgement: Mapping) -> str:
    """junit.xml: a testcase for each drive and test, and one named "drive" where no test explains the drive's verdict."""
    cases = [case for drive in judgement["drives"] for case in _cases(drive)]
    counts = {element: sum(case.find(element) is not None for case in cases) for element in ("failure", "error", "skipped")}
    totals = {"tests": len(cases), "failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    attributes = {"name": _xml(run["run"]["id"]), **{name: str(value) for name, value in totals.items()}}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", dict(attributes, timestamp=_xml(run.get("started") or "")))
    suite.extend(cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _cases(drive: Mapping) -> list[ElementTree.Element]:
    cases = [_case(drive, test["test"], test["verdict"], test["reasons"]) for test in drive["tests"]]
    if drive["verdict"] not in [test["verdict"] for test in drive["tests"]]:
        cases.append(_case(drive, "drive", drive["verdict"], drive["reasons"]))
    return cases


def _case(drive: Mapping, name: str, verdict: str, reasons: list[str]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": _xml(f"{drive['host']}.{drive['drive']}"), "name": _xml(name)})
    if verdict in JUNIT_ELEMENT:
        text = _xml("; ".join(reasons))
        ElementTree.SubElement(case, JUNIT_ELEMENT[verdict], {"type": verdict, "message": text}).text = text
    return case


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold, not even escaped."""
    return _NOT_XML.sub("\ufffd", str(text))
