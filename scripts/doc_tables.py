# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/ that repeat the code's own: between `<!-- table NAME … -->` and `<!-- end of table -->`.

What follows the name says which part of it: `<!-- table settings tune -->`. The schemas that users' programs may read
files by are written too.

With --check it changes nothing, and exits with 1 where something is not current.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import re
import sys
import tokenize
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))
sys.path.insert(0, str(ROOT / "scripts"))

# The folder has to be on the path first, as nothing of the project is installed.
import key_tables
import variables_page

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table as checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import hidden_capacity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import refusals, rules
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import kernel_watch, self_test_wait, test_conditions
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import pcie
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import (
    data_pattern,
    disturbances,
    drive_environment,
    fio_result,
    health_metrics,
    hidden_variation,
    histogram,
    lost_time,
    quiet_runs,
    sampler,
    validity_limits,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata, methods, scsi
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import events, results, run_files
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.base import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Figures, QueueLimits, Seen
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedDrive, PlannedPurge, PlannedTest
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PlannedCell
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import ScsiDrive
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import active_settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs, json_schema, units
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles, time_estimates, write_rates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import wear
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import summary_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import frames
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import fail_kinds, reason_kinds, reason_matching

Rows = t.List[t.Tuple[str, ...]]
Fields = t.Dict[str, t.Tuple[str, str]]
BLOCK = re.compile(r"<!-- table ((\w+)((?: [\w.-]+)*)) -->\n.*?<!-- end of table -->", re.DOTALL)
# What a reader calls the drives of a family of purge methods.
DRIVES = {
    "nvme": "NVMe",
    "ata": "[SATA](purge-ata-scsi.md)",
    "scsi": "[SAS](purge-ata-scsi.md)",
    "any": "any",
    "zoned": "[zoned](workloads.md#zoned)",
    "iomemory": "[ioMemory](vendor-tools.md)",
    "micron": "[P320h, P420m](vendor-tools.md)",
}
CAUSE = re.compile(
    r"^(\w+) (disturbs|unknown|told): (.+?)(?=^\w+ (?:disturbs|unknown|told): |\Z)", re.DOTALL | re.MULTILINE
)
# Of the table of times.
TIMED_PLANS = ("smoke", "incoming", "nightly", "acceptance", "full", "pts-enterprise", "pts-client", "hyperscale")
CAPACITIES_TB = (0.96, 3.84, 7.68, 15.36, 30.72, 61.44)
LINKS = {
    "SATA": ("sata", 600.0),
    "PCIe 3 x4": ("nvme", pcie.bandwidth_mb_s(8.0, 4) or 0.0),
    "PCIe 4 x4": ("nvme", pcie.bandwidth_mb_s(16.0, 4) or 0.0),
    "PCIe 5 x4": ("nvme", pcie.bandwidth_mb_s(32.0, 4) or 0.0),
}
# What commands are shown for; those of a SATA drive need no more than its path.
EXAMPLE = ScsiDrive("<drive>", None, lba_size_bytes=512, protection_type=0, commands=[])


def checks_table() -> Rows:
    """Return each check in its order: code, level, what it finds, what it reads, source, remedy."""
    rows: Rows = [("check", "level", "finds", "reads", "source", "fix")]
    for check in checks.TABLE:
        finds, reads, source = _of_check(check.look or check.look_host)
        rows.append((f"`{check.check}`", check.level, finds, reads, source, check.remedy))
    return rows


def _of_check(look: t.Any) -> tuple[str, str, str]:
    """Return what the docstring of a check's function says: "Find <what>.", … "Reads: <what>. Source: <document>."."""
    first, *_more, last = " ".join(inspect.getdoc(look).split("\n")).split("  ")
    reads = re.fullmatch(r"Reads: (.+?)\.(?: Source: (.+)\.)?", last)
    return re.sub(r"^Find |\.$", "", first), reads[1], reads[2] or ""


def refusals_table() -> Rows:
    """Return each code of the guard: what it says, what to do, what lifts it."""
    rows: Rows = [("code", "what is wrong", "what counts", "what to do", "lifted by")]
    for code, text in refusals.REFUSALS.items():
        problem = re.sub(r"(: ?)?\{detail\}", lambda found: "" if found[1] else "…", text.problem)
        keys = [text.overridable] if text.overridable else []
        keys += ["retired"] if code in rules.CONTENT_CODES else []
        lifted_by = ", ".join(f"`{key}`" for key in keys) or "nothing"
        rows.append((f"`{code}`", problem, text.found, text.remedy, lifted_by))
    return rows


def reasons_table(verdict: str) -> Rows:
    """Return each kind of reason of a verdict: its words, the cause in a headline, what it means, what to do."""
    rows: Rows = [("the reason says", "cause in a headline", "what it means", "what to do")]
    kinds = [kind for kind in reason_matching.KINDS if kind.verdict == verdict]
    return rows + [(f"`{kind.says.strip('…:;,( ')}`", kind.cause, kind.means, kind.remedy) for kind in kinds]


def fail_reasons_table() -> Rows:
    """Return what fails a drive: its words, the cause in a headline, what it means, what to do."""
    rows: Rows = [("the reason says", "cause in a headline", "what it means", "what to do")]
    for name, row in health_metrics.TABLE.items():
        says = row.text.format("…", times="…", s="s")
        rows.append((f"`{says} ({name}, …)`", units.metric_words(name), *fail_kinds.OF_HEALTH[name]))
    return rows + [(f"`{says}`", *told) for says, *told in fail_kinds.OTHER_FAILS]


def further_codes_table() -> Rows:
    """Return the codes for which preflight leaves drives out, beside those of the guard and of the checks."""
    rows: Rows = [("code", "what is wrong", "what to do")]
    return rows + [(f"`{code}`", *told) for code, told in reason_kinds.FURTHER_CODES.items()]


def purge_commands_table() -> Rows:
    """Return the commands of the methods of SATA and SAS drives, the strongest of each first."""
    rows: Rows = [("method", "runs")]
    for family in (ata, scsi):
        for method in sorted(family.METHODS, key=lambda method: -method.strength):
            commands = ", ".join(f"`{' '.join(argv)}`" for argv in method.commands(EXAMPLE, PlannedPurge("auto")))
            rows.append((f"`{method.name}`", commands))
    return rows


def purge_methods_table() -> Rows:
    """Return every method, those of one kind of drive together, the strongest of each first."""
    rows: Rows = [("drives", "`purge_method`", "what it is", "class", "can set the LBA size")]
    for family in methods.FAMILIES:
        for method in sorted(family.METHODS, key=lambda method: -method.strength):
            can_set = "yes" if method.sets_lba_size else ""
            rows.append((DRIVES[method.family], f"`{method.name}`", method.what, f"`{method.purge_class}`", can_set))
    return rows


def metrics_table() -> Rows:
    """Return the figures that a cell has, as the code makes them of one of everything."""
    figures = Figures(1.0, 1.0, 1, 1, 1.0, 1.0, {})
    made = fio_result.metrics(*[figures for _name in fio_result.SIDES])
    made.update(histogram.metrics({name: {1000: 1} for name in fio_result.SIDES}, [1000]))
    prefixes: dict[str, list[str]] = {}
    for metric in made:
        side, _line, rest = metric.partition("_")
        name, prefix = (rest, f"`{side}_`") if side in fio_result.SIDES else (metric, "none: reads and writes together")
        prefixes.setdefault(name, []).append(prefix)
    rows: Rows = [("metric", "unit", "prefixes")]
    rows += [(f"`{name}`", units.base(name), ", ".join(found)) for name, found in prefixes.items()]
    return rows + [(f"`{name}`", units.base(name), "none") for name in hidden_variation.LIMITS]


def columns_table(of: str) -> Rows:
    """Return the columns of the store's long table: the usual ones, or those that may be asked for too."""
    columns = {"long": frames.COLUMNS, "more": frames.MORE_COLUMNS}[of]
    return [("column", "content"), *((f"`{name}`", content) for name, content in columns.items())]


def record_table(name: str) -> Rows:
    """Return the fields of a record, less what each record of a run begins with."""
    found = [vars(module)[name] for module in (run_files, results, run_record) if name in vars(module)]
    of_all = [field.name for field in dataclasses.fields(results.RecordOfRun)] + ["kind"]
    is_of_run = issubclass(found[0], results.RecordOfRun)
    fields = {name: told for name, told in _fields(found[0]).items() if not (is_of_run and name in of_all)}
    return [("field", "what it is"), *fields.values()]


def events_table() -> Rows:
    """Return the events of the journal with their fields, less drive, test and attempt."""
    of_all = ("drive", "test", "attempt")
    rows: Rows = [("event", "fields")]
    for event, kind in events.EVENTS.items():
        fields = {name: told for name, told in _fields(kind).items() if name not in of_all}
        rows.append((f"`{event}`", _listed(fields, _about(kind))))
    return rows


def parts_table(of: str) -> Rows:
    """Return the records that events are made of, those of results beside them, or those of run.json."""
    events_parts = _all_parts(events.EVENTS.values())
    parts = {
        "events": events_parts,
        "results": {
            name: part for name, part in _all_parts(results.RECORDS.values()).items() if name not in events_parts
        },
        "run": _all_parts([run_record.RunRecord]),
    }[of]
    rows: Rows = [("part", "fields")]
    return rows + [(f"*{name}*", _listed(_fields(part), _about(part))) for name, part in parts.items()]


def _all_parts(kinds: t.Iterable[t.Any]) -> dict[str, t.Any]:
    return {part.__name__: part for kind in kinds for part in _parts(kind)}


def _parts(kind: t.Any) -> t.Iterator[t.Any]:
    """Yield the dataclasses that a dataclass has in its fields, and those in theirs."""
    for hint in t.get_type_hints(kind, include_extras=True).values():
        for part in _dataclasses_in(hint):
            yield part
            yield from _parts(part)


def _dataclasses_in(hint: t.Any) -> list[t.Any]:
    if isinstance(hint, Limits):
        return [hint.known] if hint.known else []
    if dataclasses.is_dataclass(hint):
        return [hint]
    return [part for argument in t.get_args(hint) for part in _dataclasses_in(argument)]


def _about(kind: t.Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())


def _fields(kind: t.Any) -> Fields:
    """Return each field: its name, marked where it may be null or miss (?), and the comment above it."""
    hints, comments = t.get_type_hints(kind), _field_comments(kind)
    limited = t.get_type_hints(kind, include_extras=True)
    told = {}
    for field in dataclasses.fields(kind):
        may_miss = not (field.default is field.default_factory is dataclasses.MISSING)
        may_be_null = type(None) in t.get_args(hints[field.name]) and not may_miss
        mark = f"`{field.name}`" + (" or null" if may_be_null else "") + ("?" if may_miss else "")
        parts = [f"*{part.__name__}*" for part in _dataclasses_in(limited[field.name])]
        words = [f"`{json.dumps(word)}`".replace('"', "") for word in _words(hints[field.name])]
        told[field.name] = (mark, "; ".join(filter(None, [", ".join(parts + words), comments.get(field.name, "")])))
    return told


def _words(hint: t.Any) -> list[t.Any]:
    """Return the words that a value may be."""
    if t.get_origin(hint) is t.Literal:
        return list(t.get_args(hint))
    return [word for argument in t.get_args(hint) for word in _words(argument)]


def _field_comments(kind: t.Any) -> dict[str, str]:
    """Return the comments above the fields of a class and of those that it extends."""
    found: dict[str, str] = {}
    for one in (each for each in kind.__mro__ if dataclasses.is_dataclass(each)):
        comment: list[str] = []
        for line in map(str.strip, inspect.getsource(one).splitlines()):
            name = re.match(r"(\w+): ", line)
            if line.startswith("#"):
                comment.append(line.lstrip("# "))
            elif name and comment:
                found[name[1]], comment = " ".join(comment), []
    return found


def _listed(fields: Fields, about: str) -> str:
    """Return fields in one cell: those that need no word in a row, the others on a line of their own."""
    plain = ", ".join(mark for mark, text in fields.values() if not text)
    return "<br>".join(filter(None, [about, plain, *(f"{mark}: {text}" for mark, text in fields.values() if text)]))


def settings_table(*names: str) -> Rows:
    """Return the variables of a role, with the concern that each belongs to, or those that are named."""
    if len(names) > 1:
        return [("variable", "default", "meaning"), *(_setting(name, argument_specs.option(name)) for name in names)]
    rows: Rows = [("concern (tag)", "variable", "default", "meaning")]
    for name, about in argument_specs.options(names[0]).items():
        switch = re.fullmatch(r"\w+?_(\w+)_enabled", name)
        rows.append((f"`{switch[1]}`" if switch else "", *_setting(name, about)))
    return rows


def _setting(name: str, about: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    given = about.get("default")
    default = given if isinstance(given, str) else json.dumps(given)
    return f"`{name}`", f"`{default}`" if default else "empty", _of_spec(about["description"])


def _of_spec(description: str | list[str]) -> str:
    """Return a description of an argument spec in Markdown: V(on), O(tune_turbo), C(restore.yml) as code."""
    lines = [description] if isinstance(description, str) else description
    return re.sub(r"\b[VOC]\(([^()]*)\)", r"`\1`", " ".join(lines))


def causes_table(of: str) -> Rows:
    """Return what may disturb a cell, or of the drive's world a test, as the functions that find it say."""
    if of == "cells":
        found = _causes(disturbances, lost_time, quiet_runs)
        wanted = [cause for cause in disturbances.TITLES if cause in found]
    else:
        of_jobs = test_conditions, tuned_host, self_test_wait, kernel_watch
        found = _causes(drive_environment, sampler, active_settings, data_pattern, *of_jobs)
        for cause, text in drive_environment.MISSING.items():
            found.setdefault(cause, []).append(("unknown", text, "none"))
        wanted = [*found]
    rows: Rows = [("cause", "level", "evidence", "limit")]
    return rows + [(f"`{cause}`", *told) for cause in wanted for told in found[cause]]


def _causes(*modules: t.Any) -> dict[str, list[tuple[str, str, str]]]:
    """Return {cause: [(level, evidence, limit)]} of docstrings' "<cause> <level>: <evidence>. Limit: <limit>"."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for module in modules:
        values = {**vars(module), **vars(hidden_capacity), **validity_limits.Limits()._asdict()}
        for function in ast.walk(ast.parse(inspect.getsource(module))):
            said = (ast.get_docstring(function) if isinstance(function, ast.FunctionDef) else None) or ""
            for cause, level, told in CAUSE.findall(said):
                evidence, _label, limit = " ".join(told.split()).partition(". Limit: ")
                for name in set(re.findall(r"\w+", limit)) & {key for key in values if "_" in key}:
                    if isinstance(values[name], (int, float)):
                        limit = limit.replace(name, f"`{name}` {_number(values[name])}")
                found.setdefault(cause, []).append((level, evidence, limit))
    return found


def validity_limits_table() -> Rows:
    """Return each threshold of a cell's causes with its value, and the comment above it for a reason."""
    rows: Rows = [("key of `ssd_validity_limits`", "default", "why")]
    comment: list[str] = []
    reason = ""
    values = validity_limits.Limits()
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(validity_limits.Limits)).readline):
        if token.type == tokenize.COMMENT:
            comment.append(token.string.lstrip("# "))
        elif token.type == tokenize.NAME and token.string in values._fields:
            reason, comment = " ".join(comment) or reason, []
            rows.append((f"`{token.string}`", _number(getattr(values, token.string)), reason))
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def variations_table() -> Rows:
    """Return the metrics of what averages hide, with the remark above their limit."""
    rows: Rows = [("metric", "a remark above", "the remark")]
    told = hidden_variation.LIMITS.items()
    return rows + [(f"`{name}`", f"{limit.most_pct:g} %", limit.text.format("so many %")) for name, limit in told]


