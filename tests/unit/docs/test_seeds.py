# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/seeds.md: every section of the sources, every check and concern; and names that the code has."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table as checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import refusals
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import tuning

REPO = Path(__file__).parents[3]
ROLES = REPO / "roles"
NAME = re.compile(r"`([^`]+)`")
# What each source has: the sections that ask for something, warn, or recommend.
SECTIONS = {
    "Brief": (
        "Accuracy, Consistency, Repeatability",
        "Assumptions",
        "Steady State",
        "Full Drive",
        "Worst Case",
        "Test Sequence",
        "Service Packs and Automatic Updates",
        "Ensure the SSD is Recognized",
        "Set the SSD's Cache Option",
        "Launch IOMeter",
        "Set Up the Precondition Test",
        "Run Time, Cycling Options and Queue Depth",
        "Determining the Precondition Time",
        "Execute the Precondition Run",
        "Establishing Preconditioning Time",
        "Set Up the Test Metric",
        "Host Configuration May Affect Results",
        "Workflow Review",
        "Why Return the SSD to FOB",
    ),
    "TN-FD-15": (
        "SSD vs. HDD",
        "Consistency",
        "Reliability",
        "FOB State",
        "Transition State",
        "Steady State",
        "Micron Driver",
        "Hardware and Software",
        "Table 1",
        "Temperature/Airflow",
        "Perform a Secure Erase",
        "Precondition the SSD",
        "Recommended Performance Testing Workflow",
        "Write Cache Setting",
        "Using Iometer",
        "Iometer Queue Depth",
        "Other I/O Testing Tools",
        "Testing Performance in Linux",
        "Secure Erasing the Drive",
        "Preconditioning the Drive",
        "Running Workload Performance Test",
        "Using FIO",
        "Power Limiting",
        "Interrupt Coalescing",
        "System Settings",
        "Setting CPU Affinity in Windows",
    ),
    "ioMemory": (
        "Legal Notices",
        "Performance Considerations",
        "Disable CPU Frequency Scaling",
        "Set CPU Frequency to Highest Level",
        "Disable CPU Power Throttling",
        "C-States Under Linux",
        "Set Fan Speeds to High",
        "Power-saving Modes",
        "Disable Hyper Threading",
        "Use Asynchronous I/O",
        "Use Direct I/O",
        "Setting NUMA Affinity",
        "Set the Interrupt Handler Affinity",
        "Linux IRQ Balancing",
        "Windows IRQ Policy",
        "Hardware",
        "BIOS",
        "Software",
        "Installing fio",
        "Testing",
        "Appendix A",
        "Programming for Direct I/O",
        "Precondition the Device",
        "Writing Tests on a Full Device",
        "How to Tune for Write-heavy Workloads",
        "Decreasing Latency for Writes",
        "Disk Aggregation",
        "Partition Alignment",
        "Linux Filesystem Tuning",
        "Tuning Swappiness",
        "Tuning Dirty Pages",
        "Over-Subscribed Bus",
        "Handling PCI Express Errors",
        "PCIe Link Width Improperly Negotiated",
        "Using cp and Other System Utilities",
    ),
    "Blog 2": (
        "Synthetic Workload Test Setup",
        "Observations at Queue Depth 31",
        "Observations at Queue Depth 255",
        "Understanding Latency Distribution",
    ),
    "Blog 3": (),
}
OTHER = "Field practice"
VENDOR_MODULES = ("rssdm", "iomemory")
# Of those modules, what no source speaks of.
OWN_OPTIONS = {"serial", "state_dir", "mode", "bugreport_dir"}


