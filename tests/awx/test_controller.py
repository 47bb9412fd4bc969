# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository as AWX's project, and playbooks/awx.yml with the real collection awx.awx against an emulated API
(tests/emulators/awx_api.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import awx_api
import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
SECRETS = ("hunter2", "calvin", "swordfish", "hooks/abc")
VARIABLES = {
    "awx_project_url": "https://git.example.com/ssdlab/fleet.git",
    "awx_image": "registry.example.com/ssd-fleet:1",
    "awx_slices": 3,
    "awx_credential_inputs": {
        "machine": {"username": "lab", "password": SECRETS[0]},
        "bmc": {"user": "root", "password": SECRETS[1]},
        "store": {"url": "postgresql://ssdlab@db.example.com/ssdlab", "password": SECRETS[2]},
        "webhook": {"url": f"https://chat.example.com/{SECRETS[3]}"},
        "known_hosts": {"keys": "rack1-07 ssh-ed25519 AAAA"},
    },
    "awx_failure_notification": {
        "notification_type": "email",
        "notification_configuration": {
            "host": "mail",
            "recipients": ["storage@example.com"],
            "sender": "awx@example.com",
        },
    },
    "awx_inventory_sources": [
        {"name": "racks", "source": "scm", "source_project": "ssdlab.fleet", "source_path": "inventories/cmdb"},
        # Whoever writes the variables can't have it otherwise.
        {"name": "kept", "source": "scm", "source_project": "ssdlab.fleet", "overwrite_vars": False},
    ],
}


def test_the_execution_environment_renders_and_takes_its_facts_from_their_owners(tmp_path):
    made = subprocess.run(
        ["ansible-builder", "create", "-f", str(REPO / "execution-environment.yml"), "-c", str(tmp_path)],
        cwd=REPO,
        text=True,
        capture_output=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    for owner, copied in {
        "requirements.txt": "requirements.txt",
        "execution-environment-collections.yml": "requirements.yml",
        "bindep.txt": "bindep.txt",
    }.items():
        assert (tmp_path / "_build" / copied).read_text() == (REPO / owner).read_text(), owner
    context = (tmp_path / "Containerfile").read_text()
    assert "--user-pip=requirements.txt --user-bindep=bindep.txt" in context and "collection install" in context
    assert "openssh" in (REPO / "bindep.txt").read_text()


def test_awx_finds_what_it_reads_at_the_projects_root():
    config = (REPO / "ansible.cfg").read_text()
    assert "callbacks_enabled = ssdlab.fleet.fleet" in config
    wanted = yaml.safe_load((REPO / "galaxy.yml").read_text())["dependencies"]
    listed = yaml.safe_load((REPO / "execution-environment-collections.yml").read_text())["collections"]
    assert {entry["name"]: entry["version"] for entry in listed} == wanted
    templates = yaml.load((REPO / "roles/awx/vars/main.yml").read_text(), Unsafe)["__awx_templates"]
    assert [entry["playbook"] for entry in templates.values() if not (REPO / entry["playbook"]).is_file()] == []


def test_the_dynamic_inventory_names_the_drives_to_qualify_and_no_others():
    """As AWX asks for a source's hosts."""
    argv = ["ansible-inventory", "-i", str(REPO / "inventories/cmdb"), "--list", "--export"]
    done = subprocess.run(argv, cwd=REPO, text=True, capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert told["ssd_servers"]["hosts"] == ["rack1-07", "rack1-08"] and told["rack2"]["hosts"] == [
        "rack2-01",
        "rack2-02",
    ]
    assert {name: host["ssd_drives"] for name, host in told["_meta"]["hostvars"].items()} == {
        "rack1-07": [{"serial": "22123A4F5B6C"}],
        "rack1-08": [{"wwn": "eui.00a0750122123a4f"}],
        "rack2-01": [],
        "rack2-02": [],
    }
    assert told["ssd_servers"]["vars"]["ssd_plan"] == ["wsat", "iops"]


class Unsafe(yaml.SafeLoader):
    """YAML with Ansible's tag for texts that are no templates."""


Unsafe.add_constructor("!unsafe", lambda loader, node: node.value)


def play(server, tmp_path, *arguments):
    (tmp_path / "variables.json").write_text(json.dumps(VARIABLES))
    done = subprocess.run(
        ["ansible-playbook", "playbooks/awx.yml", "-e", f"@{tmp_path}/variables.json", *arguments],
        cwd=REPO,
        env={**os.environ, **server.environment, "ANSIBLE_NOCOLOR": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert not [secret for secret in SECRETS if secret in done.stdout + done.stderr]
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """AWX as the playbook made it, and the second run."""
    folder = tmp_path_factory.mktemp("awx")
    with awx_api.Server() as server:
        first = play(server, folder)
        assert first.returncode == 0, first.stdout + first.stderr
        # What somebody did by hand before the second run.
        controller = server.controller
        start = by_name(controller, "job_templates")["SSD start"]
        user = controller.add("users", {"username": "mallory"})
        role = f"{controller.base}roles/{start['summary_fields']['object_roles']['execute_role']['id']}/users/"
        controller.associate(role, {"id": user["id"]})
        (schedule,) = controller.objects["schedules"].values()
        schedule["enabled"] = False
        controller.changes.clear()
        yield controller, play(server, folder)


def by_name(controller, endpoint):
    return {item["name"]: item for item in controller.objects[endpoint].values()}


def teams(controller, item):
    """{role: teams that have it on an object}."""
    found = {}
    for role, about in item["summary_fields"]["object_roles"].items():
        numbers = controller.members.get(f"{controller.base}roles/{about['id']}/teams/", [])
        found[role] = {controller.objects["teams"][number]["name"] for number in numbers}
    return {role: names for role, names in found.items() if names}


def test_a_second_run_changes_nothing(made):
    controller, second = made
    assert second.returncode == 0 and "changed=0 " in second.stdout, second.stdout
    assert controller.changes == []
    (schedule,) = controller.objects["schedules"].values()
    assert schedule["enabled"] is False, "who disabled it had a reason"
    assert (
        "SSD start: user mallory has the role execute" in second.stdout
        and "awx_prune=true takes it away" in second.stdout
    )


def test_operators_may_plan_but_not_erase(made):
    controller, _second = made
    templates = by_name(controller, "job_templates")
    operated = {
        name for name, item in templates.items() if "SSD operators" in teams(controller, item).get("execute_role", ())
    }
    assert operated == {f"SSD {name}" for name in ("discover", "plan", "watch", "collect", "report", "stop")}
    for name in operated:
        item = templates[name]
        survey = controller.surveys.get(f"{item['url']}survey_spec/", {"spec": []})
        assert json.loads(item["extra_vars"]).get("ssd_mode", "plan") == "plan", name
        assert (
            "ssd_mode" not in [question["variable"] for question in survey["spec"]]
            and item["ask_variables_on_launch"] is False
        ), name
    assert [
        role
        for item in [*templates.values(), *by_name(controller, "workflow_job_templates").values()]
        for role, names in teams(controller, item).items()
        if "SSD operators" in names and role not in ("execute_role", "read_role")
    ] == []
    assert "SSD operators" not in teams(controller, by_name(controller, "workflow_job_templates")["SSD nightly"]).get(
        "execute_role", ()
    )
    assert teams(controller, by_name(controller, "organizations")["SSD lab"])["approval_role"] == {"SSD administrators"}


def nodes(controller, workflow):
    """{node: {outcome: the nodes after it}}, and what each is."""
    number = by_name(controller, "workflow_job_templates")[workflow]["id"]
    mine = {
        item["id"]: item
        for item in controller.objects["workflow_job_template_nodes"].values()
        if item["workflow_job_template"] == number
    }
    after = {
        item["identifier"]: {
            outcome: [
                mine[other]["identifier"] for other in controller.members.get(f"{item['url']}{outcome}_nodes/", [])
            ]
            for outcome in ("success", "failure", "always")
        }
        for item in mine.values()
    }
    kinds = {
        item["identifier"]: controller.find("unified_job_templates", item["unified_job_template"])
        for item in mine.values()
    }
    return after, kinds


@pytest.mark.parametrize(
    "workflow, first",
    [("SSD nightly", ["update", "plan"]), ("SSD qualification with approval", ["update", "plan", "approve"])],
)
def test_a_workflow_goes_from_the_plan_to_the_message_whatever_a_step_ends_with(made, workflow, first):
    after, kinds = nodes(made[0], workflow)
    path = [*first, "start", "watch-1", "watch-2", "watch-3", "watch-4", "collect", "report", "notify", "end"]
    assert set(after) == set(path)
    for name, following in zip(path, path[1:]):
        assert after[name]["success" if name in (*first, "notify") else "always"] == [following], name
    assert kinds["update"]["type"] == "project", "a night measures with the newest commit"
    # Nothing leads round the approval.
    assert [name for name in after if "start" in sum(after[name].values(), [])] == [first[-1]]
    assert kinds[first[-1]]["type"] == ("workflow_approval_template" if "approve" in first else "job_template")


@pytest.mark.parametrize(
    "endpoint, template, given, refused",
    [
        ("workflow_job_template_nodes", "SSD plan", {"ssd_mode": "destructive"}, "Variables ssd_mode are not allowed"),
        ("workflow_job_template_nodes", "SSD plan", {"ssd_run_name": "other"}, ""),
        ("workflow_job_template_nodes", "SSD cleanup", {"ssd_run_id": "r", "x": 1}, "Variables x are not allowed"),
        ("schedules", "SSD nightly", {"ssd_overlap": "skip"}, "Workflow Job Template to include Extra Variables"),
    ],
)
def test_awx_takes_no_variable_that_a_template_does_not_ask_for(made, endpoint, template, given, refused):
    """Why the nodes have none: what a template is to do stands in the template, and artifacts carry the rest."""
    controller, _second = made
    ids = {
        item["name"]: item["id"]
        for kind in awx_api.TEMPLATES
        for item in controller.objects[kind].values()
        if "name" in item
    }
    workflow = by_name(controller, "workflow_job_templates")["SSD nightly"]["id"]
    asked = {
        "workflow_job_template_nodes": {"workflow_job_template": workflow, "identifier": f"{template} {sorted(given)}"},
        "schedules": {"name": "another", "rrule": "DTSTART;TZID=Etc/UTC:20260101T200000 RRULE:FREQ=DAILY;INTERVAL=1"},
    }[endpoint]
    kept, changes = dict(controller.objects[endpoint]), list(controller.changes)
    try:
        controller.add(endpoint, {**asked, "unified_job_template": ids[template], "extra_data": given})
        said = ""
    except awx_api.Refused as error:
        said = json.dumps(error.args[1])
    finally:
        controller.objects[endpoint], controller.changes = kept, changes
    assert refused in said and bool(said) == bool(refused)


def test_a_watch_ends_before_awx_ends_it_and_slices_are_where_hosts_are_asked(made):
    templates = by_name(made[0], "job_templates")
    assert json.loads(templates["SSD watch"]["extra_vars"])["ssd_watch_for_s"] < templates["SSD watch"]["timeout"]
    assert json.loads(templates["SSD start"]["extra_vars"])["ssd_slice"] in (True, "True")
    assert {name for name, item in templates.items() if item["job_slice_count"] == 3} == {
        "SSD start",
        "SSD watch",
        "SSD collect",
    }


def test_a_start_needs_the_plan_that_was_approved_and_nobody_can_give_it_another(made):
    """A survey or a prompt that took these variables would stand over the artifacts of the plan."""
    controller, _second = made
    start = by_name(controller, "job_templates")["SSD start"]
    assert json.loads(start["extra_vars"])["ssd_approval"] == "required"
    asked = {question["variable"] for survey in controller.surveys.values() for question in survey["spec"]}
    assert not asked & {"ssd_approved_plan", "ssd_approval"}
    for kind in ("job_templates", "workflow_job_templates"):
        for name, item in by_name(controller, kind).items():
            assert item["ask_variables_on_launch"] is False, name
            assert "ssd_approved_plan" not in (item["extra_vars"] or ""), name


def test_what_a_source_no_longer_says_of_a_host_is_gone_in_awx_too(made):
    """AWX merges variables otherwise: a drive that was removed from the source would stay, and be erased."""
    sources = by_name(made[0], "inventory_sources")
    assert {name: item["overwrite_vars"] for name, item in sources.items()} == {"racks": True, "kept": True}


def test_secrets_reach_jobs_by_credentials_alone(made):
    controller, _second = made
    types = by_name(controller, "credential_types")
    assert types["SSD fleet store"]["injectors"] == {
        "extra_vars": {"ssd_store_url": "{{ url }}"},
        "env": {"PGPASSWORD": "{{ password }}"},
    }
    elsewhere = {endpoint: items for endpoint, items in controller.objects.items() if endpoint != "credentials"}
    assert not [secret for secret in SECRETS if secret in json.dumps(elsewhere)]
    assert set(by_name(controller, "credentials")) == {
        "SSD machine",
        "SSD BMC",
        "SSD store",
        "SSD webhook",
        "SSD known hosts",
    }


@pytest.mark.parametrize(
    "given, told",
    [
        ("awx_image=", "Set awx_project_url"),
        ('{"awx_credential_inputs": {"machine": {"username": "lab"}}}', "without a store start would find no plan"),
        ("awx_collection=ansible.controller", "The collection ansible.controller is not on this machine"),
        ("awx_schedule=DTSTART:20260101T200000Z RRULE:FREQ=DAILY", "AWX's schedules need DTSTART and INTERVAL"),
    ],
)
def test_what_cant_work_is_refused_before_anything_is_made(tmp_path, given, told):
    with awx_api.Server() as server:
        refused = play(server, tmp_path, "-e", given)
        assert refused.returncode != 0 and told in " ".join(refused.stdout.split()), refused.stdout
        assert server.controller.changes == []


def along(after, first, fails):
    """{node: status} of the nodes of a workflow that run where some fail. The last one fails as end_night.yml: unless
    the report found all well.
    """
    statuses, following = {}, [first]
    while following:
        node = following.pop(0)
        bad = statuses.get("report") != "successful" if node == "end" else node in fails
        statuses[node] = "failed" if bad else "successful"
        following += after[node]["always"] + after[node]["failure" if bad else "success"]
    return statuses


def workflow_status(after, statuses):
    """What a workflow ends with: `failed` where a node failed from which no path leads on for that. after: {node:
    {outcome: nodes}}; statuses: {node: status} of those that ran (awx/main/scheduler/dag_workflow.py).
    """
    failed = [node for node, status in statuses.items() if status != "successful"]
    return "failed" if any(not after[node]["failure"] + after[node]["always"] for node in failed) else "successful"


@pytest.mark.parametrize(
    "fails, red",
    [
        (set(), False),
        ({"plan"}, True),
        ({"report"}, True),
        ({"notify"}, True),
        ({"update", "notify"}, True),
        # What follows made up for it.
        ({"watch-1"}, False),
    ],
)
def test_a_bad_night_is_red(made, fails, red):
    """AWX calls a workflow successful whose failed jobs were followed by others."""
    after, _kinds = nodes(made[0], "SSD nightly")
    assert workflow_status(after, along(after, "update", fails)) == ("failed" if red else "successful")


def test_a_night_that_never_began_is_heard_of_and_its_message_depends_on_no_inventory(made):
    controller, _second = made
    (notification,) = controller.objects["notification_templates"].values()
    for item in by_name(controller, "workflow_job_templates").values():
        assert controller.members[f"{item['url']}notification_templates_error/"] == [notification["id"]]
    sources = {item["inventory"] for item in controller.objects["inventory_sources"].values()}
    for name in ("SSD notify", "SSD end"):
        assert by_name(controller, "job_templates")[name]["inventory"] not in sources
    assert {item["update_cache_timeout"] for item in controller.objects["inventory_sources"].values()} == {900}
    (project,) = controller.objects["projects"].values()
    assert project["scm_update_on_launch"] is False


def test_a_plan_is_launched_by_the_api_without_any_answer(made):
    controller, _second = made
    template = by_name(controller, "job_templates")["SSD plan"]
    job = controller.launch(template, {})
    assert job["extra_vars"]["ssd_hosts"] == "ssd_servers" and job["extra_vars"]["ssd_run_name"] == "qualify"


def test_no_template_asks_for_a_limit(made):
    """AWX slices before it limits, and Ansible fails for a slice of which the limit leaves nothing."""
    for kind in ("job_templates", "workflow_job_templates"):
        for name, item in by_name(made[0], kind).items():
            assert item["ask_limit_on_launch"] is False, name
    workflow = by_name(made[0], "workflow_job_templates")["SSD qualification with approval"]
    assert "ssd_hosts" in [question["variable"] for question in made[0].questions(workflow)]


def test_host_keys_are_checked_with_those_of_a_credential(made):
    injected = by_name(made[0], "credential_types")["SSD fleet known hosts"]["injectors"]
    assert injected["extra_vars"] == {
        "ansible_host_key_checking": "true",
        "ansible_ssh_extra_args": "-o UserKnownHostsFile={{ tower.filename }}",
    }


def test_what_others_added_is_taken_away_if_that_is_asked_for(tmp_path):
    """Behind the gateway's prefix of AAP 2.5."""
    with awx_api.Server("/api/controller/") as server:
        first = play(server, tmp_path)
        assert first.returncode == 0, first.stdout + first.stderr
        controller = server.controller
        start = by_name(controller, "job_templates")["SSD start"]
        user = controller.add("users", {"username": "mallory"})
        role = f"{controller.base}roles/{start['summary_fields']['object_roles']['execute_role']['id']}/users/"
        controller.associate(role, {"id": user["id"]})
        workflow = by_name(controller, "workflow_job_templates")["SSD nightly"]
        node = {"workflow_job_template": workflow["id"], "identifier": "mine", "unified_job_template": start["id"]}
        controller.add("workflow_job_template_nodes", node)
        start["become_enabled"] = True
        again = play(server, tmp_path, "-e", "awx_prune=true")
        assert again.returncode == 0, again.stdout + again.stderr
        for text in ("SSD start: user mallory has the role execute", "SSD nightly: node mine"):
            assert text in again.stdout, again.stdout
        assert controller.members[role] == [] and start["become_enabled"] is False
        assert "mine" not in [each["identifier"] for each in controller.objects["workflow_job_template_nodes"].values()]


# As the documentation of ansible.platform 2.5 has them (its modules organization and team).
OF_GATEWAY = {
    "organization": {"name", "new_name", "description", "state"},
    "team": {"name", "new_name", "description", "organization", "new_organization", "state"},
}


def test_the_gateway_is_given_only_arguments_that_it_documents():
    tasks = yaml.safe_load((REPO / "roles/awx/tasks/base.yml").read_text())
    given = {task["action"]: set(task["args"]) for task in tasks if "__awx_gateway" in task["action"]}
    assert len(given) == len(OF_GATEWAY)
    for name, known in OF_GATEWAY.items():
        assert given[f"{{{{ __awx_gateway }}}}.{name}"] <= known
