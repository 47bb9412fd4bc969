# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test on this checkout: run_ansible_test.py sanity|units [ansible-test's options]

ansible-test wants the collection in a real folder .../ansible_collections/<namespace>/<name>, so its files are
copied to one below .cache, which also keeps its virtual environments between runs. It bootstraps pip by a script from a
site of its own; a stand-in that uses PyPI's pip wheel does the same, so that PyPI is all it needs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from ansible_test._internal.python_requirements import get_venv_packages

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache/ansible-test"
COPY = CACHE / "ansible_collections/ssdlab/fleet"
# Kept in the copy: ansible-test's own, and a git of its own, else it asks the checkout's, which ignores the copy.
# Left out: the links that make a checkout find itself; the collection has none.
KEPT, LEFT_OUT = ("tests/output/", ".git/"), ("playbooks/collections/", "collections/ansible_collections/")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
STAND_IN = """\
import sys

sys.path.insert(0, {wheel!r})
from pip._internal.cli.main import main

sys.exit(main(["install"] + [option for option in sys.argv[1:] if option not in ("--no-setuptools", "--no-wheel")]))
"""


def own_files():
    """The files that git knows or may come to know, as they are now in the working tree."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [
        name for name in listed.split("\0") if name and not name.startswith(LEFT_OUT) and os.path.lexists(ROOT / name)
    ]


def copy_files(names):
    wanted = {COPY / name for name in names}
    for folder, folders, files in os.walk(COPY, topdown=False):
        stale = [Path(folder, name) for name in files + folders if Path(folder, name).is_symlink() or name in files]
        for path in stale:
            if path not in wanted and not str(path.relative_to(COPY)).startswith(KEPT):
                path.unlink()
        if not os.listdir(folder):
            os.rmdir(folder)
    subprocess.run(["git", "init", "--quiet", COPY], check=True)
    for name in names:
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (COPY / name).unlink()
        shutil.copy2(ROOT / name, COPY / name, follow_symlinks=False)


def provide_pip(home):
    """Put the stand-in where ansible-test looks for its download."""
    version = get_venv_packages(SimpleNamespace(version=PYTHON))["pip"]
    script = home / f".ansible/test/cache/get_pip_{version.replace('.', '_')}.py"
    if script.exists():
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--dest",
            script.parent,
            f"pip=={version}",
        ],
        check=True,
    )
    wheel = next(script.parent.glob(f"pip-{version}-*.whl"))
    script.write_text(STAND_IN.format(wheel=str(wheel)))


def main(arguments):
    home = CACHE / "home"
    copy_files(own_files())
    provide_pip(home)
    # It finds Python by name in PATH, where another one may come first.
    tools = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(home), "PATH": f"{tools}:{os.environ['PATH']}"}
    reports = COPY / "tests/output/junit"
    shutil.rmtree(reports, ignore_errors=True)
    command = [tools / "ansible-test", *arguments, "--python", PYTHON, "--color", "no"]
    code = subprocess.run(command, cwd=COPY, env=environment, check=False).returncode
    if os.environ.get("RESULTS") and reports.exists():  # the folder that scripts/test gives each check
        shutil.copytree(reports, os.environ["RESULTS"], dirs_exist_ok=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