# What the hypervisor takes of the time of fio's CPUs; fio's longest gaps, and drives by their rates, at this depth.
STOLEN, GAPS_MS, RATES_IOPS, DEPTH, RUN_S = 0.06, (0.1, 1.0, 10.0, 100.0), (1_000, 10_000, 100_000, 1_000_000), 32, 10.0


def interruptions_table() -> Rows:
    """Return whether the rate of a drive counts of whose fio a share of the time was stolen, by its longest gap."""
    rows: Rows = [("drive", "work in flight", *(f"gap of {gap:g} ms" for gap in GAPS_MS))]
    for iops in RATES_IOPS:
        told = [_interrupted(iops, gap / 1000) for gap in GAPS_MS]
        rows.append((f"{iops:,} IOPS", f"{1000 * DEPTH / iops:g} ms", *told))
    return rows


def _interrupted(iops: int, gap_s: float) -> str:
    cell = PlannedCell(
        id="c", runtime_s=int(RUN_S), access="random", block_size_bytes=4096, read_pct=0, threads=1, queue_depth=DEPTH
    )
    seen = Seen(
        fio_bytes={"read": 0, "write": int(RUN_S * iops) * 4096},
        kernel_bytes=None,
        merged_share=0.0,
        mean_latency_s=DEPTH / iops,
        queued=DEPTH,
        in_flight=DEPTH,
        limits=QueueLimits(None, None, None),
        process_bytes=None,
        run_s=RUN_S,
        fio_cpu=0.5,
        cpus=1,
        cpu_idle=0.4,
        cpu_steal=STOLEN,
        throttled_s=0.0,
        elapsed_s=RUN_S,
        idle_s=0.0,
        clock_jump_s=0.0,
        longest_gap_s=gap_s,
        waited_s=0.0,
    )
    (found,) = lost_time.find(cell, seen, validity_limits.Limits(), is_short=False)
    error = STOLEN if found.disturbs else lost_time.lost_by_gap(STOLEN, gap_s, DEPTH / iops)
    return f"{'disturbed' if found.disturbs else 'counts'}: at most {100 * error:.2g} % off"


