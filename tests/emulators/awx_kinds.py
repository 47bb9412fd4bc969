# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX 24.6.1 keeps: the kinds of objects with their fields, links and roles, as its REST API v2 documents them."""

from __future__ import annotations

LINK, TEXT, FLAG, NUMBER, JSON = None, "", False, 0, {}
# {endpoint: (type, {field: value by default}, required fields, {field: endpoint that it leads to}, roles)}
KINDS = {
    "organizations": (
        "organization",
        {"description": TEXT},
        {"name"},
        {},
        [
            "admin",
            "member",
            "read",
            "execute",
            "project_admin",
            "inventory_admin",
            "credential_admin",
            "workflow_admin",
            "notification_admin",
            "job_template_admin",
            "execution_environment_admin",
            "auditor",
            "approval",
        ],
    ),
    "teams": (
        "team",
        {"description": TEXT},
        {"name", "organization"},
        {"organization": "organizations"},
        ["admin", "member", "read"],
    ),
    "execution_environments": (
        "execution_environment",
        {"description": TEXT, "pull": TEXT},
        {"name", "image"},
        {"organization": "organizations", "credential": "credentials"},
        [],
    ),
    "projects": (
        "project",
        {
            "description": TEXT,
            "scm_type": TEXT,
            "scm_url": TEXT,
            "scm_branch": TEXT,
            "scm_revision": TEXT,
            "local_path": TEXT,
            "scm_update_on_launch": FLAG,
            "scm_update_cache_timeout": NUMBER,
        },
        {"name", "organization"},
        {"organization": "organizations", "default_environment": "execution_environments", "credential": "credentials"},
        ["admin", "use", "update", "read"],
    ),
    "inventories": (
        "inventory",
        {"description": TEXT, "kind": TEXT, "host_filter": None, "variables": TEXT},
        {"name", "organization"},
        {"organization": "organizations"},
        ["admin", "use", "update", "adhoc", "read"],
    ),
    "inventory_sources": (
        "inventory_source",
        {
            "description": TEXT,
            "source": TEXT,
            "source_path": TEXT,
            "source_vars": TEXT,
            "overwrite": FLAG,
            "overwrite_vars": FLAG,
            "update_on_launch": FLAG,
            "update_cache_timeout": NUMBER,
        },
        {"name", "inventory", "source"},
        {
            "inventory": "inventories",
            "source_project": "projects",
            "credential": "credentials",
            "execution_environment": "execution_environments",
        },
        [],
    ),
    "credential_types": (
        "credential_type",
        {"description": TEXT, "kind": TEXT, "inputs": JSON, "injectors": JSON, "managed": FLAG},
        {"name", "kind"},
        {},
        [],
    ),
    "credentials": (
        "credential",
        {"description": TEXT, "inputs": JSON},
        {"name", "credential_type"},
        {"credential_type": "credential_types", "organization": "organizations"},
        ["admin", "use", "read"],
    ),
    "job_templates": (
        "job_template",
        {
            "description": TEXT,
            "job_type": "run",
            "playbook": TEXT,
            "limit": TEXT,
            "extra_vars": TEXT,
            "timeout": NUMBER,
            "job_slice_count": 1,
            "allow_simultaneous": FLAG,
            "survey_enabled": FLAG,
            "ask_limit_on_launch": FLAG,
            "ask_variables_on_launch": FLAG,
            "become_enabled": FLAG,
        },
        {"name", "project", "playbook"},
        {
            "project": "projects",
            "inventory": "inventories",
            "execution_environment": "execution_environments",
            "organization": "organizations",
        },
        ["admin", "execute", "read"],
    ),
    "workflow_job_templates": (
        "workflow_job_template",
        {
            "description": TEXT,
            "extra_vars": TEXT,
            "limit": None,
            "allow_simultaneous": FLAG,
            "survey_enabled": FLAG,
            "ask_limit_on_launch": FLAG,
            "ask_variables_on_launch": FLAG,
        },
        {"name"},
        {"organization": "organizations", "inventory": "inventories"},
        ["admin", "execute", "approval", "read"],
    ),
    "workflow_job_template_nodes": (
        "workflow_job_template_node",
        {"identifier": TEXT, "extra_data": JSON, "all_parents_must_converge": FLAG},
        {"workflow_job_template"},
        {"workflow_job_template": "workflow_job_templates", "unified_job_template": "unified_job_templates"},
        [],
    ),
    "workflow_approval_templates": (
        "workflow_approval_template",
        {"description": TEXT, "timeout": NUMBER},
        {"name"},
        {},
        [],
    ),
    "schedules": (
        "schedule",
        {"description": TEXT, "rrule": TEXT, "enabled": True, "extra_data": JSON},
        {"name", "rrule", "unified_job_template"},
        {"unified_job_template": "unified_job_templates"},
        [],
    ),
    "notification_templates": (
        "notification_template",
        {"description": TEXT, "notification_type": TEXT, "notification_configuration": JSON, "messages": None},
        {"name", "organization", "notification_type"},
        {"organization": "organizations"},
        [],
    ),
    "users": ("user", {"username": TEXT, "is_superuser": FLAG}, {"username"}, {}, []),
    "project_updates": ("project_update", {"status": TEXT}, set(), {}, []),
}
TEMPLATES = ("projects", "inventory_sources", "job_templates", "workflow_job_templates", "workflow_approval_templates")
# What of an organization AWX lets no team be.
PARTICIPATION = ("admin_role", "member_role")
LISTS = {
    "job_templates": ("credentials",),
    "workflow_job_templates": tuple(f"notification_templates_{when}" for when in ("started", "success", "error")),
    "workflow_job_template_nodes": ("success_nodes", "failure_nodes", "always_nodes", "credentials"),
}
