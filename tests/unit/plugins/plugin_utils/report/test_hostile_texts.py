# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts with which a drive's model, firmware, serial and messages would act on whoever reads a run: in the pages, the
files and what other programs read.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from xml.etree import ElementTree

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import (
    chat_message,
    download_files,
    run_sources,
    write_report,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import exports, ocptv
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

MARK = "4711"
TEXTS = {
    "script": f"</script><script>alert({MARK})</script>",
    "comment": f"<!--<script>{MARK}",
    "attribute": f"\" onmouseover='alert({MARK})' x=\"",
    "entity": f"&lt;img src=x onerror=alert({MARK})&gt;&#x3c;",
    "url": f"javascript:alert({MARK})",
    "link": f"https://evil.example/{MARK}",
    "css": f"</style><style>*{{background:url(//evil.example/{MARK})}}",
    "template": f"{{{{ lookup('pipe', 'echo {MARK}') }}}}{{% for x in y %}}",
    "javascript names": "__proto__",
    "javascript method": "constructor",
    "separators": f"a\u2028alert({MARK})\u2029\x00",
    "label": f'x",host="h"}} 1\nssdlab_fleet_drives{{run="{MARK}"}} 99\n\\',
    "xml": f"]]>&xxe;<!DOCTYPE a [<!ENTITY xxe SYSTEM 'file:///etc/passwd'>]>{MARK}\x0b\ufffe",
    "chat": f"<!channel> @here <@U{MARK}> [x](https://evil.example) www.evil.example evil.example **b**",
    "formula": f"=cmd|'/C calc'!{MARK}",
    "hidden": "\u202egpj.exe\u3164\ufe0f" + "\u0336" * 30,
    "surrogate": "\ud800\udfff\udc00",
}


class Pages(html.parser.HTMLParser):
    """Every tag with its attributes; what stands in scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self._in = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = tag == "script"
        if self._in:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in = False if tag == "script" else self._in

    def handle_data(self, data):
        if self._in:
            self.scripts[-1] += data


def tags_of(text):
    found = Pages()
    found.feed(text)
    found.close()
    return found


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """The tags of each page of a run whose hosts say nothing odd, without the values that differ."""
    run_dir = generator.make(tmp_path_factory.mktemp("honest"), rounds=6)
    return {name: shape(tags_of(text)) for name, text in written(run_dir)[1].items() if name.endswith(".html")}


def shape(page):
    return sorted({(tag, tuple(sorted(given))) for tag, given in page.tags})


def written(run_dir):
    run = write_report.load_run(str(run_dir.parent), run_dir.name)
    sources = run_sources.sources(str(run_dir), run, results_log.load_all(str(run_dir / "results.jsonl")))
    return sources, {name: text for name, text in write_report.files(sources, str(run_dir)) if isinstance(text, str)}


@pytest.mark.parametrize("what", TEXTS)
def test_what_a_drive_says_of_itself_acts_on_no_reader(tmp_path, honest, what):
    text, bad = TEXTS[what], generator.DEMO[0]
    run_dir = generator.make(tmp_path, rounds=6)
    path = run_dir / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["host"] == bad.host and line["kind"] == "drive":
            line["identity"].update(model=text, firmware=text, serial=text)
            line["message"] = text
        if line["host"] == bad.host and line["kind"] == "test":
            line.update(outcome="invalid", reasons=[text], title=text)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    sources, made = written(run_dir)
    pages = {name: tags_of(made[name]) for name in made if name.endswith(".html")}
    assert pages
    known = {tag for shapes in honest.values() for tag in shapes}
    for name, page in pages.items():
        assert [tag for tag, given in page.tags if any(key.startswith("on") for key in given)] == [], name
        for tag, given in page.tags:
            assert (tag, tuple(sorted(given))) in known or tag not in ("script", "style", "img", "meta", "iframe"), name
            target = given.get("href") or given.get("src") or ""
            assert not re.match(r"(?i)\s*(javascript|data|https?)?:?//|javascript:", target), name
        assert made[name].isprintable() or not re.search("[\u2028\u2029\u202e\u3164\ufe0f\x00\x0b]", made[name]), name
    assert json.loads(made["summary.json"])["drives"]
    suite = ElementTree.fromstring(made["junit.xml"].encode())
    assert len(suite.findall(".//testcase")) == len(generator.DEMO)
    rows = list(csv.reader(io.StringIO(made["results.csv"])))
    assert len(rows) == 1 + len(generator.DEMO)
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@", "\t") or cell[:2] == "-c"]
    sheet = list(csv.reader(io.StringIO(made["results-spreadsheet.csv"].lstrip("\ufeff"))))
    text = re.compile(r'="([^"]|"")*"')
    assert not [cell for row in sheet for cell in row if cell[:1] in ("=", "+", "@", "\t") and not text.fullmatch(cell)]
    of_other_programs(sources)


def of_other_programs(sources):
    """Prometheus, ocptv and a chat."""
    hosts = {name: (record["state"], record["message"]) for name, record in sources.hosts.items()}
    run = exports.StoredRun(sources.run, sources.judgement, hosts, {})
    sample = re.compile(r'ssdlab_fleet_[a-z0-9_]+\{([a-z]+="([^"\\\n]|\\[\\"n])*",?)+\} [0-9.e+-]+')
    for line in exports.prometheus_text(run).rstrip("\n").split("\n"):
        assert line.startswith("# ") or sample.fullmatch(line), line
    for drive in sources.judgement["drives"]:
        artifacts = [json.loads(line) for line in ocptv.lines(sources.run, drive, (None, None), {}).splitlines()]
        assert [artifact["sequenceNumber"] for artifact in artifacts] == list(range(len(artifacts)))
    said = chat_message.run_message(sources.run, sources.judgement)
    assert not re.search(r"[<>@\[\]{}|&`]|://|www\.\S|\w\.example", said), said
    assert download_files.spreadsheet_cell("\ufe0f=1")[:1] not in "=+-@"
