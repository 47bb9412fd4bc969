# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules really answer, in plays with drives and emulated vendors' tools, is what their documentation says:
RETURN, no key more, no key less, each of its type; and the attributes check_mode, diff_mode and idempotent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import vendor_lab

from ansible_collections.ssdlab.fleet.tests.fixtures import answers, elsewhere
from ansible_collections.ssdlab.fleet.tests.unit.plugins.modules import test_documentation as documentation

REPO = Path(__file__).resolve().parents[2]
MODULES = {path.stem for path in (REPO / "plugins/modules").glob("*.py") if path.stem != "__init__"}
TYPES = {"str": str, "path": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}
# Of Ansible itself. Its fact is where Python was found.
CORE = {
    "changed",
    "failed",
    "diff",
    "warnings",
    "deprecations",
    "invocation",
    "item",
    "ansible_facts",
    "failed_when_result",
}
RUN = "{{ ssd_decision.run.id }}"
STATE = {"state_dir": "{{ ssd_state_dir }}"}
ESXCLI = REPO / "tests/emulators/esxcli"
ESXI = {"record_dir": "{{ ssd_state_dir }}/esxi", "esxcli": str(ESXCLI)}
DEPTHS = [{"device": "naa.500a0751aaaa0001", "queue_depth": 255, "outstanding": 255}]
# Beside what the playbooks use. Each runs in check mode first, and twice.
BEFORE = [
    {"steady_state": {"values": [100, 101, 99, 100, 100]}},
    {"host_info": {"tools": ["sh", "no-such-tool"]}},
    {"host_checks": {"drives": "{{ ssd_drives }}", "traffic_s": 0}},
    {"tunables": {"concern": "queue"}},
    {"irq_affinity": {"irqs": [999999], "cpus": "0"}},
    {"boot_arguments": {"state": "absent", **STATE}},
    {"bmc_record": STATE},
    {"bmc_settings": {"state": "restored", **STATE}},
    {"drive_facts": {"discover": True, "drives": "{{ ssd_drives }}", **STATE}},
    {"retired_layers": {"drives": "{{ ssd_drives }}", **STATE}},
    {"rssdm": {"serial": "S1", "queue_depth": 256, "power_limiting": True, **STATE}},
    {"rssdm": {"state": "restored", **STATE}},
    {"iomemory": {"serial": "C1", "state": "detached", "pci_check": True, "bugreport": True, **STATE}},
    {
        "render_jobs": {
            "plan": "iomemory-guide",
            "platform": "windows",
            "device": r"\\.\PhysicalDrive1",
            "size_bytes": 10**12,
            "dest": "{{ ssd_results_dir }}/rendered",
        }
    },
    *({"esxi_device": {**ESXI, **given}} for given in ({"devices": DEPTHS}, {"state": "restored"})),
    {
        "ingest": {
            # Beside the results of the others.
            "results_dir": "{{ ssd_results_dir }}-elsewhere",
            "run_id": "elsewhere-1",
            "host": "win-1",
            "system": "Windows Server 2022",
            "drive": {"serial": "S1", "model": "M", "size_bytes": 10**9},
            "files": ["{{ ssd_results_dir | dirname }}/fio.json"],
        }
    },
]
AFTER = [
    {"run_info": {"run_id": RUN, "archive": True, **STATE}},
    {"collect": {"run_id": RUN, "results_dir": "{{ ssd_results_dir }}", **STATE}},
    {"find_run": {"results_dir": "{{ ssd_results_dir }}", "run_name": "qualify", "run_id": RUN}},
    {"message": {"results_dir": "{{ ssd_results_dir }}", "run_name": "qualify"}},
    {"host_job": {"state": "stopped", "run_id": RUN, **STATE}},
    {"host_job": {"state": "absent", "run_id": RUN, **STATE}},
    {"run_info": {"run_id": RUN, **STATE}},
]


def play(tasks):
    """A play of these, each in check mode first, and twice."""
    thrice = [
        {f"ssdlab.fleet.{module}": given, "check_mode": check}
        for task in tasks
        for module, given in task.items()
        for check in (True, False, False)
    ]
    return {"hosts": "ssd_servers", "gather_facts": False, "tasks": thrice}


