# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vendor.yml against emulated drives, and a power cycle through a Redfish BMC: sushy-tools' emulator with its fake
driver.

The host is this machine; that it "boots" is staged in a mount namespace of the play's own, where a file of the test
lies over the kernel's boot id.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from pathlib import Path

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID

REPO = Path(__file__).resolve().parents[2]
PASSWORD = "s3cret-Of-The-BMC"
USER = "bmc-operator"
SYSTEM = "27946b59-9e44-4fa7-8e91-f3527a1ef094"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for the drives' locks and a mount namespace")


@pytest.fixture
def lab(site, tmp_path):
    """A site with two P420m, a P320h and two cards; play(*args) is vendor.yml, machine() the emulators' state."""
    machine = str(tmp_path / "machine.json")
    drives = {
        "rssdm": [
            emulator.p420m(0, "OTHER"),
            emulator.p420m(1, "S1"),
            emulator.p420m(2, "S2", model="Micron P320h-MTFDGAL175SAH"),
        ],
        "cards": [emulator.card(0, "C0"), emulator.card(1, "C1")],
    }
    environment = emulator.start(machine, bugreport_dir=str(tmp_path), **drives)
    # Where set-up unpacks community.general, whose modules speak to the BMC.
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(REPO / ".ansible" / "collections")
    site.hosts["server"] = {}

    def play(*args, prefix=(), **variables):
        site.vars.update(variables)
        return site.play("vendor", *args, env=environment, prefix=prefix)

    def seen():
        with open(machine, encoding="utf-8") as file:
            return json.load(file)

    site.vendor, site.seen, site.machine, site.environment = play, seen, machine, environment
    return site


def pending(lab):
    return {drive["serial"]: drive.get("pending", {}) for drive in lab.seen()["rssdm"]["drives"]}


def test_a_setting_stops_with_the_instruction_and_a_second_run_sends_nothing(lab):
    wanted = [{"serial": "S1", "queue_depth": 256, "power_limiting": True}]
    code, output = lab.vendor("--check", "--diff", vendor_rssdm=wanted)
    assert code == 0 and "would be left out: it may not be power-cycled" in output and '"0xD801F"' in output, output
    assert pending(lab) == {"OTHER": {}, "S1": {}, "S2": {}}
    for changed in ("changed=1", "changed=0"):
        code, output = lab.vendor()
        assert (
            code != 0
            and "Power-cycle the host (a reboot is not enough)" in output
            and "vendor_power_cycle=true" in output
        ), output
        assert changed in output, output
    assert pending(lab) == {"OTHER": {}, "S1": {"interrupt_coalescing": 0xD801F, "power_limiting": 1}, "S2": {}}
    emulator.power_cycle(lab.machine)
    code, output = lab.vendor(vendor_rssdm=[{"serial": "S1"}])
    assert code != 0 and "power cycle" in output  # in the same boot: nobody can know


@pytest.mark.parametrize(
    "wanted, says",
    [
        ({"serial": "S1", "interrupt_coalescing": "0xD800F"}, "unexpected results"),
        ({"serial": "S2", "power_limiting": True}, "2.5-inch"),
        ({"serial": "S1", "write_cache": True, "write_cache_flag": "-w"}, "write cache is enabled"),
        ({"serial": "0", "power_limiting": True}, "lists no drives"),
        ({"serial": "x; rm -rf /", "power_limiting": True}, "lists no drives"),
    ],
)
def test_bad_values_are_refused(lab, wanted, says):
    code, output = lab.vendor(vendor_rssdm=[wanted])
    assert code != 0 and says in output.replace("\n", " "), output
    assert not any(pending(lab).values())


def test_cards_are_brought_to_their_state_once_and_never_formatted_unguarded(lab):
    for changed in ("changed=1", "changed=0"):
        code, output = lab.vendor(vendor_iomemory=[{"serial": "C1", "state": "detached"}])
        assert code == 0 and changed in output, output
    assert [card["attached"] for card in lab.seen()["iomemory"]["cards"]] == [True, False]
    lab.vendor(vendor_iomemory=[{"serial": "C1", "state": "attached"}])
    # The emulated card has no block device here, so the real guard knows no such drive.
    code, output = lab.vendor(
        vendor_iomemory=[{"serial": "C1", "state": "formatted", "sector_bytes": 4096, "size_pct": 80}]
    )
    assert code != 0 and "may not be formatted. not_found" in output, output
    assert [card["formats"] for card in lab.seen()["iomemory"]["cards"]] == [0, 0]


