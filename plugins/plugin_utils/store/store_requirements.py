# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that the store takes beyond ansible-core. Without them this package still imports, and `missing` says
what to install.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import typing as t

sa: t.Any
postgresql: t.Any
sqlite: t.Any
try:
    sa = importlib.import_module("sqlalchemy")
    postgresql, sqlite = (importlib.import_module("sqlalchemy.dialects." + name) for name in ("postgresql", "sqlite"))
except ImportError:  # missing() says so before anything is asked of the store
    sa = postgresql = sqlite = None

# (module, what pip calls it): of every store, of tables and exports, of PostgreSQL.
STORE = (("sqlalchemy", "sqlalchemy"),)
TABLES = (("pandas", "pandas"), ("pyarrow", "pyarrow"))
POSTGRESQL = (("psycopg", "psycopg[binary]"),)


class StoreError(Exception):
    """The store cannot be used; the message says why and what to do."""


class ValuesRefused(StoreError):
    """The store takes what is written in general, but not these values: too large a number, too long a name."""


def missing(url: str = "", tables: bool = False) -> list[str]:
    """Return what this Python lacks for a store (of this URL; `tables`: to read it as tables), with the command that
    installs it.
    """
    wanted = STORE + (TABLES if tables else ()) + (POSTGRESQL if url.startswith("postgres") else ())
    names = [name for module, name in wanted if importlib.util.find_spec(module) is None]
    if not names:
        return []
    command = f"{sys.executable} -m pip install {' '.join(repr(name) if '[' in name else name for name in names)}"
    return [f"ssd_store_url: the controller's Python lacks {' and '.join(names)} for the store; run: {command}"]
