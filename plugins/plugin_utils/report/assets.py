# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plotly's script for the pages of drives: once for all runs of a results folder."""

from __future__ import annotations

import contextlib
import os

from ...module_utils.core.files import aside_prefix, write_atomic

NAME = "plotly.min.js"
SHARED = "assets"


def script() -> str:
    """Plotly's own script; imported late, since only a report needs the package."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text


def version() -> str:
    """Of plotly's script; part of its name, so that a newer one leaves the reports of older runs alone."""
    from plotly.offline import get_plotlyjs_version

    text: str = get_plotlyjs_version()
    return text


def put(results_dir: str, folder: str, write: bool = True) -> bool:
    """Bring <folder>/plotly.min.js about, and return whether something was (or would be) written. Raises OSError.

    It is a hard link to <results_dir>/assets/plotly-<version>.min.js: it takes its room once for all runs, and a run's
    folder that is copied alone has it all the same. Where the file system has no hard links it is a copy.
    """
    shared = os.path.join(results_dir, SHARED, f"plotly-{version()}.min.js")
    own = os.path.join(folder, NAME)
    if _is_whole(own, shared):
        return False
    if write:
        text = script()
        if text_of(shared) != text:
            os.makedirs(os.path.dirname(shared), exist_ok=True)
            write_atomic(shared, text)
        _link(shared, own, text)
    return True


def _is_whole(own: str, shared: str) -> bool:
    """Return whether the run has the script; one file with the shared one, or, where links are not to be had, a file of
    the same size.
    """
    try:
        mine, theirs = os.stat(own), os.stat(shared)
    except OSError:
        return False
    return os.path.samestat(mine, theirs) or mine.st_size == theirs.st_size > 0


def _link(shared: str, own: str, text: str) -> None:
    aside = os.path.join(os.path.dirname(own), f"{aside_prefix(NAME)}link")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside)
    try:
        os.link(shared, aside)
    except OSError:
        write_atomic(own, text)
        return
    try:
        os.replace(aside, own)
    finally:
        # Renaming a link onto its own file leaves both.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)


def text_of(path: str) -> str | None:
    """Return what a file holds; None where it is missing or no text."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
