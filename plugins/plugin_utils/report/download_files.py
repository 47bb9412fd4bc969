# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""summary.json, two results*.csv and junit.xml from a judgement. Pure: each function returns the file's text."""

from __future__ import annotations

import collections
import csv
import io
import json
import re
import typing as t
from xml.etree import ElementTree

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.records.attempt import METRIC_PATTERN
from ..common import units
from ..run_folder import run_record
from ..validation import printable
from ..verdict import comparability, headline, result_warnings

METRIC = re.compile(METRIC_PATTERN.rstrip("$"))
# A table with more columns is of no use to anybody, and a record from outside could ask for any number.
MOST_TRACKED = 64
MOST_METRICS = 1000
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
CSV_COLUMNS = (
    "run_id host drive serial model firmware drive_verdict test verdict outcome attempt rounds purge_method "
    "purge_class purge_verified from_fresh load parallel_drives"
    " active_range_pct active_range_max_bytes precondition_passes precondition_bytes_written"
    " precondition_block_size_bytes precondition_data precondition_bandwidth_bytes_per_s"
    " precondition_kernel_bytes_written"
    " started finished reasons remarks"
).split()
# What says who something is: of digits alone too it is a text.
_IDENTITIES = ("host", "drive", "serial", "model", "firmware")
# More makes a spreadsheet refuse the text of a formula.
_MOST_QUOTED = 255
_BYTE_ORDER_MARK = "\ufeff"
# Of each tracked variable, after tracked_1_, tracked_2_ …; `unit` is that of average and fitted_end.
TRACKED_COLUMNS = "cell metric unit steady average fitted_end range_ratio slope_ratio".split()
# JUnit has no word for these: a test that cannot be trusted is an error, one that was not run is skipped.
# Nor for a drive that failed only because of its host.
JUNIT_ELEMENT = {
    "fail": "failure",
    "host_fault": "error",
    "error": "error",
    "invalid": "error",
    "not_tested": "skipped",
}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Record = dict[str, t.Any]
Records = t.Mapping[tuple[str, str], t.Mapping[str, Record]]


