# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play did to the drives of a bench (wrong_drive.py, or the guest's lab), and that it did nothing to those that
had to stay.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from command_log import destructive

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import slug
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import refusals

_FINDING = re.compile(
    r"^- (?P<hosts>[^:]*): drive (?P<who>(?P<drive>.*?)(?: \(/dev/[^)]*\))?): (?P<code>[a-z_]+): (?P<message>.*)$"
)


def lines_of(path):
    """The records of a file of JSON lines; none where there is no file."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if os.path.exists(path) else []


class Destroyed(AssertionError):
    """Data that had to stay is gone, or what could have done that was run. scripts/test never excuses it by a second
    run (scripts/check_results.py).
    """


class Outcome:
    """What a play did. `findings`: {drive: {code: message}}, of preflight and of the host jobs; commands: every
    argument list that was run.
    """

    def __init__(self, bench, code, output, commands, journal):
        self.bench = bench
        self.code = code
        self.output = output
        self.commands = commands
        self.journal = journal
        self.changed = sorted(name for name, disk in bench.disks.items() if disk.has_changed())
        self.findings = {}
        for found in filter(None, map(_FINDING.match, output.splitlines())):
            self.findings.setdefault(found["drive"], {})[found["code"]] = f"{found['who']}: {found['message']}"
        for record in journal:
            if record["event"] == "drive_finished" and record["outcome"] == "refused":
                code, _colon, message = record["message"].partition(": ")
                self.findings.setdefault(record["drive"], {}).setdefault(code, message)
            if record["event"] == "guard":
                self.findings.setdefault(record["drive"], {}).update(
                    {refusal["code"]: refusal["message"] for refusal in record["refusals"]}
                )

    def codes(self, name):
        """The codes that a drive was refused with. `name`: a disk's, or what the inventory calls the drive."""
        return {
            code for code in self.findings.get(self._label(name), ()) if code in refusals.REFUSALS
        }  # host_checks have names of their own

    def message(self, name, code):
        """What the drive was told with that code."""
        return self.findings[self._label(name)][code]

    def _label(self, name):
        return self.bench.disks[name].label if name in self.bench.disks else name

    def results(self):
        """The records of results.jsonl that the site has."""
        return [record for path in sorted(self.bench.site.results.glob("*/results.jsonl")) for record in lines_of(path)]

    def told(self, host, text):
        """That preflight said this of an inventory name as a whole, and that nothing happened."""
        lines = [
            line
            for line in self.output.splitlines()
            if line.startswith("- ") and host in line.partition(": ")[0].split("- ", 1)[1].split(", ")
        ]
        assert any(text in line for line in lines), f"{host} was told {lines}"
        self.nothing_happened()

    def refused(self, name, *codes):
        """The four things that a case must show, and that the drive was refused for nothing else. `name`: as for
        `codes`.
        """
        self._data_stayed([name])
        said = self.findings.get(self._label(name), self.output)
        assert self.codes(name) == set(codes), f"{name} was refused with {said}, not {sorted(codes)}"
        for code in codes:
            message = self.message(name, code)
            assert self._label(name) in message and message.endswith(refusals.REFUSALS[code].remedy), message
        assert self.code != 0, self.output
        if name in self.bench.disks:
            self.untouched(name)
        else:
            self.nothing_happened()

    def untouched(self, name):
        """The drive's data is what it was, and nothing was run at it that could have changed it."""
        disk = self.bench.disks[name]
        self._data_stayed([name])
        assert self.commands, "the command log is empty: nothing was looked at, or it is not written\n" + self.output
        name_in_paths = slug(disk.label)  # in the paths of its fio jobs; loop1 is not loop10
        about = [
            argv
            for argv in self.commands
            if {disk.path, disk.node} & set(argv) or any(name_in_paths in word for word in argv)
        ]
        self._ran_nothing_destructive(about)

    def nothing_happened(self):
        """The play failed, no drive of the bench changed, nothing was run that could have changed one."""
        self._data_stayed(self.bench.disks)
        assert self.code != 0, self.output
        assert self.commands, "the command log is empty: nothing was looked at, or it is not written\n" + self.output
        self._ran_nothing_destructive(self.commands)

    def _data_stayed(self, names):
        changed = sorted(set(names) & set(self.changed))
        if changed:
            raise Destroyed(f"the data of {', '.join(changed)} has changed")

    @staticmethod
    def _ran_nothing_destructive(commands):
        seen = [argv for argv in commands if destructive(argv)]
        if seen:
            raise Destroyed(f"destructive commands were run: {seen}")
