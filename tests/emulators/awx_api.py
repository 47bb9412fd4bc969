# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server as AWX 24.6.1 documents it (REST API v2: /api/v2/, as its browsable API and `awx.awx` 24.6.1 use it),
in memory, over plain HTTP.

It stands in for AWX where playbooks/awx.yml is tested: lists with filters and pages, creation with required fields and
links that have to lead somewhere, PATCH, associations, surveys, approval nodes, roles. Secrets come back as
$encrypted$. It runs no job. What AWX refuses and what it does:
- a team gets no role admin or member of an organization;
- a workflow's node and a schedule give a template only variables that its survey asks for, unless it prompts for any;
- a schedule's rule needs DTSTART and INTERVAL;
- a launch needs each answer that a survey requires, whatever its default is.
prefix: below which path its API is: "/api/", or "/api/controller/" behind the gateway of AAP 2.5.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from awx_kinds import KINDS, LINK, LISTS, PARTICIPATION, TEMPLATES

VERSION = "24.6.1"
TOKEN = "emulated"
SECRET = "$encrypted$"
PAGE = 25
RULE = {"DTSTART": "Valid DTSTART required in rrule.", "INTERVAL": "INTERVAL required in rrule."}


class Refused(Exception):
    """An answer that is an error: (status, content)."""


