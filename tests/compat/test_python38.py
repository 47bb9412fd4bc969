# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine and every module under a real Python 3.8, the oldest on hosts. test_versions.py has a whole
run under it.
"""

from __future__ import annotations

import json
import subprocess

import pytest
import versions
from conftest import REPO

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import zipapp

OLDEST = versions.text(versions.OLDEST_ON_HOSTS)
# Of all modules, arguments that change nothing; those that need a tool of a vendor's fail, and say that it is missing.
ARGUMENTS = {
    "bmc_record": {"state_dir": "{state}"},
    "boot_arguments": {"state": "absent", "state_dir": "{state}"},
    "drive_facts": {"discover": True, "drives": [{"serial": "none"}]},
    "esxi_device": {"state": "facts"},
    "examine": {"run_info": {"state_dir": "{state}"}, "host_info": {}, "drive_facts": {}, "host_checks": {}},
    "host_checks": {"drives": [{"serial": "none"}]},
    "host_info": {},
    "host_job": {"state": "restored", "state_dir": "{state}"},
    "iomemory": {"state_dir": "{state}"},
    "irq_affinity": {"irqs": [999999], "cpus": "0"},
    "retired_layers": {"drives": [{"serial": "none"}], "state_dir": "{state}"},
    "rssdm": {"serial": "none", "state_dir": "{state}"},
    "run_info": {"state_dir": "{state}"},
    "steady_state": {"values": [100, 100, 100, 100, 100]},
    "tunables": {},
}
# These have no part that runs on a host.
ON_THE_CONTROLLER = {
    "bmc_settings",
    "collect",
    "drive_list",
    "find_run",
    "ingest",
    "message",
    "power_cut",
    "preflight",
    "render_jobs",
    "report",
    "retest",
    "store",
    "watch",
}
MAY_FAIL = {"esxi_device": "esxcli", "rssdm": "rssdm"}
IMPORT_ALL = """import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import ssdlab_fleet
names = [found.name for found in pkgutil.walk_packages(ssdlab_fleet.__path__, "ssdlab_fleet.")]
for name in names:
    importlib.import_module(name)
print(len(names))"""


@pytest.fixture(scope="module")
def python38():
    path = versions.pythons().get(versions.OLDEST_ON_HOSTS)
    if path is None:
        pytest.skip(f"no Python {OLDEST} in PATH or of pyenv; vermin has read the code all the same")
    return path


def test_every_file_of_the_engine_can_be_imported(python38, tmp_path):
    engine = zipapp.build("0.0.0")
    path = tmp_path / engine.name
    path.write_bytes(engine.data)
    done = subprocess.run(
        [python38, "-W", "error", "-c", IMPORT_ALL, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = [file.relative_to(zipapp.MODULE_UTILS).as_posix() for file in zipapp.MODULE_UTILS.rglob("*.py")]
    assert int(done.stdout) >= len([name for name in names if not name.startswith(zipapp.LEFT_OUT)]) > 70
    # It starts, and says what it does not know.
    asked = subprocess.run([python38, path, "nothing"], capture_output=True, text=True, check=False)
    assert asked.returncode == 2 and "usage" in asked.stderr, asked


def test_every_module_runs(python38, site, tmp_path):
    modules = {path.stem for path in (REPO / "plugins/modules").glob("*.py")}
    assert modules == {*ARGUMENTS, *ON_THE_CONTROLLER}
    try:
        # The newest ones take no Python 3.8 on hosts.
        site.tools = versions.core("oldest").tools
    except versions.Missing as missing:
        pytest.skip(str(missing))
    given = json.loads(json.dumps(ARGUMENTS).replace("{state}", str(site.state)))
    tasks = [
        {f"ssdlab.fleet.{name}": arguments, "register": f"of_{name}", "check_mode": True, "ignore_errors": True}
        for name, arguments in given.items()
    ]
    answers = "{{ {" + ", ".join(f"'{name}': of_{name}" for name in given) + "} | to_json }}"
    tasks.append({"ansible.builtin.copy": {"content": answers, "dest": str(tmp_path / "answers.json"), "mode": "0600"}})
    playbook = tmp_path / "own.yml"
    playbook.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, "tasks": tasks}]))
    site.vars["ansible_python_interpreter"] = python38
    site.hosts = {"rack1-07": {"ssd_drives": []}}
    code, output = site.play(playbook, env={"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks/collections")})
    assert code == 0, output
    found = json.loads((tmp_path / "answers.json").read_text())
    for name, answer in found.items():
        assert "module_stderr" not in answer and "exception" not in answer, answer
        assert not answer.get("failed") or MAY_FAIL.get(name, "never") in answer["msg"], answer
    assert found["host_info"]["host_info"]["python_version"].startswith(OLDEST + ".")