def health_table() -> Rows:
    """Return the metrics of a drive's health, where each comes from, and the limit of the default criterion."""
    rows: Rows = [("metric", "unit", "fails above", "NVMe", "SATA", "SAS")]
    return rows + [
        (f"`{name}`", units.base(name), "" if row.most is None else f"{row.most:g}", row.nvme, row.sata, row.sas)
        for name, row in health_metrics.TABLE.items()
    ]


def health_criteria_yaml() -> str:
    """Return the default of ssd_health_criteria, as a list to copy."""
    items = [", ".join(f"{key}: {value}" for key, value in item.items()) for item in health_metrics.DEFAULT_CRITERIA]
    return "\n".join(["```yaml", "ssd_health_criteria:", *(f"  - {{{item}}}" for item in items), "```"])


def write_rates_table() -> Rows:
    """Return what drives of each transport are taken to write."""
    rows: Rows = [("transport", "share of its link, for times", "link where it is unknown: for times, for wear")]
    return rows + [
        (f"`{name}`", f"{100 * kind.share:g} %", f"{kind.least_mb_s:,.0f}, {kind.most_mb_s:,.0f} MB/s")
        for name, kind in write_rates.KINDS.items()
    ]


def plan_times_table() -> Rows:
    """Return how long plan mode says that plans take, and how much they may write, by capacity and link."""
    rows: Rows = [("plan", "link", *(f"{terabytes:g} TB" for terabytes in CAPACITIES_TB))]
    for name in TIMED_PLANS:
        tests = testfiles.load_plan(name)
        for link, (transport, link_mb_s) in LINKS.items():
            cells = (_plan_time(tests, transport, link_mb_s, terabytes) for terabytes in CAPACITIES_TB)
            rows.append((f"`{name}`", link, *cells))
    return rows


