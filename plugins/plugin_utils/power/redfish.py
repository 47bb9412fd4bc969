# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC that speaks Redfish over HTTPS: DMTF DSP0266 (protocol), and of DSP8010 (schemas) ComputerSystem, Bios and
ThermalSubsystem.

community.general's modules neither tell the UUID of a system nor take less than a second; both are needed here.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
import typing as t
from urllib.parse import urlsplit

from ..common import bmc_tables as tables
from ..validation import printable
from . import redfish_log
from .bios import Attributes, BiosState, Registry, clean
from .bmc import OFF, ON, BmcAccess, BmcError, BmcIdentity, NotThere

ROOT = "/redfish/v1/"
RESET = "#ComputerSystem.Reset"
TIMEOUT_S = 30.0
# More is no answer of a BMC.
MOST_BYTES = 2 << 20
# How a BMC says that it has no such resource.
_ABSENT = (404, 405, 501)
_POWER = {"On": ON, "Off": OFF}
Json = dict[str, t.Any]


class RedfishBmc:
    """One system of a BMC. Each method raises BmcError."""

    def __init__(self, access: BmcAccess, timeout_s: float = TIMEOUT_S) -> None:
        self._access, self._timeout_s = access, timeout_s
        place = urlsplit(f"//{access.address}")
        try:
            self._place = (place.hostname or "", place.port or 443)
        except ValueError as error:
            raise BmcError(f"vendor_bmc_address: {access.address!r} is no address: {error}") from None
        self._path = ""

    def identity(self) -> BmcIdentity:
        """Return whose it says that it is, and check that it can cut the power."""
        system = self._system()
        self._reset(system, "ForceOff")
        return _identity(system)

    def whose(self) -> BmcIdentity:
        """Return whose it says that it is, also where it cuts no power."""
        return _identity(self._system())

    def power(self) -> str:
        """Return ON, OFF, or another PowerState."""
        state = str(self._system().get("PowerState"))
        return _POWER.get(state, state)

    def force_off(self) -> None:
        """Have the power cut: ForceOff, "turn off the unit immediately (non-graceful shutdown)"."""
        self._do("ForceOff")

    def switch_on(self) -> None:
        """Have the power switched on."""
        self._do("On")

    def last_line(self) -> str:
        """Return what it has last on record of the host: of its console where it keeps that."""
        return redfish_log.last_line(self._system(), lambda path: self._asked("GET", path))

    def bios(self) -> BiosState:
        """Return what the BIOS has, and what its settings resource holds otherwise (DSP0266, "Settings resource")."""
        system = self._system()
        path = _link(system.get("Bios"))
        if not path:
            raise BmcError(f"its system {system.get('Id')} has no Bios resource")
        found = self._asked("GET", path)
        attributes = clean(found.get("Attributes"))
        if not attributes:
            raise BmcError(f"GET {path}: it has no BIOS attributes")
        settings = _link((found.get("@Redfish.Settings") or {}).get("SettingsObject"))
        staged = clean(self._asked("GET", settings).get("Attributes")) if settings else {}
        pending = {name: value for name, value in staged.items() if attributes.get(name, value) != value}
        registry = str(found.get("AttributeRegistry") or "")
        maker = printable.line(system.get("Manufacturer") or "", 100)
        return BiosState(attributes, pending, maker, settings, registry, _identity(system))

    def registry(self, name: str) -> Registry:
        """Return what an attribute registry allows; {} where it can't be read: the BMC itself refuses wrong values."""
        try:
            members = self._asked("GET", f"{ROOT}Registries").get("Members") or ()
            paths = [_link(one) for one in members]
            path = next((path for path in paths if path.rstrip("/").rpartition("/")[2].startswith(name)), "")
            files = self._asked("GET", path).get("Location") or () if path and name else ()
            place = next((str(one["Uri"]) for one in files if str(one.get("Uri") or "").startswith("/")), "")
            entries = (self._asked("GET", place).get("RegistryEntries") or {}).get("Attributes") if place else ()
            return {
                str(one["AttributeName"]): tuple(str(each.get("ValueName")) for each in one.get("Value") or ()) or None
                for one in entries or ()
                if not one.get("ReadOnly")
            }
        except (BmcError, AttributeError, KeyError, TypeError):
            return {}

    def stage(self, settings: str, attributes: Attributes) -> None:
        """Have the settings resource hold attributes for the next boot."""
        self.patch(settings, {"Attributes": attributes})

    def patch(self, path: str, body: Json) -> None:
        """Change a resource, unless it changed since it was read just now (DSP0266, ETags)."""
        etag = self._asked("GET", path).get("@odata.etag")
        self._asked("PATCH", path, body, {"If-Match": str(etag)} if etag else {})

    def fan_mode(self) -> tuple[str, tables.FanMode, t.Any] | None:
        """Return where the fan mode is, in which way, and what it is now; None: it offers none that is known. Raises
        BmcError at the first question that a slow BMC does not answer.
        """
        for mode in tables.load().fans:
            for path in self._places(ROOT, mode.path.split("/")):
                with contextlib.suppress(NotThere):
                    value: t.Any = self._asked("GET", path)
                    for key in mode.property:
                        value = value.get(key) if isinstance(value, dict) else None
                    if value is not None:
                        return path, mode, value
        return None

    def _places(self, base: str, parts: list[str]) -> t.Iterator[str]:
        """Return the paths that a pattern of the table means."""
        if not parts:
            yield base.rstrip("/")
        elif parts[0] != "*":
            yield from self._places(f"{base}{parts[0]}/", parts[1:])
        else:
            with contextlib.suppress(NotThere):
                for one in self._asked("GET", base.rstrip("/")).get("Members") or ():
                    if _link(one):
                        yield from self._places(f"{_link(one).rstrip('/')}/", parts[1:])

    def _do(self, kind: str) -> None:
        self._asked("POST", self._reset(self._system(), kind), {"ResetType": kind})

    def _reset(self, system: Json, kind: str) -> str:
        """Return where the reset of this kind is asked for."""
        action = (system.get("Actions") or {}).get(RESET) or {}
        target, allowed = action.get("target"), action.get("ResetType@Redfish.AllowableValues")
        if not isinstance(target, str) or not target.startswith("/"):
            raise BmcError(f"its system {system.get('Id')} has no action {RESET}")
        if isinstance(allowed, list) and kind not in allowed:
            raise BmcError(f"its system {system.get('Id')} does not offer the reset {kind}, only {allowed}")
        return target

    def _system(self) -> Json:
        """Return the system, which is looked for the first time."""
        if not self._path:
            self._path = self._find()
        return self._asked("GET", self._path)

    def _find(self) -> str:
        place = (self._asked("GET", ROOT).get("Systems") or {}).get("@odata.id")
        if not isinstance(place, str):
            raise BmcError("its service root names no Systems: it is no Redfish service of a server")
        members = self._asked("GET", place).get("Members")
        paths = [str(one.get("@odata.id")) for one in members or () if isinstance(one, dict)]
        named = [path for path in paths if path.rstrip("/").rpartition("/")[2] == self._access.system]
        found = named if self._access.system else paths
        if len(found) == 1 and found[0].startswith("/"):
            return found[0]
        names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in paths[:5]) or "none"
        raise BmcError(f"vendor_bmc_system: {self._access.system or '(not set)'} is not one of its systems: {names}")

    def _asked(self, method: str, path: str, body: Json | None = None, more: t.Mapping[str, str] | None = None) -> Json:
        """Return the JSON of an answer; {} of one without. No redirection is followed: the password is this BMC's.
        more: headers.
        """
        given = base64.b64encode(f"{self._access.user}:{self._access.password}".encode()).decode()
        headers = {
            "Authorization": f"Basic {given}",
            "Accept": "application/json",
            "OData-Version": "4.0",
            **(more or {}),
        }
        data = None if body is None else json.dumps(body)
        headers.update({} if data is None else {"Content-Type": "application/json"})
        what = f"{method} {path}"
        try:
            connection = http.client.HTTPSConnection(*self._place, timeout=self._timeout_s, context=self._context())
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read(MOST_BYTES + 1)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise BmcError(f"{what}: {printable.line(error, 300) or type(error).__name__}") from None
        if not 200 <= answer.status < 300:
            kind = NotThere if answer.status in _ABSENT else BmcError
            raise kind(f"{what}: HTTP {answer.status}{_told(text)}")
        return _parsed(what, text)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._access.ca_path or None)
        if not self._access.validate_certs:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def _identity(system: Json) -> BmcIdentity:
    serials = [str(system[key]) for key in ("SerialNumber", "SKU") if system.get(key)]
    uuid = system.get("UUID")
    return BmcIdentity((str(uuid),) if uuid else (), tuple(serials), str(system.get("Id") or ""))


def _link(given: t.Any) -> str:
    """Return the path that a reference has; "" of what is none, or leads elsewhere."""
    path = given.get("@odata.id") if isinstance(given, dict) else None
    return path if isinstance(path, str) and path.startswith("/") else ""


def _parsed(what: str, text: bytes) -> Json:
    if len(text) > MOST_BYTES:
        raise BmcError(f"{what}: its answer is longer than {MOST_BYTES} bytes")
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise BmcError(f"{what}: its answer is no JSON") from None
    if not isinstance(found, dict):
        raise BmcError(f"{what}: its answer is no JSON object")
    return found


def _told(text: bytes) -> str:
    """Return what an error of DSP0266 says, ": …"; "" of another."""
    try:
        error = json.loads(text).get("error") or {}
        told = [error, *(error.get("@Message.ExtendedInfo") or ())]
        messages = [str(one.get("message") or one.get("Message") or "") for one in told]
    except (ValueError, RecursionError, AttributeError, TypeError):
        return ""
    said = "; ".join(message for message in messages if message)
    return f": {printable.line(said, 300)}" if said else ""
