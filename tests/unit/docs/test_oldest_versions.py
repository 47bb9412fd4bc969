# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest versions that docs/install.md names are those of the code and of the recorded lines of kernels."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_findings

ROOT = Path(__file__).resolve().parents[3]
LINE = re.compile(r"^\*\*Oldest versions\*\*: (?:.+\n)+", re.MULTILINE)


def told(what):
    (line,) = LINE.findall((ROOT / "docs/install.md").read_text(encoding="utf-8"))
    return re.findall(rf"{what} (\d+\.\d+)", line)


def test_of_the_kernel_its_recorded_words():
    sources = yaml.safe_load((ROOT / "tests/fixtures/kernel_log/lines.yml").read_text(encoding="utf-8"))
    versions = [str(line["linux"]).partition(" to ")[0] for source in sources for line in source["lines"]]
    oldest = min(versions, key=lambda version: [int(part) for part in version.split(".")])
    assert told("Linux") == [oldest]


def test_of_fio_what_preflight_takes():
    assert told("fio") == [argument_specs.options("ssd")["ssd_fio_min_version"]["default"]]


def test_of_util_linux_what_preflight_takes():
    assert told("util-linux") == [host_findings.SETPRIV_SINCE]


def test_of_ansible_core_what_the_collection_takes():
    (least,) = re.findall(r">=(\d+\.\d+)\.0", (ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
    assert told("ansible-core") == [least]


def test_of_python_what_the_table_below_it_has():
    rows = re.findall(
        r"^\| 2\.\d+.* \| (3\.\d+) to .* \| (3\.\d+) to", (ROOT / "docs/install.md").read_text("utf-8"), re.MULTILINE
    )
    on_controllers, on_servers = (min(found, key=lambda text: int(text[2:])) for found in zip(*rows))
    assert told("Python") == [on_servers, on_controllers]
