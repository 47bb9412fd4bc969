# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs that answer rightly, slowly, wrongly, or not at all: Redfish over TLS as DMTF's DSP0266 has it,
and IPMI. No answer of theirs may show the password, or be taken for that of another system.
"""

from __future__ import annotations

import http.server
import json
import re
import shutil
import ssl
import threading
import time

import pytest
import redfish_bmc
from bmcs import PASSWORD, SYSTEM, USER, IpmiBmc, certify

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import fans, ipmi
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.bmc import BmcAccess, BmcError
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.redfish import RESET, RedfishBmc

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl for the BMC's certificate")
PLACE = "/redfish/v1/Systems/1"
ACTION = f"{PLACE}/Actions/ComputerSystem.Reset"
RIGHT = {
    "/redfish/v1/": {"Systems": {"@odata.id": "/redfish/v1/Systems"}},
    "/redfish/v1/Systems": {"Members": [{"@odata.id": PLACE}]},
    PLACE: {
        "Id": "1",
        "UUID": SYSTEM,
        "SerialNumber": "B1B1QD3",
        "PowerState": "On",
        "Actions": {RESET: {"target": ACTION, "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}},
    },
}


class Redfish(http.server.ThreadingHTTPServer):
    """A Redfish service over TLS. answers: by path; bytes as they are, a number: an error of that status."""

    def __init__(self, folder):
        super().__init__(("localhost", 0), Answer)
        certify(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.answers, self.asked, self.delay_s, self.folder = dict(RIGHT), [], 0.0, folder

    def handle_error(self, request, client_address):
        """A client that gave up is no news."""

    def bmc(self, timeout_s=5.0, **more):
        access = {"user": USER, "password": PASSWORD, "ca_path": str(self.folder / "cert.pem"), **more}
        return RedfishBmc(BmcAccess("redfish", f"localhost:{self.server_port}", **access), timeout_s)


class Answer(http.server.BaseHTTPRequestHandler):
    """One request."""

    def _answer(self, found):
        time.sleep(self.server.delay_s)
        status = found if isinstance(found, int) else 200
        body = {"error": {"message": "no\x1b[31m", "code": "x"}} if isinstance(found, int) else found
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "https://localhost:1/redfish/v1/")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self._answer(self.server.answers.get(self.path, 404))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        self._answer(self.server.answers.get(self.path, b""))

    def log_message(self, *_told):
        """Nowhere."""


@pytest.fixture
def service(tmp_path):
    server = Redfish(tmp_path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_redfish_is_asked_as_its_documents_say(service):
    bmc = service.bmc()
    told = bmc.identity()
    assert (told.uuids, told.serials, bmc.power()) == ((SYSTEM,), ("B1B1QD3",), "on")
    bmc.force_off()
    bmc.switch_on()
    assert service.asked == [(ACTION, {"ResetType": "ForceOff"}), (ACTION, {"ResetType": "On"})]


def log(name, *messages, count=None):
    """A log of these entries, each a second after the one before."""
    place = f"/redfish/v1/Logs/{name}"
    entries = [{"Message": text, "Created": f"2026-11-29T01:00:{second:02}Z"} for second, text in enumerate(messages)]
    page = {"Members": entries[: count or None], "Members@odata.count": len(entries)}
    found = {place: {"Id": name, "Entries": {"@odata.id": f"{place}/Entries"}}, f"{place}/Entries": page}
    return {**found, f"{place}/Entries?$skip={len(entries) - 1}": {"Members": entries[-1:]}}


def with_logs(owner, *logs):
    """What answers where an owner has these logs."""
    members = [{"@odata.id": next(iter(one))} for one in logs]
    links = {owner: {**RIGHT.get(owner, {}), "LogServices": {"@odata.id": f"{owner}/LogServices"}}}
    return {**links, f"{owner}/LogServices": {"Members": members}, **{path: one[path] for one in logs for path in one}}


MANAGER = "/redfish/v1/Managers/1"
SEL, CONSOLE = log("SEL", "old", "Power supply 2 failed"), log("HostLogger", "a", "b", "no boot\x1b[2J device", count=1)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({}, ""),
        (with_logs(PLACE, SEL), "the last entry of the log (SEL, 2026-11-29T01:00:01Z): Power supply 2 failed"),
        (
            with_logs(PLACE, SEL, CONSOLE),
            "the last line of its console (HostLogger, 2026-11-29T01:00:02Z): no boot\\x1b[2J device",
        ),
        (with_logs(PLACE, {"/redfish/v1/Logs/none": 503}), ""),
        (with_logs(PLACE, {"/x": {"Id": ["x"], "Entries": {"@odata.id": "/y"}}, "/y": {"Members": [1, {"a": 2}]}}), ""),
    ],
)
def test_the_last_line_of_a_host_is_what_its_bmc_keeps(service, answers, told):
    service.answers.update(answers)
    assert service.bmc().last_line() == told


def test_the_logs_of_a_manager_are_read_too(service):
    service.answers.update(with_logs(MANAGER, CONSOLE))
    service.answers[PLACE] = {**RIGHT[PLACE], "Links": {"ManagedBy": [{"@odata.id": MANAGER}]}}
    assert "no boot" in service.bmc().last_line()


def system(**more):
    return {PLACE: {**RIGHT[PLACE], **more}}


TWO = {"/redfish/v1/Systems": {"Members": [{"@odata.id": PLACE}, {"@odata.id": f"{PLACE}2"}]}}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({PLACE: 401}, "HTTP 401: no\\x1b[31m"),
        ({PLACE: 302}, "HTTP 302"),
        ({PLACE: 503}, "HTTP 503"),
        ({PLACE: b"<html>"}, "is no JSON"),
        ({PLACE: b"[" * 100_000}, "is no JSON"),
        ({PLACE: b"[]"}, "is no JSON object"),
        ({PLACE: b"1" * (3 << 20)}, "is longer than"),
        ({"/redfish/v1/": {}}, "names no Systems"),
        ({"/redfish/v1/Systems": {"Members": []}}, "is not one of its systems: none"),
        ({"/redfish/v1/Systems": {"Members": [{"@odata.id": "http://elsewhere/1"}]}}, "is not one of its systems"),
        (TWO, "vendor_bmc_system: (not set) is not one of its systems: 1, 12"),
        (system(Actions={}), "has no action #ComputerSystem.Reset"),
        (system(Actions={RESET: {"target": "http://elsewhere/"}}), "has no action"),
        (
            system(Actions={RESET: {"target": ACTION, "ResetType@Redfish.AllowableValues": ["On"]}}),
            "does not offer the reset ForceOff",
        ),
    ],
)
def test_a_wrong_answer_switches_nothing_and_shows_no_password(service, answers, told):
    service.answers.update(answers)
    with pytest.raises(BmcError) as failed:
        service.bmc().identity()
    assert told in str(failed.value) and PASSWORD not in str(failed.value) and USER not in str(failed.value)
    with pytest.raises(BmcError):
        service.bmc().force_off()
    assert service.asked == []


def test_one_of_several_systems_is_named_in_full(service):
    service.answers.update(TWO)
    assert service.bmc(system="1").identity().uuids == (SYSTEM,)


def test_a_slow_bmc_and_an_unknown_certificate_are_errors(service):
    with pytest.raises(BmcError, match="CERTIFICATE_VERIFY_FAILED"):
        service.bmc(ca_path="").power()
    assert service.bmc(ca_path="", validate_certs=False).power() == "on"
    service.delay_s = 3
    with pytest.raises(BmcError, match="timed out"):
        service.bmc(timeout_s=0.5).power()


def test_ipmi_tells_whose_it_is_and_switches(tmp_path):
    served = IpmiBmc(tmp_path)
    try:
        bmc = ipmi.IpmiBmc(BmcAccess("ipmi", f"localhost:{served.port}", USER, PASSWORD))
        assert SYSTEM in bmc.identity().uuids
        bmc.force_off()
        assert served.power() == "Off" and bmc.power() == "off"
        bmc.switch_on()
        assert served.power() == "On"
        access = BmcAccess("ipmi", f"localhost:{served.port}", USER, PASSWORD)
        own = {"high": ["0x30 0x45 0x01 0x01"], "restore": ["0x30 0x45 0x01 0x02"]}
        change = fans.set_high(access, own, None)
        change.make()
        fans.set_back(access, own, change.record).make()
        assert served.raw() == ["0x30 0x45 0x1 0x1", "0x30 0x45 0x1 0x2"]
        with pytest.raises(fans.FansUnset, match="Invalid command .of the command 0x30 0x46."):
            fans.set_high(access, {**own, "high": ["0x30 0x46"]}, None).make()
        wrong = ipmi.IpmiBmc(BmcAccess("ipmi", f"localhost:{served.port}", USER, f"{PASSWORD}-wrong"))
        with pytest.raises(BmcError) as failed:
            wrong.power()
        assert PASSWORD not in str(failed.value)
    finally:
        served.end()


COMMON = {"@odata.id": str, "@odata.type": str, "@odata.etag": str, "Name": str}
# Of the published JSON schemas (DMTF DSP8010 2025.4), of the properties that the emulator has: their types. What is in
# COMMON is required of each resource, and so is Id but of collections.
SCHEMAS = {
    "Bios.v1_2_3.Bios": {"Attributes": dict, "AttributeRegistry": str, "@Redfish.Settings": dict},
    "ThermalSubsystem.v1_5_0.ThermalSubsystem": {"FansFullSpeedOverrideEnable": bool},
    "ComputerSystem.v1_24_0.ComputerSystem": {
        **dict.fromkeys(("UUID", "SerialNumber", "Manufacturer", "PowerState"), str),
        **dict.fromkeys(("Bios", "Actions"), dict),
    },
    "AttributeRegistry.v1_4_0.AttributeRegistry": {
        **dict.fromkeys(("Language", "OwningEntity", "RegistryVersion"), str),
        "RegistryEntries": dict,
    },
    "MessageRegistryFile.v1_1_5.MessageRegistryFile": {"Registry": str, "Languages": list, "Location": list},
    "ServiceRoot.v1_17_0.ServiceRoot": {
        "Vendor": str,
        **dict.fromkeys(("Systems", "Chassis", "Managers", "Registries", "Links"), dict),
    },
}


def test_the_emulator_that_stages_has_what_the_published_schemas_have(tmp_path):
    bmc = redfish_bmc.StagingBmc(tmp_path / "bmc")
    try:
        resources = bmc.resources().values()
    finally:
        bmc.end()
    kinds = {each["@odata.type"][1:]: each for each in resources}
    assert {kind for kind in kinds if not kind.endswith("Collection")} == set(SCHEMAS)
    for kind, each in kinds.items():
        collection = {"Members": list, "Members@odata.count": int}
        known = {**COMMON, **(collection if kind.endswith("Collection") else {"Id": str, **SCHEMAS[kind]})}
        assert {name: type(value) for name, value in each.items()}.items() <= known.items(), kind
        assert set(COMMON) <= set(each) and ("Id" in each or "Members" in each), kind
    attributes = next(each for each in resources if each["@odata.id"] == redfish_bmc.BIOS)["Attributes"]
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]+", name) for name in attributes)
