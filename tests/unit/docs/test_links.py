# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every link of a page leads to a file that exists, and to a heading in it; the start page lists every page; lines of
prose can be read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[3]
PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/**/*.md"), *REPO.glob("roles/*/README.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
WIDTH = 160
ROW = 300
LINES = 180
HEADING = 80
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(r"<!-- table [\w .-]+ -->.*?<!-- end of table -->", re.DOTALL)


def anchors(path):
    """The anchors of a page, as GitHub makes them of its headings, and its own."""
    text = CODE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_every_link_leads_somewhere(page):
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _hash, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_start_page_lists_every_page_and_the_readme_leads_there():
    start = (REPO / "docs" / "README.md").read_text(encoding="utf-8").partition("\n## All pages\n")[2]
    names = {path.name for path in REPO.glob("docs/*.md")} - {"README.md"}
    assert names and {name for name in names if f"]({name})" not in start} == set()
    assert "](docs/README.md)" in (REPO / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_prose_is_no_wider_than_a_screen_and_a_row_of_a_table_is_two_lines_at_most(page):
    # A table that scripts/doc_tables.py writes is read where it is rendered.
    lines = WRITTEN.sub("", CODE.sub("", page.read_text(encoding="utf-8"))).splitlines()
    assert [line for line in lines if len(line) > (ROW if line.startswith("|") else WIDTH)] == []


def test_the_internals_are_pages_that_one_can_read():
    index = (REPO / "docs" / "internals.md").read_text(encoding="utf-8")
    parts = sorted(REPO.glob("docs/internals/*.md"))
    assert len(parts) > 3 and [path.name for path in parts if f"](internals/{path.name})" not in index] == []
    lines = {
        path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in [*parts, REPO / "docs/internals.md"]
    }
    assert {name: count for name, count in lines.items() if count > LINES} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_no_heading_has_swallowed_the_paragraph_below_it(page):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    assert [line for line in re.findall(r"^#{1,6} .*$", text, re.MULTILINE) if len(line) > HEADING] == []


def test_code_names_only_files_that_exist():
    """In comments and docstrings. A few names are of Python's own files."""
    tracked = [
        path for folder in ("plugins", "roles", "playbooks", "docs", "tests") for path in (REPO / folder).rglob("*")
    ]
    known = {"/" + path.relative_to(REPO).as_posix() for path in tracked if "collections" not in path.parts}
    name = re.compile(r"(?<![\w./{}<*-])(?:[\w-]+/)*[\w-]+\.(?:py|md)\b(?!\()")
    code = [path for path in tracked if path.suffix in (".py", ".yml") and path.relative_to(REPO).parts[0] == "plugins"]
    code += [path for path in tracked if path.suffix == ".yml" and path.relative_to(REPO).parts[0] == "roles"]
    missing = {
        (str(path), found)
        for path in code
        for found in name.findall(path.read_text(encoding="utf-8"))
        if found not in ("platform.py", "__main__.py", "rd.md") and not any(one.endswith("/" + found) for one in known)
    }
    assert len(code) > 400 and missing == set()