class Controller:
    """What AWX holds: {id: object} for each endpoint. changes: of the objects themselves, not of tokens."""

    def __init__(self, prefix="/api/"):
        self.base = f"{prefix}v2/"
        self.objects = {endpoint: {} for endpoint in KINDS}
        self.members, self.surveys, self.roles, self.changes = {}, {}, {}, []
        self._next = itertools.count(1)
        fields = [{"id": "username"}, {"id": "password", "secret": True}, {"id": "ssh_key_data", "secret": True}]
        self.add("credential_types", {"name": "Machine", "kind": "ssh", "inputs": {"fields": fields}, "managed": True})
        self.me = self.add("users", {"username": "admin", "is_superuser": True})
        self.changes.clear()

    def add(self, endpoint, given):
        """Create an object as a POST does."""
        kind, defaults, required, links, roles = KINDS[endpoint]
        missing = {name: ["This field is required."] for name in required if given.get(name) in (None, "")}
        if missing:
            raise Refused(400, missing)
        if endpoint == "schedules":
            refuse_rule(given["rrule"])
        unique = [
            name
            for name in (
                "name",
                "username",
                "identifier",
                "organization",
                "inventory",
                "workflow_job_template",
                "credential_type",
            )
            if name in given
        ]
        if any(all(other.get(name) == given[name] for name in unique) for other in self.objects[endpoint].values()):
            raise Refused(400, {"__all__": [f"{kind} with these values already exists."]})
        number = next(self._next)
        url = f"{self.base}{endpoint}/{number}/"
        item = {
            "id": number,
            "type": kind,
            "url": url,
            "related": {"survey_spec": url + "survey_spec/"},
            "summary_fields": {},
        }
        self._fill(
            endpoint,
            {**item, **{name: LINK for name in links}, **dict(defaults.items())},
            given,
            links,
        )
        made = self.objects[endpoint][number] = self._last
        made["summary_fields"]["object_roles"] = {f"{role}_role": self._role(endpoint, number, role) for role in roles}
        if endpoint == "projects":
            update = self.add("project_updates", {"status": "successful"})
            made["summary_fields"]["current_update"] = {"id": update["id"]}
        self.changes.append(("POST", url))
        return made

    def _role(self, endpoint, number, role):
        key = next(self._next)
        self.roles[key] = (endpoint, number, f"{role}_role")
        return {"id": key, "name": role}

    def change(self, endpoint, item, given):
        """Change an object as a PATCH does; fields that it has not are ignored, as by AWX."""
        links = KINDS[endpoint][3]
        self._fill(endpoint, item, given, links)
        item.update(self._last)
        self.changes.append(("PATCH", item["url"]))
        return item

    def _fill(self, endpoint, item, given, links):
        item = dict(item, related=dict(item["related"]))
        for name, value in given.items():
            if name in links and value not in (None, "") and self.find(links[name], value) is None:
                raise Refused(400, {name: [f'Invalid pk "{value}" - object does not exist.']})
            if name in item or name in ("name", "image"):
                kept = dict(item.get(name) or {}) if name == "inputs" and endpoint == "credentials" else {}
                item[name] = (
                    {key: kept.get(key) if part == SECRET else part for key, part in value.items()} if kept else value
                )
        if "extra_data" in item and item.get("unified_job_template"):
            template = self.find("unified_job_templates", item["unified_job_template"])
            self._refuse_unasked(template, item["extra_data"])
            item["related"]["unified_job_template"] = template["url"]
        self._last = item

    def _refuse_unasked(self, template, variables):
        """What a node or a schedule may give (awx/api/serializers.py, LaunchConfigurationBaseSerializer)."""
        unasked = sorted(set(variables) - {question["variable"] for question in self.questions(template)})
        if unasked and not template.get("ask_variables_on_launch"):
            text = (
                f"Variables {', '.join(unasked)} are not allowed on launch. Check the Prompt on Launch setting on the "
                f"{template['type'].replace('_', ' ').title()} to include Extra Variables."
            )
            raise Refused(400, {"extra_vars": [text]})

    def questions(self, template):
        """The questions of a template's survey, where it is on."""
        survey = self.surveys.get(template["related"]["survey_spec"]) if template.get("survey_enabled") else None
        return (survey or {"spec": []})["spec"]

    def launch(self, template, given):
        """What a launch makes of a template: its job's variables (awx/main/models/mixins.py)."""
        answers = given.get("extra_vars") or {}
        if self.find("inventories", template.get("inventory") or 0) is None:
            raise Refused(400, {"inventory": ["Job Template inventory is missing or undefined."]})
        lacking = [
            f"'{question['variable']}' value missing"
            for question in self.questions(template)
            if question.get("required") and question["variable"] not in answers
        ]
        if lacking:
            raise Refused(400, {"variables_needed_to_start": lacking})
        defaults = {each["variable"]: each["default"] for each in self.questions(template) if each.get("default")}
        return {"type": "job", "extra_vars": {**json.loads(template["extra_vars"] or "{}"), **defaults, **answers}}

    def find(self, endpoint, number):
        """An object by its id; None."""
        places = TEMPLATES if endpoint == "unified_job_templates" else (endpoint,)
        return next((self.objects[place][int(number)] for place in places if int(number) in self.objects[place]), None)

    def listed(self, endpoint, query):
        """The objects that a list's filters leave."""
        places = TEMPLATES if endpoint == "unified_job_templates" else (endpoint,)
        alternatives = {name[4:]: value for name, value in query.items() if name.startswith("or__")}
        exact = {
            name: value
            for name, value in query.items()
            if not name.startswith("or__") and name not in ("page", "page_size")
        }
        found = [item for place in places for item in self.objects[place].values()]
        for name in exact:
            if any(name.partition("__")[0] not in item for item in found[:1]):
                raise Refused(400, {"detail": f"{endpoint} has no field named '{name}'"})
        found = [item for item in found if all(matches(item, name, value) for name, value in exact.items())]
        return [
            item
            for item in found
            if not alternatives or any(str(item.get(name)) == value for name, value in alternatives.items())
        ]

    def shown(self, item):
        """An object as AWX tells it: without its secrets."""
        if item["type"] != "credential":
            return item
        fields = self.objects["credential_types"][item["credential_type"]]["inputs"].get("fields", [])
        secret = {field["id"] for field in fields if field.get("secret")}
        return {**item, "inputs": {name: SECRET if name in secret else value for name, value in item["inputs"].items()}}

    def associate(self, url, given):
        """Add to a list below an object, or take away from it."""
        role = re.fullmatch(rf"{self.base}roles/(\d+)/teams/", url)
        if role and self.roles[int(role[1])][0] == "organizations" and self.roles[int(role[1])][2] in PARTICIPATION:
            raise Refused(
                400, {"msg": "You cannot assign an Organization participation role as a child role for a Team."}
            )
        members = self.members.setdefault(url, [])
        if given.get("disassociate"):
            members.remove(given["id"])
        elif given["id"] not in members:
            members.append(given["id"])
        self.changes.append(("POST", url))


def matches(item, name, value):
    """Whether an object is as a filter wants it: a field, or field__startswith."""
    field, _underscores, how = name.partition("__")
    return str(item.get(field)).startswith(value) if how == "startswith" else str(item.get(field)) == value