def summary(
    run: Record,
    judgement: Record,
    fleet: Record,
    derived: t.Mapping[tuple[str, str], Record] | None = None,
    records: t.Mapping[tuple[str, str], Record] | None = None,
    tests: Records | None = None,
) -> str:
    """summary.json (summary_record.py).

    fleet: of peers/fleet_verdicts.py. derived: {(host, drive): {test: what derived_metrics.of_drive found}}.
    records: of the drives. tests: of Sources.
    """
    asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
    drives = []
    for drive in judgement["drives"]:
        key = (drive["host"], drive["drive"])
        record = (records or {}).get(key, {})
        identity = record.get("identity") or {}
        mine = (tests or {}).get(key, {}).values()
        under = {"conditions": comparability.of_drive(asked.get(key, {}), identity, mine)} if identity else {}
        under.update({name: record[name] for name in ("power", "retired", "gives_up") if record.get(name)})
        told = {"headline": headline.of_drive(drive)}
        drives.append({**_with_derived(drive, (derived or {}).get(key, {})), **told, **under})
    about = {"id": run["run"]["id"], "name": run["run"]["name"], "started": run.get("started")}
    about.update({"rejudged": times[-1]["at"]} if (times := run.get("rejudged")) else {})
    about.update({"measured_elsewhere": where} if (where := run_record.elsewhere(run)) else {})
    content = {
        "schema_version": SCHEMA_VERSION,
        "run": about,
        "verdicts": judgement["verdicts"],
        "headline": headline.of_run(judgement["drives"]),
        "warnings": result_warnings.implausible_limits(run, judgement),
        "fleet": fleet,
        "definitions": comparability.definitions(run),
        "drives": drives,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _with_derived(drive: Record, found: Record) -> Record:
    return {**drive, "tests": [{**test, **found.get(test["test"], {})} for test in drive["tests"]]}


def csv_text(run: Record, judgement: Record, records: Records) -> str:
    """results.csv: one row for each drive and test; the window of each tracked variable, then a column for each metric
    that any test has.

    A column's name says its unit, or a column beside it does. `records`: each drive's test records by name, by (host,
    drive).
    """
    # Only what may be the name of a figure (METRIC) becomes a column; none is called like a column that is
    # there already.
    counts = collections.Counter(
        name
        for drive in judgement["drives"]
        for test in drive["tests"]
        for name in test["metrics"]
        if METRIC.fullmatch(name)
    )
    metrics = sorted(name for name, _count in counts.most_common(MOST_METRICS))
    out = io.StringIO()
    most = max([len(test["windows"]) for drive in judgement["drives"] for test in drive["tests"]], default=0)
    tracked = [f"tracked_{place}_{name}" for place in range(1, min(most, MOST_TRACKED) + 1) for name in TRACKED_COLUMNS]
    columns = [*CSV_COLUMNS, *tracked, *[units.column(name) for name in metrics]]
    writer = csv.DictWriter(out, columns, lineterminator="\n", quoting=csv.QUOTE_ALL, extrasaction="ignore")
    writer.writeheader()
    for drive in judgement["drives"]:
        for test in drive["tests"] or [
            {"test": "", "verdict": drive["verdict"], "reasons": drive["reasons"], "metrics": {}, "windows": []}
        ]:
            record = records.get((drive["host"], drive["drive"]), {}).get(test["test"], {})
            row = {
                **{units.column(name): value for name, value in test["metrics"].items()},
                **_row(run, drive, test, record),
            }
            writer.writerow({name: spreadsheet_cell(value) for name, value in row.items()})
    return out.getvalue()


def spreadsheet_text(csv_text_: str) -> str:
    """results-spreadsheet.csv: results.csv for people who open it in a spreadsheet, which takes 00012345 and 22123E45
    for numbers, however they are quoted, and a file without a byte order mark for one of its own code page.
    """
    rows = csv.reader(io.StringIO(csv_text_))
    columns = next(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_as_text(cell) if name in _IDENTITIES else cell for name, cell in zip(columns, row))
    return _BYTE_ORDER_MARK + out.getvalue()


def _as_text(cell: str) -> str:
    """A formula that is nothing but a text: within its quotes nothing is computed."""
    quoted = '="{}"'.format(cell.replace('"', '""'))
    return quoted if cell and len(cell) <= _MOST_QUOTED else cell


def _row(run: Record, drive: Record, test: Record, record: Record) -> Record:
    purge, done = record.get("purge") or {}, test.get("precondition") or {}
    defined = run.get("tests", {}).get(test["test"]) or {}
    windows = {
        f"tracked_{place}_{name}": window[name]
        for place, window in enumerate(test["windows"], start=1)
        for name in TRACKED_COLUMNS
    }
    return {
        "run_id": run["run"]["id"],
        **{name: drive[name] for name in ("host", "drive", "serial", "model", "firmware")},
        "drive_verdict": drive["verdict"],
        "test": test["test"],
        "verdict": test["verdict"],
        "reasons": "; ".join(test["reasons"]),
        "remarks": "; ".join(test.get("remarks") or []),
        **{name: record.get(name) for name in ("outcome", "attempt", "rounds", "started", "finished")},
        **{
            f"purge_{name}": purge.get(key)
            for name, key in (("method", "method"), ("class", "purge_class"), ("verified", "verified"))
        },
        "from_fresh": test.get("from_fresh"),
        "load": test.get("load"),
        "parallel_drives": test.get("parallel_drives"),
        **{key: defined.get(key) for key in ("active_range_pct", "active_range_max_bytes")},
        **{f"precondition_{name}": value for name, value in done.items()},
        **windows,
    }


def spreadsheet_cell(value: t.Any) -> t.Any:
    """One line, and with a quote before what a spreadsheet would take for a formula: serials and messages come from
    hosts.
    """
    if not isinstance(value, str):
        return value
    # Also the wide forms, which some spreadsheets take for the same.
    return (
        printable.line("'" + value if value.lstrip()[:1] in _FORMULA or value[:1] in "\t\r\n" else value)
        if value
        else value
    )


def junit(run: Record, judgement: Record) -> str:
    """junit.xml: a testcase for each drive and test, and one named "drive" where no test explains the
    drive's verdict.
    """
    cases = [case for drive in judgement["drives"] for case in _cases(drive)]
    counts = {
        element: sum(case.find(element) is not None for case in cases) for element in ("failure", "error", "skipped")
    }
    totals = {
        "tests": len(cases),
        "failures": counts["failure"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
    }
    attributes = {"name": _xml(run["run"]["id"]), **{name: str(value) for name, value in totals.items()}}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", dict(attributes, timestamp=_xml(run.get("started") or "")))
    if where := "; ".join(run_record.elsewhere(run)):
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", {"name": "measured_elsewhere", "value": _xml(where)})
    suite.extend(cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _cases(drive: Record) -> list[ElementTree.Element]:
    cases = [_case(drive, test["test"], *_said(drive, test)) for test in drive["tests"]]
    if drive["verdict"] not in [test["verdict"] for test in drive["tests"]]:
        cases.append(_case(drive, "drive", drive["verdict"], drive["reasons"]))
    return cases


def _said(drive: Record, test: Record) -> tuple[str, list[str]]:
    """Return what a test's case says: (a word of JUNIT_ELEMENT or pass, reasons)."""
    if drive.get("host_fault") and test["verdict"] == "fail":
        return "host_fault", [*drive["reasons"][:1], *test["reasons"]]
    return test["verdict"], test["reasons"]


def _case(drive: Record, name: str, verdict: str, reasons: list[str]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": _xml(f"{drive['host']}.{drive['drive']}"), "name": _xml(name)})
    if verdict in JUNIT_ELEMENT:
        text = _xml("; ".join(reasons))
        ElementTree.SubElement(case, JUNIT_ELEMENT[verdict], {"type": verdict, "message": text}).text = text
    return case


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold, not even escaped."""
    return _NOT_XML.sub("\ufffd", str(text))
