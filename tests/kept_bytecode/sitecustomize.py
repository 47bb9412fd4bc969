# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what Python compiles of zip files, as it does by itself of folders.

Ansible sends each module to a host as a zip file of sources, and the engine is one. So each task compiled its hundred
files anew: a tenth of what a play costs a test. A Python with this folder on PYTHONPATH imports this file when it
starts, and keeps bytecode in $SSDLAB_FLEET_BYTECODE.
"""

import _imp
import contextlib
import hashlib
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
        kept = os.path.join(FOLDER, f"{hashlib.sha256(source).hexdigest()}.{sys.implementation.cache_tag}")
        # A file that another process of this user has damaged is compiled again.
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            with open(kept, "rb") as file:
                code = marshal.load(file)
            _imp._fix_co_filename(code, path)
            return code
        code = super().get_code(fullname)
        with contextlib.suppress(OSError):
            os.makedirs(FOLDER, exist_ok=True)
            with open(f"{kept}.{os.getpid()}", "wb") as file:
                marshal.dump(code, file)
            os.replace(file.name, kept)
        return code


if FOLDER:
    sys.path_hooks.insert(0, Importer)