def refuse_rule(rule):
    """What AWX wants of a schedule's rule (awx/api/serializers.py, validate_rrule)."""
    wrong = [text for word, text in RULE.items() if word not in rule]
    if wrong:
        raise Refused(400, {"rrule": wrong})


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        """Quiet."""

    def do_GET(self):
        """Look."""
        self._answer("GET")

    def do_POST(self):
        """Make, or associate."""
        self._answer("POST")

    def do_PATCH(self):
        """Change."""
        self._answer("PATCH")

    def do_DELETE(self):
        """Take away."""
        self._answer("DELETE")

    def _answer(self, method):
        length = int(self.headers.get("Content-Length") or 0)
        given = json.loads(self.rfile.read(length) or b"{}") if length else {}
        address = urllib.parse.urlsplit(self.path)
        try:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refused(401, {"detail": "Authentication credentials were not provided."})
            with self.server.lock:
                status, content = self._do(
                    method, address.path, dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True)), given
                )
        except Refused as refused:
            status, content = refused.args
        body = b"" if status == 204 else json.dumps(content).encode()
        self.send_response(status)
        about = {"X-API-Product-Name": "AWX", "X-API-Product-Version": VERSION}
        for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **about}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def _do(self, method, path, query, given):
        controller = self.server.controller
        if not path.startswith(controller.base):
            raise Refused(404, {"detail": "Not found."})
        parts = path[len(controller.base) :].strip("/").split("/")
        endpoint = parts[0]
        if endpoint == "me":
            return self._page(path, query, [controller.me])
        if endpoint == "roles" and len(parts) == 3 and int(parts[1]) in controller.roles:
            return self._list(method, path, query, given, parts[2])
        if endpoint not in KINDS and endpoint != "unified_job_templates":
            raise Refused(404, {"detail": "Not found."})
        if len(parts) == 1:
            return (
                (201, controller.shown(controller.add(endpoint, given)))
                if method == "POST"
                else self._page(path, query, controller.listed(endpoint, query))
            )
        item = controller.find(endpoint, parts[1])
        if item is None:
            raise Refused(404, {"detail": "Not found."})
        if len(parts) == 2 and method == "DELETE":
            controller.changes.append(("DELETE", item["url"]))
            del controller.objects[endpoint][item["id"]]
            return 204, None
        if len(parts) == 2:
            return 200, controller.shown(controller.change(endpoint, item, given) if method == "PATCH" else item)
        if parts[2] == "launch" and method == "POST":
            return 201, controller.launch(item, given)
        if parts[2] == "survey_spec":
            return self._survey(method, path, given)
        if parts[2] == "create_approval_template" and method == "POST":
            made = controller.add("workflow_approval_templates", given)
            controller.change(endpoint, item, {"unified_job_template": made["id"]})
            return 201, made
        if parts[2] in LISTS.get(endpoint, ()):
            of = "notification_templates" if parts[2].startswith("notification") else endpoint
            return self._list(method, path, query, given, "credentials" if parts[2] == "credentials" else of)
        raise Refused(404, {"detail": "Not found."})

    def _survey(self, method, path, given):
        controller = self.server.controller
        if method == "POST":
            wrong = [
                question
                for question in given["spec"]
                if question["type"] == "multiplechoice" and not question.get("choices")
            ]
            if wrong or not given["spec"]:
                raise Refused(400, {"error": f"survey: {wrong}"})
            controller.surveys[path] = given
            controller.changes.append(("POST", path))
        return 200, controller.surveys.get(path, {})

    def _list(self, method, path, query, given, of):
        controller = self.server.controller
        if method == "POST":
            if controller.find(of, given["id"]) is None:
                raise Refused(400, {"detail": f"{of} {given['id']} does not exist"})
            controller.associate(path, given)
            return 204, None
        return self._page(path, query, [controller.find(of, number) for number in controller.members.get(path, [])])

    def _page(self, path, query, found):
        page = int(query.get("page", 1))
        more = len(found) > page * PAGE
        following = f"{path}?{urllib.parse.urlencode({**query, 'page': page + 1})}" if more else None
        shown = [self.server.controller.shown(item) for item in found[(page - 1) * PAGE : page * PAGE]]
        return 200, {"count": len(found), "next": following, "previous": None, "results": shown}


class Server(ThreadingHTTPServer):
    """Serves a Controller on a free port of this machine while a `with` block lasts; `environment` is what awx.awx
    needs to find it.
    """

    daemon_threads = True

    def __init__(self, prefix="/api/"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.controller, self.lock, self.prefix = Controller(prefix), threading.Lock(), prefix

    @property
    def environment(self):
        """Variables of the environment."""
        return {
            "CONTROLLER_HOST": f"http://127.0.0.1:{self.server_address[1]}",
            "CONTROLLER_OAUTH_TOKEN": TOKEN,
            "CONTROLLER_VERIFY_SSL": "false",
            "CONTROLLER_OPTIONAL_API_URLPATTERN_PREFIX": self.prefix,
        }

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.shutdown()
        self.server_close()