@pytest.fixture
def heard(site, loop_drive, tmp_path):
    """[{module, check_mode, answer}] of a play with all modules, and of restore.yml after it."""
    lab = vendor_lab.furnished(site, tmp_path)
    lab.hosts["server"]["ssd_drives"] = [loop_drive().selector]
    short = dict(lab.vars["ssd_plan"][0], precondition=False)
    short["steady_state"] = dict(short["steady_state"], min_capacity_multiple=0, confirm_windows=0)
    lab.vars.update(ssd_plan=[short], ssd_retest=1, ssd_store_url=f"sqlite:///{tmp_path}/store.db")
    lab.vars.update(tune_queue={"nomerges": 2})
    shipped = [{"import_playbook": str(REPO / f"playbooks/{name}.yml")} for name in ("discover", "qualify")]
    book, kept = tmp_path / "own.yml", tmp_path / "answers.jsonl"
    (tmp_path / "fio.json").write_text(elsewhere.fio())
    book.write_text(json.dumps([play(BEFORE), *shipped, play(AFTER)]))
    environment = {
        **lab.environment,
        "ANSIBLE_COLLECTIONS_PATH": f"{REPO}/playbooks/collections:{REPO}/.ansible/collections",
        "ANSIBLE_CALLBACK_PLUGINS": str(REPO / "tests/fixtures/callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "ssdlab.fleet.fleet,kept_answers",
        "SSDLAB_FLEET_ANSWERS": str(kept),
        "ESXCLI_STATE": elsewhere.esxi_host(tmp_path / "esxi.json"),
    }
    for each in (book, "restore"):
        code, output = lab.play(each, "--diff", env=environment)
        assert code == 0, output
    return [json.loads(line) for line in kept.read_text().splitlines()]


def differences(given, about, where):
    """Where an answer, or a part of one, is not as documented."""
    unknown = {key for key in given if key not in about and not key.startswith("_ansible_")}
    found = [f"{where}: {key} is not documented" for key in sorted(unknown)]
    for key, entry in about.items():
        name, value = f"{where}.{key}", given.get(key)
        if key not in given:
            found += [f"{name} is missing"] if entry.get("returned", "success") in ("success", "always") else []
        elif value is None:
            continue
        elif not is_a(entry["type"], value):
            found.append(f"{name} is a {type(value).__name__} and not {entry['type']}")
        else:
            items = value if isinstance(value, list) else [value]
            if "elements" in entry:
                found += [f"{name} has a {item!r}" for item in items if not is_a(entry["elements"], item)]
            if "contains" in entry:
                found += [each for item in items for each in differences(item, entry["contains"], name)]
    return found


def is_a(kind, value):
    return isinstance(value, TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def assert_attributes(heard):
    """What check mode says comes, the second time changes nothing, and a diff is there where one is promised."""
    supports = {module: {name: each["support"] for name, each in attributes(module).items()} for module in MODULES}
    # Some keep there what -v would print (plugin_utils/common/task_results.py).
    shows = [bool({"before", "prepared"} & set(each["answer"].get("diff") or {})) for each in heard]
    wrong = [each for each, shown in zip(heard, shows) if shown != (supports[each["module"]]["diff_mode"] == "full")]
    assert not wrong, wrong
    count = 3 * len(BEFORE)
    end = max(number for number, each in enumerate(heard) if each["module"] == "run_info") + 1
    for shown in (heard[:count], heard[end - 3 * len(AFTER) : end]):
        for planned, done, again in zip(shown[::3], shown[1::3], shown[2::3]):
            assert [each["module"] for each in (planned, done, again)] == [done["module"]] * 3
            says = [each["answer"]["changed"] for each in (planned, done, again)]
            assert says[0] == says[1] or supports[done["module"]]["check_mode"] == "partial", (done, says)
            assert not says[2] or supports[done["module"]]["idempotent"] == "partial", again


def attributes(module):
    return documentation.read(module)["DOCUMENTATION"]["attributes"]


def test_every_answer_is_as_documented(heard):
    assert {each["module"] for each in heard} == MODULES
    found = {
        problem
        for each in heard
        for documented in [answers.documented(each["module"])]
        for problem in differences(
            {key: value for key, value in each["answer"].items() if key not in CORE or key in documented},
            documented,
            each["module"] + (" in check mode" if each["check_mode"] else ""),
        )
    }
    assert not found, "\n".join(sorted(found))
    assert_attributes(heard)
    for each in heard:
        assert set(each["answer"].get("ansible_facts", {})) <= {"discovered_interpreter_python"}, each
        looks = each["module"].endswith(("_info", "_facts")) or each["module"] in ("examine", "host_checks", "find_run")
        assert not (looks and each["answer"]["changed"]), each
