# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx's settings of the docs site, which scripts/docs builds."""

project = "ssdlab.fleet"
copyright = "2026, the ssdlab.fleet authors"  # noqa: A001
extensions = ["myst_parser", "sphinx_antsibull_ext", "sphinxcontrib.mermaid"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
html_theme = "sphinx_ansible_theme"
html_title = "ssdlab.fleet"
html_show_sourcelink = False
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# Pages link to files of the checkout, and modules' pages to Ansible's own: neither is a page of the site.
suppress_warnings = ["myst.xref_missing", "ref.ref", "misc.highlighting_failure"]