def test_a_write_delay_is_told_in_check_mode_and_a_wrong_one_refused(lab):
    before = sorted(os.listdir("/etc/modprobe.d")) if os.path.isdir("/etc/modprobe.d") else None
    code, output = lab.vendor("--check", "--diff", vendor_iomemory_dma_delay="0")
    assert code == 0 and "changed=1" in output and "dma_delay" in output, output
    for wrong in ("32", "-1", "off"):
        code, output = lab.vendor(vendor_iomemory_dma_delay=wrong)
        assert code != 0 and f"dma_delay {wrong} is refused" in " ".join(output.split()), output
    assert before == (sorted(os.listdir("/etc/modprobe.d")) if os.path.isdir("/etc/modprobe.d") else None)


def test_an_over_subscribed_bus_stops_the_play(lab):
    assert lab.vendor(vendor_iomemory_pci_check=True)[0] == 0
    with emulator.state(lab.machine) as machine:
        machine["iomemory"]["pci_check"] = "oversubscribed"
    code, output = lab.vendor()
    assert code != 0 and "need 3000 MB/s, it has 2000 MB/s" in output, output


def test_a_bugreport_is_kept_with_the_results(lab, tmp_path):
    """The step of collect.yml, with the run that collect.yml knows by then."""
    play = tmp_path / "keep.yml"
    play.write_text(
        json.dumps(
            [
                {
                    "hosts": "ssd_servers",
                    "gather_facts": False,
                    "vars": {"ssd_run": {"id": "r1", "results_dir": str(lab.results)}},
                    "tasks": [
                        {"ansible.builtin.include_role": {"name": "ssdlab.fleet.vendor", "tasks_from": "bugreport"}}
                    ],
                }
            ]
        )
    )
    code, output = lab.play(
        play, env=dict(lab.environment, ANSIBLE_COLLECTIONS_PATH=str(REPO / "playbooks" / "collections"))
    )
    assert code == 0, output
    (kept,) = (lab.results / "r1" / "bugreports" / "server").iterdir()
    assert kept.name.startswith("fio-bugreport-") and kept.stat().st_size > 0
    assert not list(tmp_path.glob("fio-bugreport-*"))


class Bmc:
    """sushy-emulator with its fake driver over TLS, and what it says of the one system's power. `deaf`: while the file
    is there, nothing shuts it down.
    """

    def __init__(self, folder):
        import bcrypt  # comes with sushy-tools

        self.folder = folder
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-keyout",
                str(folder / "key.pem"),
                "-out",
                str(folder / "cert.pem"),
            ],
            check=True,
            capture_output=True,
        )
        digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (folder / "users").write_text(f"{USER}:{digest}\n")
        (folder / "sushy.conf").write_text(
            "\n".join(
                [
                    "SUSHY_EMULATOR_FAKE_DRIVER = True",
                    "SUSHY_EMULATOR_AUTH_FILE = {!r}".format(str(folder / "users")),
                    f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}",
                    (
                        f"SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': {SYSTEM!r}, 'name': 'fake', 'power_state': 'On', "
                        "'external_notifier': False, 'nics': []}]"
                    ),
                ]
            )
            + "\n"
        )
        with _socket(socket.SOCK_STREAM) as probe:
            self.port = probe.getsockname()[1]
        self.deaf = folder / "deaf"
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
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "\n".join(code),
                "--config",
                str(folder / "sushy.conf"),
                "-i",
                "localhost",
                "-p",
                str(self.port),
                "--ssl-certificate",
                str(folder / "cert.pem"),
                "--ssl-key",
                str(folder / "key.pem"),
            ],
            stdout=open(folder / "sushy.log", "w"),
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 60
        while self.power() is None:
            assert self.process.poll() is None and time.monotonic() < deadline, (folder / "sushy.log").read_text()
            time.sleep(0.3)

    def power(self):
        request = urllib.request.Request(f"https://localhost:{self.port}/redfish/v1/Systems/{SYSTEM}")
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
        self.process.wait(timeout=20)


def _socket(kind=socket.SOCK_DGRAM):
    """A socket with a port that nobody has."""
    made = socket.socket(type=kind)
    made.bind(("localhost", 0))
    return made


