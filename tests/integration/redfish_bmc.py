# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An EMULATOR of a server's BMC: Redfish over TLS, after DMTF DSP0266 1.21 (protocol: Basic authentication, ETags,
settings resources) and DSP8010 2025.4 (schemas: ServiceRoot, ComputerSystem, Bios, Settings, AttributeRegistry,
ThermalSubsystem).

It stages BIOS attributes in the settings resource and applies them when its system comes on again; it has a fan mode as
DSP8010 has it, or as Supermicro's Redfish Reference Guide does (OEM FanMode). sushy-tools' emulator, which other tests
of power cycles use, applies attributes at once and has no fans to set.
"""

from __future__ import annotations

import base64
import copy
import http.server
import json
import ssl
import threading
import time

from bmcs import PASSWORD, SYSTEM, USER, certify

ROOT = "/redfish/v1"
PLACE = f"{ROOT}/Systems/1"
RESET = f"{PLACE}/Actions/ComputerSystem.Reset"
BIOS, SETTINGS = f"{PLACE}/Bios", f"{PLACE}/Bios/Settings"
THERMAL, FAN_MODE = f"{ROOT}/Chassis/1/ThermalSubsystem", f"{ROOT}/Managers/1/Oem/Supermicro/FanMode"
REGISTRY = f"{ROOT}/Registries/BiosAttributeRegistry.v1_0_0"
SWITCH = ("Enabled", "Disabled")
# Of a Dell, as its iDRAC lists them.
CHOICES = {
    "SysProfile": ("PerfPerWattOptimizedDapc", "PerfOptimized", "Custom"),
    **dict.fromkeys(("ProcCStates", "ProcC1E", "ProcTurboMode", "LogicalProc", "PcieAspmL1", "NodeInterleave"), SWITCH),
}
ATTRIBUTES = {
    **dict.fromkeys(CHOICES, "Enabled"),
    "SysProfile": "PerfPerWattOptimizedDapc",
    "NumLock": "On",
    "AssetTag": "A-17",
    "AcPwrRcvryUserDelay": 60,
}


def _resource(path, kind, name, **more):
    return {"@odata.id": path, "@odata.type": f"#{kind}", "Id": path.rpartition("/")[2], "Name": name, **more}


def _members(path, kind, *paths):
    members = [{"@odata.id": each} for each in paths]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}.{kind}",
        "Name": kind,
        "Members": members,
        "Members@odata.count": len(members),
    }


class StagingBmc(http.server.ThreadingHTTPServer):
    """The BMC. fans: dmtf, supermicro, or None. Faults: delay_s of each answer; answers: by path, a status or bytes, in
    place of its own; applies: whether a boot sets what is staged; locked: attributes that it refuses to stage.
    """

    def __init__(self, folder, fans="dmtf", uuid=SYSTEM):
        super().__init__(("localhost", 0), Answer)
        folder.mkdir(exist_ok=True)
        certify(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.folder, self.port, self.uuid, self.fans = folder, self.server_port, uuid, fans
        self.attributes, self.staged, self.state = dict(ATTRIBUTES), {}, "On"
        self.full_speed, self.mode = False, "Optimal"
        self.delay_s, self.answers, self.applies, self.locked, self.changes = 0.0, {}, True, set(), []
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        """A client that gave up is no news."""

    def power(self):
        return self.state

    def end(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def variables(self, **more):
        """What an inventory has of it."""
        given = {"address": f"localhost:{self.port}", "user": USER, "password": PASSWORD}
        given["ca_path"] = str(self.folder / "cert.pem")
        return {**{f"vendor_bmc_{name}": value for name, value in given.items()}, **more}

    def resources(self):
        """What it has, by path."""
        made = [
            _resource(
                f"{ROOT}/",
                "ServiceRoot.v1_17_0.ServiceRoot",
                "Root",
                Vendor="Dell",
                Systems={"@odata.id": f"{ROOT}/Systems"},
                Chassis={"@odata.id": f"{ROOT}/Chassis"},
                Managers={"@odata.id": f"{ROOT}/Managers"},
                Registries={"@odata.id": f"{ROOT}/Registries"},
                Links={"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}},
            ),
            _members(f"{ROOT}/Systems", "ComputerSystemCollection", PLACE),
            _members(f"{ROOT}/Chassis", "ChassisCollection", f"{ROOT}/Chassis/1"),
            _members(f"{ROOT}/Managers", "ManagerCollection", f"{ROOT}/Managers/1"),
            _members(f"{ROOT}/Registries", "MessageRegistryFileCollection", REGISTRY),
            _resource(
                PLACE,
                "ComputerSystem.v1_24_0.ComputerSystem",
                "System",
                UUID=self.uuid,
                SerialNumber="B1B1QD3",
                Manufacturer="Dell Inc.",
                PowerState=self.state,
                Bios={"@odata.id": BIOS},
                Actions={
                    "#ComputerSystem.Reset": {
                        "target": RESET,
                        "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown"],
                    }
                },
            ),
            _resource(
                BIOS,
                "Bios.v1_2_3.Bios",
                "BIOS",
                AttributeRegistry="BiosAttributeRegistry.v1_0_0",
                Attributes=dict(self.attributes),
                **{
                    "@Redfish.Settings": {
                        "@odata.type": "#Settings.v1_4_0.Settings",
                        "SettingsObject": {"@odata.id": SETTINGS},
                        "Messages": [],
                    }
                },
            ),
            _resource(SETTINGS, "Bios.v1_2_3.Bios", "Pending", Attributes=dict(self.staged)),
            _resource(
                REGISTRY,
                "MessageRegistryFile.v1_1_5.MessageRegistryFile",
                "BIOS attributes",
                Registry="BiosAttributeRegistry.1.0",
                Languages=["en"],
                Location=[{"Language": "en", "Uri": f"{REGISTRY}.json"}],
            ),
            _resource(
                f"{REGISTRY}.json",
                "AttributeRegistry.v1_4_0.AttributeRegistry",
                "BIOS attributes",
                Language="en",
                OwningEntity="Emulator",
                RegistryVersion="1.0.0",
                RegistryEntries={
                    "Attributes": [
                        {
                            "AttributeName": name,
                            "Type": "Enumeration",
                            "ReadOnly": False,
                            "Value": [{"ValueName": value} for value in values],
                        }
                        for name, values in CHOICES.items()
                    ]
                },
            ),
        ]
        if self.fans == "dmtf":
            made.append(
                _resource(
                    THERMAL,
                    "ThermalSubsystem.v1_5_0.ThermalSubsystem",
                    "Cooling",
                    FansFullSpeedOverrideEnable=self.full_speed,
                )
            )
        if self.fans == "supermicro":
            allowed = ["Standard", "FullSpeed", "Optimal", "HeavyIO"]
            made.append(
                _resource(
                    FAN_MODE,
                    "FanMode.v1_0_1.FanMode",
                    "FanMode",
                    Mode=self.mode,
                    **{"Mode@Redfish.AllowableValues": allowed},
                )
            )
        found = {each["@odata.id"]: each for each in made}
        for each in found.values():
            each["@odata.etag"] = f'W/"{abs(hash(json.dumps(each, sort_keys=True)))}"'
        return found

    def change(self, path, body):
        """Do a PATCH or POST; the status."""
        if path == RESET:
            self.state = {"On": "On"}.get(body["ResetType"], "Off")
            if self.state == "On" and self.applies:
                self.attributes.update(self.staged)
                self.staged = {}
            return 204
        if path == SETTINGS:
            asked = body["Attributes"]
            wrong = [
                name
                for name, value in asked.items()
                if name not in self.attributes or name in self.locked or value not in CHOICES.get(name, (value,))
            ]
            if wrong:
                return 400
            self.staged.update(asked)
            return 200
        if path == THERMAL and self.fans == "dmtf" and isinstance(body["FansFullSpeedOverrideEnable"], bool):
            self.full_speed = body["FansFullSpeedOverrideEnable"]
            return 200
        if path == FAN_MODE and self.fans == "supermicro":
            self.mode = body["Mode"]
            return 200
        return 405


class Answer(http.server.BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    timeout = 10

    def _send(self, status, body=b"", etag=None):
        time.sleep(self.server.delay_s)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("OData-Version", "4.0")
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def _error(self, status):
        body = {"error": {"code": "Base.1.18.GeneralError", "message": "See the extended information."}}
        self._send(status, json.dumps(body).encode())

    def _is_let_in(self):
        given = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        # The service root alone is for everybody (DSP0266, "Authentication requirements").
        return self.path.rstrip("/") == ROOT or self.headers.get("Authorization") == f"Basic {given}"

    def do_GET(self):
        own = self.server.answers.get(self.path)
        if not self._is_let_in():
            return self._error(401)
        if isinstance(own, int):
            return self._error(own)
        if isinstance(own, bytes):
            return self._send(200, own)
        with self.server.lock:
            resources = copy.deepcopy(self.server.resources())
        found = resources.get(self.path) or resources.get(f"{self.path}/")
        if found is None:
            return self._error(404)
        return self._send(200, json.dumps(found).encode(), found["@odata.etag"])

    def _change(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if not self._is_let_in():
            return self._error(401)
        if isinstance(self.server.answers.get(self.path), int):
            return self._error(self.server.answers[self.path])
        with self.server.lock:
            now = self.server.resources().get(self.path)
            if now and self.headers.get("If-Match") not in (None, now["@odata.etag"]):
                status = 412
            else:
                self.server.changes.append((self.path, body))
                status = self.server.change(self.path, body)
        return self._error(status) if status >= 400 else self._send(status, b"{}" if status == 200 else b"")

    do_PATCH = do_POST = _change

    def log_message(self, *_told):
        """Nowhere."""
