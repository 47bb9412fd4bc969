# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report that was built from a run folder, and its pages."""

from __future__ import annotations

import json
import re

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import assets, page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

STOPPED = generator.Drive("server-4", "SIM0004", generator.MODEL, 90_000, 40_000, "interrupted")


def made(run_dir, **options):
    return write_report.make(str(run_dir.parent), run_dir.name, **options)


def page(run_dir):
    return (run_dir / "report" / "index.html").read_text()


def drive_page(run_dir, host, drive):
    return (run_dir / "report" / page_names.drive_page(host, drive)).read_text()


def all_pages(run_dir):
    return [path.read_text() for path in sorted((run_dir / "report").rglob("*.html"))]


def without_plotly(html):
    """A supplier's page without what is not ours in it."""
    return html.replace(assets.script(), "")


def charts(html):
    """The data of a page's charts, in its order."""
    return [json.loads(text) for text in re.findall(r'class="chart-data">(.*?)</script>', html, re.DOTALL)]


def embedded(html, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', html, re.DOTALL).group(1))
