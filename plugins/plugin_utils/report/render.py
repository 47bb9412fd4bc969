# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates to text: what comes from hosts is escaped here, in HTML and in the data of scripts."""

from __future__ import annotations

import functools
import json
import os
import typing as t

import jinja2
from markupsafe import Markup

from ..common import units

Record = dict[str, t.Any]

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


def html(template: str, view: Record) -> str:
    """Return a page from its template."""
    return environment().get_template(template).render(view)


def css() -> str:
    """Return the style of the pages that share it as a file."""
    return environment().get_template("report.css.j2").render() + "\n"


def script(*parts: str) -> str:
    """Scripts of pages that share them as a file, by their names."""
    return "\n".join(environment().get_template(f"{part}.js.j2").render() for part in parts) + "\n"


@functools.cache
def environment() -> jinja2.Environment:
    """Jinja with the report's templates and filters; it compiles each template once."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        figure=lambda value, metric: units.show(metric, value),
        rounded=units.rounded,
        percent=lambda ratio: units.rounded(100 * ratio, 3) + " %",
        data_size=units.data_size,
        duration=units.duration,
        script_data=script_data,
    )
    return made


def script_data(content: t.Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element, start markup or, as a line break
    that JSON does not know, a line.
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate is no character that a file could hold. Escaped above, for a script element rather than for HTML
    # text.
    return Markup(text.encode("utf-8", "backslashreplace").decode("utf-8"))
