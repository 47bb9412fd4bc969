# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's own preconditions (packages, callback, results folder) and the run's record there."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import typing as t

CALLBACK = "ssdlab.fleet.fleet"
# (module, what pip calls it)
PACKAGES = (("jsonschema", "jsonschema"), ("jsonschema_rs", "jsonschema-rs"), ("plotly", "plotly"))


def missing_packages(packages: t.Iterable[tuple[str, str]] = PACKAGES) -> list[str]:
    """Return what this Python lacks, with the command that installs it."""
    missing = [name for module, name in packages if importlib.util.find_spec(module) is None]
    if not missing:
        return []
    return [
        (
            f"the controller's Python lacks {' and '.join(missing)}; run: {sys.executable} -m pip install "
            f"{' '.join(missing)}"
        )
    ]


def callback_findings(enabled: t.Sequence[str] | None, config_file: str | None) -> list[str]:
    """Return whether the callback that collects the results is enabled; it never enables itself. Names the lines to
    add.
    """
    names = [str(name).strip() for name in enabled or []]
    if CALLBACK in names:
        return []
    place = config_file or os.path.join(os.getcwd(), "ansible.cfg")
    wanted = ", ".join([*names, CALLBACK])
    overruled = (
        " (the environment variable ANSIBLE_CALLBACKS_ENABLED overrules that file)"
        if "ANSIBLE_CALLBACKS_ENABLED" in os.environ
        else ""
    )
    return [
        (
            f"the callback {CALLBACK} is not enabled, so no result would be kept. In {place}{overruled} set:\n    "
            f"[defaults]\n    callbacks_enabled = {wanted}"
        )
    ]


def folder_problem(path: str, keep: bool) -> str:
    """Return why files can't be written below a folder; "" if they can. Really writes one. `keep`: leave a
    folder made for it.
    """
    made: list[str] = []
    try:
        _make(path, made)
        handle, name = tempfile.mkstemp(dir=path, prefix=".preflight-")
        try:
            os.write(handle, b"preflight\n")
            os.fsync(handle)
        finally:
            os.close(handle)
            os.unlink(name)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    finally:
        if not keep:
            for folder in reversed(made):
                os.rmdir(folder)
    return ""


def _make(path: str, made: list[str]) -> None:
    """Make a folder and its parents; `made` gets those that were not there."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        os.mkdir(folder)
        made.append(folder)