def table(heading, columns):
    """The cells of the table below a heading, a list of `columns` texts for each row."""
    text = (
        (REPO / "docs" / "seeds.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    )
    _head, _rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert cells and all(len(row) == columns for row in cells), [row for row in cells if len(row) != columns]
    return cells


def keys(schema):
    """All names of properties of a JSON schema."""
    found = set(schema.get("properties", {})) if isinstance(schema, dict) else set()
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found.union(*(keys(part) for part in parts))


def options(module):
    """The options of a module, from its documentation."""
    text = (REPO / "plugins" / "modules" / (module + ".py")).read_text(encoding="utf-8")
    return set(yaml.safe_load(text.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"])


def names_of(folder, pattern):
    return {path.stem for path in (REPO / folder).glob(pattern)}


DONE = [
    row
    for heading in ("Host: set", "Checked before and during a run", "Vendor tools", "Measurement")
    for row in table(heading, 4)
]
LEFT_OUT = table("Left out", 3)
VARIABLES = {
    name for path in ROLES.glob("*/defaults/main.yml") for name in yaml.safe_load(path.read_text(encoding="utf-8"))
}
MODULES = names_of("plugins/modules", "*.py")
FIO_OPTIONS = set(
    re.findall(r"^(\w+)=", (ROLES / "workload/templates/job.fio.j2").read_text(encoding="utf-8"), re.MULTILINE)
)
KNOWN = {
    *VARIABLES,
    *MODULES,
    *FIO_OPTIONS,
    *checks.CODES,
    *refusals.REFUSALS,
    *methods.METHODS,
    *entry.OPTION_KEYS,
    *entry.SELECTOR_KEYS,
    *keys(json.loads((REPO / "plugins/plugin_utils/common/schemas/test.schema.json").read_text(encoding="utf-8"))),
    *(name for module in VENDOR_MODULES for name in options(module)),
    *(str(path.relative_to(REPO / "plugins/module_utils")) for path in (REPO / "plugins/module_utils").rglob("*.py")),
}


@functools.lru_cache(maxsize=None)
def read(path):
    return path.read_text(encoding="utf-8")


def label(row):
    return row[0][:40] + ": " + row[1][:40]


def by_seed():
    """What the first column says of each source; a part without a source's name goes on with the one before it."""
    said = dict.fromkeys(SECTIONS, "")
    for row in DONE + LEFT_OUT:
        if row[0] == OTHER:
            continue
        seed = None
        for part in row[0].split("; "):
            seed = next((name for name in SECTIONS if re.match(re.escape(name) + r"(?=[, ]|$)", part)), seed)
            assert seed, f"no source is named: {row[0]}"
            said[seed] += " | " + part
    return said


def test_every_section_of_the_sources_is_here():
    said = by_seed()
    assert [
        (seed, section) for seed, sections in SECTIONS.items() for section in sections if section not in said[seed]
    ] == []
    assert all(said.values())


@pytest.mark.parametrize("row", DONE, ids=label)
def test_what_does_it_exists(row):
    names, plain = NAME.findall(row[2]), NAME.sub("", row[2])
    assert [name for name in names if name not in KNOWN] == []
    assert set(re.findall(r"module `(\w+)`", row[2])) <= MODULES
    for role, rest in re.findall(r"\b([a-z]+)/([\w./-]*\w)", plain):
        places = (
            ROLES / role / "tasks" / (rest + ".yml"),
            ROLES / role / "templates" / rest,
            ROLES / role / "files" / (rest + ".yml"),
        )
        told = role == "tune" and rest in tuning.CONCERNS  # a task of describe.yml (tests/unit/roles)
        assert told or any(place.is_file() for place in places), f"{role}/{rest}"
    assert [role for role in re.findall(r"(?:^|; )([a-z]+):", plain) if not (ROLES / role).is_dir()] == []
    assert names or "/" in plain or "host job" in plain, "it names neither file nor variable"


@pytest.mark.parametrize("row", DONE, ids=label)
def test_how_it_is_verified_is_in_the_code(row):
    assert row[3]
    code = _code()
    assert [
        word for name in NAME.findall(row[3]) for word in re.findall(r"[A-Za-z]\w+", name) if word not in code
    ] == []


@functools.lru_cache(maxsize=None)
def _code():
    files = [
        path
        for folder in ("plugins", "roles")
        for path in (REPO / folder).rglob("*")
        if path.suffix in (".py", ".yml", ".j2", ".json")
    ]
    return "\n".join(read(path) for path in files)


def test_every_check_is_in_the_table():
    named = {name for row in DONE for name in NAME.findall(row[2])}
    assert [code for code in checks.CODES if code not in named] == [], "these checks have no row in docs/seeds.md"


def test_every_concern_of_tuning_is_in_the_table():
    said = " ".join(row[2] for row in DONE)
    assert [name for name in [*tuning.CONCERNS, tuning.BOOT] if not re.search(rf"\btune/{name}\b", said)] == []


def test_every_option_of_the_vendors_tools_is_in_the_table():
    named = {name for row in table("Vendor tools", 4) for name in NAME.findall(row[2])}
    assert [name for module in VENDOR_MODULES for name in options(module) - OWN_OPTIONS if name not in named] == [], (
        "docs/seeds.md has no row for these options"
    )


def test_every_shipped_plan_and_test_after_a_source_is_in_the_table():
    said = " ".join(row[2] for row in DONE)
    shipped = [
        kind + "/" + name
        for kind in ("tests", "plans")
        for name in names_of("roles/workload/files", kind + "/*.yml") - {"demo"}
    ]
    assert [name for name in shipped if "workload/" + name not in said] == [], (
        "docs/seeds.md has no row for these tests"
    )


@pytest.mark.parametrize("row", LEFT_OUT, ids=label)
def test_what_is_left_out_has_its_reason(row):
    assert all(row)
    given = [
        name.partition(":")[0]
        for name in NAME.findall(row[2])
        if ": " in name or name.split("_")[0] in {path.name for path in ROLES.iterdir()}
    ]
    assert [name for name in given if name not in KNOWN] == []