def _plan_time(tests: t.Sequence[PlannedTest], transport: str, link_mb_s: float, terabytes: float) -> str:
    """Return it of one drive: from 3 h to 5 h, 40 TB."""
    identity = Identity(transport=transport, size_bytes=int(terabytes * 1e12), logical_block_size_bytes=512)
    rates = write_rates.of_drive("auto", identity, link_mb_s)
    spans = [time_estimates.span_s(test, identity, rates.assumed) for test in tests]
    drive = PlannedDrive("", {}, identity, {}, tests, None, *rates)
    span = units.plan_duration_span(sum(low for low, _high in spans), sum(high for _low, high in spans))
    return f"{span}, {units.data_size(wear.of_drive(drive)[1])}"


TABLES: dict[str, t.Callable[..., Rows | str]] = {
    "checks": checks_table,
    "refusals": refusals_table,
    "reasons": reasons_table,
    "fail_reasons": fail_reasons_table,
    "further_codes": further_codes_table,
    "purge_commands": purge_commands_table,
    "metrics": metrics_table,
    "variations": variations_table,
    "health": health_table,
    "health_criteria": health_criteria_yaml,
    "columns": columns_table,
    "record": record_table,
    "parts": parts_table,
    "events": events_table,
    "purge_methods": purge_methods_table,
    "settings": settings_table,
    "variables": variables_page.text,
    "causes": causes_table,
    "interruptions": interruptions_table,
    "validity_limits": validity_limits_table,
    "write_rates": write_rates_table,
    "plan_times": plan_times_table,
    "test_keys": key_tables.test_keys_table,
    "playbooks": key_tables.playbooks_table,
    "tests": key_tables.tests_table,
    "plans": key_tables.plans_table,
}