@pytest.fixture
def ipmi_bmc(tmp_path):
    """A BMC by IPMI whose system is on."""
    made = IpmiBmc(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def redfish_bmc(tmp_path):
    """A BMC by Redfish whose system is on."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl for the BMC's certificate")
    folder = tmp_path / "bmc"
    folder.mkdir()
    made = Bmc(folder)
    try:
        yield made
    finally:
        made.end()


class IpmiBmc:
    """A BMC that speaks IPMI: pyghmi's own, in a process of its own. `deaf` as above."""

    def __init__(self, folder):
        self.file, self.deaf = folder / "power", folder / "deaf"
        self.file.write_text("on")
        with _socket() as probe:
            self.port = probe.getsockname()[1]
        code = [
            "import sys, pathlib, pyghmi.ipmi.bmc as bmc, pyghmi.ipmi.private.serversession as sessions",
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
            "    def power_off(self): file.write_text('off')",
            "    def power_on(self): file.write_text('on')",
            f"    def power_shutdown(self): pathlib.Path({str(self.deaf)!r}).exists() or self.power_off()",
            "    def is_active(self): return True",
            f"Fake({{{USER!r}: {PASSWORD!r}}}, port=int(sys.argv[1]), address='::ffff:127.0.0.1').listen()",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-c", "\n".join(code), str(self.port), str(self.file)],
            stdout=open(folder / "ipmi.log", "w"),
            stderr=subprocess.STDOUT,
        )
        time.sleep(1.5)
        assert self.process.poll() is None, (folder / "ipmi.log").read_text()

    def power(self):
        return {"on": "On", "off": "Off"}.get(self.file.read_text())

    def end(self):
        self.process.kill()
        self.process.wait(timeout=20)


class Machine(threading.Thread):
    """The server behind the BMC: while it is off it forgets what is pending, and when it comes on it has another boot
    id.
    """

    def __init__(self, bmc, lab, boot_id_file):
        super().__init__(daemon=True)
        self.bmc, self.lab, self.file, self.powers, self.ended = bmc, lab, boot_id_file, [], threading.Event()

    def run(self):
        while not self.ended.wait(0.5):
            power = self.bmc.power()
            if power is None or power == (self.powers or [None])[-1]:
                continue
            self.powers.append(power)
            if power == "On" and len(self.powers) > 1:
                emulator.power_cycle(self.lab.machine)
                self.file.write_text(f"{uuid.uuid4()}\n")


def allowed(bmc, **more):
    return dict(
        {
            "vendor_power_cycle": True,
            "vendor_bmc_address": f"localhost:{bmc.port}",
            "vendor_bmc_user": USER,
            "vendor_bmc_password": PASSWORD,
            "vendor_bmc_ca_path": str(getattr(bmc, "folder", Path()) / "cert.pem"),
            "vendor_power_cycle_off_s": 1,
            "vendor_bmc_system": SYSTEM,
        },
        **more,
    )


@pytest.mark.parametrize("protocol", ["redfish", "ipmi"])
def test_the_host_is_power_cycled_and_the_setting_checked(lab, protocol, request, tmp_path):
    bmc = request.getfixturevalue(protocol + "_bmc")
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    server = Machine(bmc, lab, boot_id)
    server.start()
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    code, output = lab.vendor(
        "-vvv",
        prefix=namespace,
        vendor_rssdm=[{"serial": "S1", "queue_depth": 256}],
        **allowed(bmc, vendor_bmc_protocol=protocol),
    )
    server.ended.set()
    assert code == 0, output
    assert server.powers == ["On", "Off", "On"]
    drive = lab.seen()["rssdm"]["drives"][1]
    assert drive["interrupt_coalescing"] == 0xD801F and "pending" not in drive
    assert "Leave it without power" in output and PASSWORD not in output and USER not in output
    assert base64.b64encode((f"{USER}:{PASSWORD}").encode()).decode() not in output
    code, output = lab.vendor(prefix=namespace)
    assert code == 0 and "changed=0" in output, output


@pytest.mark.parametrize("protocol, shutdown", [("redfish", "hangs"), ("redfish", "refuses"), ("ipmi", "hangs")])
def test_a_host_that_does_not_shut_down_is_switched_off_hard_only_where_that_is_allowed(
    lab, protocol, shutdown, request, tmp_path
):
    bmc = request.getfixturevalue(protocol + "_bmc")
    bmc.deaf.write_text(shutdown)
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    asked = allowed(bmc, vendor_bmc_protocol=protocol, vendor_power_cycle_shutdown_s=5)
    code, output = lab.vendor(prefix=namespace, vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **asked)
    assert code != 0 and "did not do this: " in output and bmc.power() == "On", output
    server = Machine(bmc, lab, boot_id)
    server.start()
    code, output = lab.vendor(prefix=namespace, vendor_power_cycle_force=True)
    server.ended.set()
    assert code == 0 and server.powers == ["On", "Off", "On"], output
    assert lab.seen()["rssdm"]["drives"][1]["interrupt_coalescing"] == 0xD801F and PASSWORD not in output


def test_a_bmc_that_refuses_is_told_without_the_password(lab, redfish_bmc):
    wrong = PASSWORD + "-wrong"
    code, output = lab.vendor(
        "-vvv", vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **allowed(redfish_bmc, vendor_bmc_password=wrong)
    )
    assert code != 0 and "did not do this: " in output and "Shut the host down" in output, output
    assert PASSWORD not in output and USER not in output and redfish_bmc.power() == "On"


def test_a_host_that_did_not_boot_anew_is_told(lab, redfish_bmc, tmp_path):
    """The BMC switches, but it is another machine's: our boot id stays."""
    code, output = lab.vendor(
        vendor_rssdm=[{"serial": "S1", "queue_depth": 256}], **allowed(redfish_bmc, vendor_power_cycle_timeout_s=5)
    )
    assert code != 0 and "Wait until the host has rebooted" in output, output


@pytest.fixture
def measured(lab, loop_drive):
    """The lab with a drive to measure: the vendors' drives beside it are only set."""
    lab.hosts["server"]["ssd_drives"] = [loop_drive().selector]
    short = dict(lab.vars["ssd_plan"][0], precondition=False)
    short["steady_state"] = dict(short["steady_state"], min_capacity_multiple=0, confirm_windows=0)
    lab.vars["ssd_plan"] = [short]
    lab.qualify = lambda *args, prefix=(), book="qualify": lab.play(book, *args, env=lab.environment, prefix=prefix)
    return lab


def test_a_run_stops_the_host_whose_setting_waits_for_a_power_cycle_and_the_others_go_on(
    measured, loop_drive, tmp_path
):
    """A second server with a host name of its own: this machine in another UTS namespace."""
    python = tmp_path / "python-of-rack1-08"
    python.write_text(
        f'#!/bin/sh\nexec unshare --uts sh -c \'hostname rack1-08; exec "$0" "$@"\' {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    measured.hosts["rack1-08"] = {
        "ssd_drives": [loop_drive("other").selector],
        "ansible_python_interpreter": str(python),
    }
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "queue_depth": 256}]
    for plan in (("-e", "ssd_mode=plan"), ("--check",)):
        code, output = measured.qualify(*plan)
        assert code == 0 and "The host would be left out: it may not be power-cycled" in output, output
        assert not any(pending(measured).values()) and measured.run_folders() == []
    code, output = measured.qualify()
    assert code != 0 and "Power-cycle the host (a reboot is not enough)" in output, output
    assert pending(measured)["S1"] == {"interrupt_coalescing": 0xD801F}
    verdicts = {drive["host"]: (drive["verdict"], " ".join(drive["reasons"])) for drive in measured.summary()["drives"]}
    assert verdicts["rack1-08"][0] == "pass" and verdicts["server"][0] == "not_tested", verdicts
    assert "waits for a power cycle" in verdicts["server"][1], verdicts
    code, output = measured.qualify("--limit", "server", book="restore")
    assert code == 0 and pending(measured)["S1"] == {"interrupt_coalescing": 0xD200F}, output
    assert "interrupt_coalescing = 0xD200F is set and waits for a power cycle" in output, output


