# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands of the command log only read. `destructive` is what the tests of wrong drives hold every command
against.
"""

from __future__ import annotations

import fnmatch
import os

# Argument lists that only read: a shell pattern for each word, `...` for any more of them. Everything else counts as
# destructive, so that a command that nobody thought of is one.
READ_ONLY = tuple(
    words.split()
    for words in (
        "* --version",
        "wipefs -n --json /dev/*",
        "blkid -p -o export /dev/*",
        "blkid -p -o export --offset * --size * /dev/*",
        "fio --name=traffic --readonly ...",
        "fio --name=trial --readonly ...",
        "dmidecode --type 17",
        "systemd-detect-virt *",
        "systemctl show ...",
        (
            "systemd-run --quiet --collect --unit=ssdlab-fleet-*.service ..."
        ),  # a host job, whose own commands are logged too
        "nvme version",
        "nvme smart-log /dev/* --output-format=json",
        "nvme id-ctrl /dev/* --output-format=json",
        "nvme id-ns /dev/* --namespace-id=* --output-format=json",
        "nvme ns-descs /dev/* --namespace-id=* --output-format=json",
        "nvme list-ns /dev/* --output-format=json",
        "nvme list-ns /dev/* --all --output-format=json",
        "nvme list-ctrl /dev/* --output-format=json",
        "nvme list-ctrl /dev/* --namespace-id=* --output-format=json",
        "nvme self-test-log /dev/* --output-format=json",
        "nvme sanitize-log /dev/* --output-format=json",
        "nvme resv-report /dev/* --output-format=json",
        "nvme resv-report /dev/* --eds --output-format=json",
        "nvme security-recv ...",
        "hdparm -V",
        "hdparm --Istdout /dev/*",
        "hdparm --sanitize-status /dev/*",
        "sg_raw --readonly --request=* /dev/* a2 ...",  # SECURITY PROTOCOL IN
        "sg_turs /dev/*",
        "sg_requests --hex /dev/*",
        "sg_opcodes ...",
        "sg_get_lba_status --readonly --hex --maxlen=* --lba=* /dev/*",
        "sg_persist --in --read-keys --hex ...",
        "smartctl --json=c -a ...",
        "smartctl --json=co -c -l selftest /dev/*",
    )
)


def destructive(argv):
    """Whether a logged argument list may change a drive: whatever is not known to only read."""
    words = [os.path.basename(argv[0]), *argv[1:]] if argv else []
    return not any(_matches(rule, words) for rule in READ_ONLY)


def _matches(rule, words):
    if rule[-1] == "...":
        rule, words = rule[:-1], words[: len(rule) - 1]
    return len(rule) == len(words) and all(fnmatch.fnmatchcase(word, pattern) for pattern, word in zip(rule, words))
