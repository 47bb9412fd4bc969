# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs that power-cycle the server of a test: sushy-tools' emulator (Redfish) and pyghmi's own (IPMI)."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

from waiting import wait_until

PASSWORD = "s3cret-Of-The-BMC"
USER = "bmc-operator"
SYSTEM = "27946b59-9e44-4fa7-8e91-f3527a1ef094"


def certify(folder):
    """Make key.pem and cert.pem of localhost in a folder."""
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)


class Bmc:
    """sushy-emulator with its fake driver over TLS, and what it says of the one system's power. `deaf`: while the file
    is there, nothing shuts it down.
    """

    def __init__(self, folder, system=SYSTEM):
        self.folder, self.deaf, self.system = folder, folder / "deaf", system
        self._configure()
        with bound_socket(socket.SOCK_STREAM) as probe:
            self.port = probe.getsockname()[1]
        self.process = self._start()
        wait_until(
            lambda: self.power() is not None, "the BMC", process=self.process, said=(folder / "sushy.log").read_text
        )

    def _configure(self):
        """Its certificate, user and system."""
        import bcrypt  # comes with sushy-tools

        certify(self.folder)
        digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        users = self.folder / "users"
        users.write_text(f"{USER}:{digest}\n")
        system = {"uuid": self.system, "name": "fake", "power_state": "On", "external_notifier": False, "nics": []}
        settings = {
            "FAKE_DRIVER": True,
            "AUTH_FILE": str(users),
            "STATE_DIR": str(self.folder),
            "FAKE_SYSTEMS": [system],
        }
        lines = [f"SUSHY_EMULATOR_{name} = {value!r}\n" for name, value in settings.items()]
        (self.folder / "sushy.conf").write_text("".join(lines))

    def _start(self):
        """The emulator, which shuts nothing down while it is deaf."""
        code = [
            "import os, sys",
            "from sushy_tools.emulator.main import main",
            "from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver",
            "set_power = FakeDriver.set_power_state",
            "def obey(self, system, state):",
            (
                f"    if state != 'GracefulShutdown' or not os.path.exists({str(self.deaf)!r}): return set_power(self, "
                "system, state)"
            ),
            f"    if open({str(self.deaf)!r}).read() == 'refuses': raise RuntimeError('this system takes no shutdown')",
            "FakeDriver.set_power_state = obey",
            "main()",
        ]
        argv = [sys.executable, "-c", "\n".join(code), "-i", "localhost", "-p", str(self.port)]
        files = {"config": "sushy.conf", "ssl-certificate": "cert.pem", "ssl-key": "key.pem"}
        argv += [word for name, file in files.items() for word in (f"--{name}", str(self.folder / file))]
        return subprocess.Popen(argv, stdout=open(self.folder / "sushy.log", "w"), stderr=subprocess.STDOUT)

    def power(self):
        request = urllib.request.Request(f"https://localhost:{self.port}/redfish/v1/Systems/{self.system}")
        request.add_header("Authorization", "Basic " + base64.b64encode((f"{USER}:{PASSWORD}").encode()).decode())
        try:
            with urllib.request.urlopen(
                request, context=ssl.create_default_context(cafile=str(self.folder / "cert.pem")), timeout=10
            ) as answer:
                return json.load(answer)["PowerState"]
        except OSError:
            return None

    def end(self):
        self.process.terminate()
        self.process.wait()


def bound_socket(kind=socket.SOCK_DGRAM):
    """A socket with a port that nobody has."""
    made = socket.socket(type=kind)
    made.bind(("localhost", 0))
    return made


class IpmiBmc:
    """A BMC that speaks IPMI: pyghmi's own, in a process of its own. `deaf` as above."""

    def __init__(self, folder):
        self.file, self.deaf = folder / "power", folder / "deaf"
        self.file.write_text("on")
        with bound_socket() as probe:
            self.port = probe.getsockname()[1]
        code = [
            "import sys, pathlib, uuid, pyghmi.ipmi.bmc as bmc, pyghmi.ipmi.private.serversession as sessions",
            # pyghmi's server does HMAC-SHA1 alone, but does not say so when its client asks for SHA256 (byte 12):
            # answer 0x11, no such cipher suite.
            "answer = sessions.ServerSession.create_open_session_response",
            "refuse = lambda request: bytearray([request[0], 0x11]) + bytes(34)",
            (
                "sessions.ServerSession.create_open_session_response = lambda self, request: answer(self, request) if "
                "request[12] == 1 else refuse(request)"
            ),
            "file = pathlib.Path(sys.argv[2])",
            "class Fake(bmc.Bmc):",
            "    def get_power_state(self): return file.read_text()",
            f"    def get_system_guid(self): return uuid.UUID({SYSTEM!r})",
            "    def power_off(self): file.write_text('off')",
            "    def power_on(self): file.write_text('on')",
            f"    def power_shutdown(self): pathlib.Path({str(self.deaf)!r}).exists() or self.power_off()",
            "    def is_active(self): return True",
            # A maker's own command, such as those that set fans (network function 30h); 46h is refused.
            "    def handle_raw_request(self, request, session):",
            "        if request['netfn'] != 0x30: return super().handle_raw_request(request, session)",
            "        sent = [request['netfn'], request['command'], *request['data']]",
            "        open(sys.argv[2] + '.raw', 'a').write(' '.join(map(hex, sent)) + chr(10))",
            "        session.send_ipmi_response(code=0xC1 if request['command'] == 0x46 else 0)",
            f"Fake({{{USER!r}: {PASSWORD!r}}}, port=int(sys.argv[1]), address='::ffff:127.0.0.1').listen()",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-c", "\n".join(code), str(self.port), str(self.file)],
            stdout=open(folder / "ipmi.log", "w"),
            stderr=subprocess.STDOUT,
        )
        wait_until(self._listens, "the BMC", process=self.process, said=(folder / "ipmi.log").read_text)

    def _listens(self):
        """Whether its port is bound."""
        return f":{self.port:04X} " in Path("/proc/net/udp6").read_text()

    def power(self):
        return {"on": "On", "off": "Off"}.get(self.file.read_text())

    def raw(self):
        """The maker's own commands that it was sent."""
        return Path(f"{self.file}.raw").read_text().splitlines()

    def end(self):
        self.process.kill()
        self.process.wait()
