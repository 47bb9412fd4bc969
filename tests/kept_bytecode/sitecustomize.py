# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what Python compiles of zip files, as it does by itself of folders.

Ansible sends each module to a host as a zip file of sources, and the engine is one. So each task compiled its hundred
files anew: a tenth of what a play costs a test. A Python with this folder on PYTHONPATH imports this file when it
starts, and keeps bytecode in $SSDLAB_FLEET_BYTECODE. What it imports itself, each process pays for: nothing but what
Python has at its start.
"""

import _imp
import marshal
import os
import sys
import zipimport

FOLDER = os.environ.get("SSDLAB_FLEET_BYTECODE", "")


class Importer(zipimport.zipimporter):
    """Takes the code of a source file from what an earlier process compiled of the same text, if there is such."""

    def get_filename(self, fullname):
        """The path of a module's source, without compiling it, as zipimport does."""
        name = fullname.rpartition(".")[2]
        if self.is_package(fullname):
            name = os.path.join(name, "__init__")
        return os.path.join(self.archive, self.prefix + name + ".py")

    def get_code(self, fullname):
        """The module's code."""
        path = self.get_filename(fullname)
        try:
            source = self.get_data(path)
        except OSError:  # compiled beforehand
            return super().get_code(fullname)
        # By the hash, of 64 bits, by which Python itself tells whether a kept file is of this source.
        name = f"{_imp.source_hash(0, source).hex()}-{len(source)}.{sys.implementation.cache_tag}"
        kept = os.path.join(FOLDER, name)
        # A file that another process of this user has damaged is compiled again.
        try:
            with open(kept, "rb") as file:
                code = marshal.load(file)
        except (OSError, ValueError, EOFError, TypeError):
            code = super().get_code(fullname)
            _keep(kept, code)
        else:
            _imp._fix_co_filename(code, path)
        return code


def _keep(path, code):
    """Keep it, if that is possible."""
    try:
        os.makedirs(FOLDER, exist_ok=True)
        with open(f"{path}.{os.getpid()}", "wb") as file:
            marshal.dump(code, file)
        os.replace(file.name, path)
    except OSError:
        pass


if FOLDER:
    sys.path_hooks.insert(0, Importer)