# Where each is, with its title and its record.
SCHEMAS = {"docs/summary.schema.json": ("report/summary.json", summary_record.Summary)}


def text(rows: Rows | str) -> str:
    """Return a table in Markdown. A bar within a cell would end it. A text is what it is."""
    if isinstance(rows, str):
        return rows
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def current(page: str) -> str:
    """Return a page's text with its tables as the code has them now. Raises KeyError for a table that nothing makes."""
    return BLOCK.sub(
        lambda found: f"<!-- table {found[1]} -->\n{text(TABLES[found[2]](*found[3].split()))}\n<!-- end of table -->",
        page,
    )


def published_schema(title: str, kind: t.Any) -> str:
    """Return the schema of a record, with what the comments of its dataclasses say: each of these is in $defs."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    parts = {part.__name__: _described(part) for part in _parts(kind)}
    return json.dumps({**head, **_described(kind), "$defs": parts}, indent=2, ensure_ascii=False) + "\n"


def _described(kind: t.Any) -> dict[str, t.Any]:
    schema, hints, comments = json_schema.of(kind), t.get_type_hints(kind), _field_comments(kind)
    properties = {}
    for name, shape in schema["properties"].items():
        about = {"description": comments[name]} if name in comments else {}
        properties[name] = {**about, **_with_reference(shape, _dataclasses_in(hints[name]))}
    return {"description": _about(kind), **schema, "properties": properties}


def _with_reference(shape: dict[str, t.Any], parts: list[t.Any]) -> dict[str, t.Any]:
    """Return a field's schema with a reference where the dataclass is that it holds, if any."""
    if not parts:
        return shape
    if "properties" in shape:
        reference = {"$ref": f"#/$defs/{parts[0].__name__}"}
        return {"anyOf": [reference, {"type": "null"}]} if "null" in shape["type"] else reference
    below = "items" if "items" in shape else "additionalProperties"
    return {**shape, below: _with_reference(shape[below], parts)}


def main(arguments: list[str]) -> int:
    """Write the pages whose tables changed, and the schemas, or name them."""
    stale = []
    wanted = {path: current(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("docs/**/*.md"))}
    wanted.update({ROOT / path: published_schema(*about) for path, about in SCHEMAS.items()})
    for path, after in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != after:
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    for path in stale:
        is_check = "--check" in arguments
        print(f"{path.relative_to(ROOT)}: {'not current: run python scripts/doc_tables.py' if is_check else 'written'}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