def test_a_run_power_cycles_the_host_for_its_settings_and_restore_brings_the_old_ones(measured, redfish_bmc, tmp_path):
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    server = Machine(redfish_bmc, measured, boot_id)
    server.start()
    namespace = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot_id)]
    asked = {"interrupt_coalescing": 0xD801F, "power_limiting": 1}
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "queue_depth": 256, "power_limiting": True}]
    measured.vars.update(allowed(redfish_bmc))
    code, output = measured.qualify("-e", "ssd_mode=plan", prefix=namespace)
    assert code == 0 and "The host would be power-cycled." in output and server.powers == ["On"], output
    code, output = measured.qualify(prefix=namespace)
    assert code == 0 and measured.summary()["verdicts"]["pass"] == 1, output
    drive = measured.seen()["rssdm"]["drives"][1]
    assert {name: drive[name] for name in asked} == asked and server.powers == ["On", "Off", "On"]
    # The job began in the boot that has the settings.
    assert measured.journal("job_started")[0]["boot_id"] == boot_id.read_text().strip()
    code, output = measured.qualify(prefix=namespace, book="restore")
    server.ended.set()
    drive = measured.seen()["rssdm"]["drives"][1]
    assert code == 0 and "pending" not in drive and server.powers == ["On", "Off", "On", "Off", "On"], output
    assert (drive["interrupt_coalescing"], drive["power_limiting"]) == (0xD200F, 0)
    code, output = measured.qualify(prefix=namespace, book="restore")
    assert code == 0 and "changed=0" in output and "pending" not in measured.seen()["rssdm"]["drives"][1], output


def test_a_wrong_setting_stops_its_host_before_the_host_job(measured):
    measured.hosts["server"]["vendor_rssdm"] = [{"serial": "S1", "interrupt_coalescing": "0xD800F"}]
    code, output = measured.qualify()
    assert code != 0 and "unexpected results" in output and measured.run_folders() == [], output
    assert not any(pending(measured).values())
