# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lint the files that changed since this branch left main, those that git does not know yet included; on main itself:
since the last commit but one.

What the checks lint and sanity do for all files, as far as it can be said of a file alone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UPSTREAM = ("origin/main", "main")
# Of ansible-test's tests those that look at one file; the others are for the whole collection.
SANITY = ("compile", "pep8", "pylint", "validate-modules", "yamllint")
TYPED = ("plugins/module_utils/", "plugins/plugin_utils/")
# How a script for a shell begins, and one in Python.
SHELL = (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash", b"# shellcheck shell=")
PYTHON = (b"#!/usr/bin/env python",)


def git(*argv: str) -> str:
    """What a git command says; empty when it fails."""
    return subprocess.run(
        ["git", *argv], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout.strip()


def changed() -> list[str]:
    """The files that are not as they were at the base."""
    bases = [base for base in (git("merge-base", "HEAD", branch) for branch in UPSTREAM) if base]
    base = bases[0] if bases and bases[0] != git("rev-parse", "HEAD") else "HEAD~"
    names = git("diff", "--name-only", "--diff-filter=d", base).split("\n") + git(
        "ls-files", "--others", "--exclude-standard"
    ).split("\n")
    return sorted(name for name in set(names) if name and not (ROOT / name).is_symlink())


def begins(name: str, firsts: tuple[bytes, ...]) -> bool:
    """Whether a file begins in one of these ways."""
    with (ROOT / name).open("rb") as file:
        return file.readline().startswith(firsts)


def main() -> int:
    """Run each linter that has something to look at; 1 when one of them complains."""
    files = changed()
    print(f"{len(files)} changed files", *files, sep="\n  ", flush=True)
    python = [name for name in files if name.endswith(".py")]
    yaml = [name for name in files if name.endswith((".yml", ".yaml"))]
    sanity = [word for test in SANITY for word in ("--test", test)]
    shell = [name for name in files if begins(name, SHELL)]
    # The emulators of tools have no .py; ansible-test's sanity looks at none of them.
    ours = python + [name for name in files if "." not in Path(name).name and begins(name, PYTHON)]
    linters = (
        ["ruff", "check", "--force-exclude", *ours] if ours else [],
        ["ruff", "format", "--check", "--force-exclude", *ours] if ours else [],
        # A type that changed shows where it is used, so all of them are looked at.
        ["mypy"] if any(name.startswith(TYPED) for name in python) else [],
        ["ansible-lint", "--offline", "--strict", "--profile", "production", *yaml] if yaml else [],
        ["shellcheck", "-x", *shell] if shell else [],
        [sys.executable, "scripts/run_ansible_test.py", "sanity", *sanity, *python, *yaml] if python or yaml else [],
    )
    results = [subprocess.run(argv, cwd=ROOT, check=False).returncode for argv in linters if argv]
    return int(any(results))


if __name__ == "__main__":
    sys.exit(main())
