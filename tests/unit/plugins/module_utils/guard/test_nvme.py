# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an NVMe drive says of itself. The answers have the form of nvme-cli 2.3 (nvme-print.c) and, where named, of
later versions.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.nvme import probe_nvme
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import opal

PLACES = ("shared", "reserved", "read_only", "placeholder", "sanitizing", "sanitize_failed", "opal", "failures")


@pytest.fixture
def host(fake):
    """A host with one NVMe drive, and nothing against it."""
    fake.block = fake.nvme("nvme0n1", "259:0", "SN1")
    return fake


def found(fake, name="nvme0n1"):
    facts = Facts(name=name, path="/dev/" + name, kind="drive", identity=identity.identity(fake, name))
    probe_nvme(fake, facts)
    return {place: getattr(facts, place) for place in PLACES if getattr(facts, place)}


def dump(data):
    """nvme-cli's d(): address, sixteen bytes, the text in quotes."""
    lines = ["NVME Security Receive Command Success:0", "       0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f"]
    for start in range(0, len(data), 16):
        lines.append('{:04x}: {} "................"'.format(start, data[start : start + 16].hex(" ")))
    return (0, "\n".join(lines) + "\n", "")


def discovery(*features, length=None):
    """A Level 0 discovery: TCG Storage Core 2.01, table 41; each feature is (code, bytes)."""
    body = b"".join(code.to_bytes(2, "big") + b"\x10" + bytes([len(data)]) + data for code, data in features)
    end = 48 + len(body) - 4 if length is None else length
    return end.to_bytes(4, "big") + bytes(44) + body


PROTOCOLS = bytes(6) + b"\0\3" + b"\0\1\2"
TPER = (0x0001, bytes([0x01]) + bytes(11))
OPAL2 = (0x0203, bytes(16))


def locking(flags):
    return (0x0002, bytes([flags]) + bytes(11))


def opal_drive(host, data, protocols=PROTOCOLS):
    """A drive with Security Receive, which answers by protocol."""
    host.nvme_says("id-ctrl", {"oacs": 0x7})
    run = host.run

    def answer(argv, **options):
        if argv[:2] == ["nvme", "security-recv"]:
            host.answers["nvme security-recv"] = dump(data if "--secp=1" in argv else protocols)
        return run(argv, **options)

    host.run = answer


def test_nothing_against_a_drive_of_its_own(host):
    assert found(host) == {}
    assert [command[1] for command in host.commands] == ["id-ctrl", "id-ns", "smart-log"]


def test_the_controller_is_found_by_links_not_by_numbers(host):
    """nvme3n1 hangs on nvme0: a number says nothing (with a subsystem it is that of the subsystem)."""
    block = host.disk("nvme3n1", "259:3", "/sys/devices/pci0000:90/0000:90:01.0/nvme/nvme7", nsid="2")
    host.put("/sys/devices/pci0000:90/0000:90:01.0/nvme/nvme7/transport", "pcie")
    host.link(block + "/device", "/sys/devices/pci0000:90/0000:90:01.0/nvme/nvme7")
    assert found(host, "nvme3n1") == {}
    assert all("/dev/nvme7" in command for command in host.commands)
    assert ["nvme", "id-ns", "/dev/nvme7", "--namespace-id=2", "--output-format=json"] in host.commands


@pytest.mark.parametrize(
    "nmic, cmic, attached, shared",
    [
        (0, 0, None, False),
        (0, 2, None, False),  # two ports, but this namespace has only one
        (1, 0, None, False),  # only one controller in the subsystem
        (1, 2, None, True),  # unknown
        (1, 2, 1, False),
        (1, 0, 1, False),
        (1, 2, 2, True),
        (1, 0, 2, True),
        (1, 2, 0, True),
    ],
)
def test_who_else_reaches_the_namespace(host, nmic, cmic, attached, shared):
    host.nvme_says("id-ns", {"nmic": nmic})
    host.nvme_says("id-ctrl", {"cmic": cmic})
    if attached is None:
        host.answers["nvme list-ctrl"] = (1, "", "NVMe status: INVALID_FIELD")
    else:
        host.nvme_says(
            "list-ctrl", {"num_ctrl": attached, "ctrl_list": [{"ctrl_id": number} for number in range(attached)]}
        )
    assert ("shared" in found(host)) is shared


def test_two_controllers_of_this_host(fake):
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    block = fake.disk("nvme0n1", "259:0", subsystem, nsid="1")
    fake.link(block + "/device", subsystem)
    for name in ("nvme0", "nvme1"):
        fake.put(f"/sys/devices/pci/{name}/transport", "pcie")
        fake.link(f"{subsystem}/{name}", "/sys/devices/pci/" + name)
    assert "/dev/nvme0, /dev/nvme1" in found(fake)["shared"][0]


@pytest.mark.parametrize(
    "report, refused",
    [
        ({"regctl": 0, "rtype": 0}, False),
        ({"regctl": 1, "rtype": 0, "regctls": [{"cntlid": 1}]}, True),
        ({"regctl": 1, "rtype": 5}, True),
        ({"regctl": 0, "rtype": 1}, True),
    ],
)
def test_reservations(host, report, refused):
    host.nvme_says("resv-report", report)
    host.nvme_says("id-ctrl", {"oncs": 0x20})
    assert ("reserved" in found(host)) is refused
    assert ["nvme", "resv-report", "/dev/nvme0n1", "--output-format=json"] in host.commands
    host.nvme_says("id-ctrl", {"oncs": 0})
    assert found(host) == {}


def test_reservations_as_nvme_cli_3_names_them(host):
    host.nvme_says("id-ctrl", {"oncs": 0x20})
    host.answers["nvme resv-report"] = (0, json.dumps({"gen": 1, "rtype": 0, "regstrnt": 2, "ptpls": 0}), "")
    assert "reserved" in found(host)


def sanitize_log(status):
    """The JSON of nvme sanitize-log 2.3."""
    return {
        "nvme0": {
            "sprog": 65535,
            "sstat": {"global_erased": 0, "no_cmplted_passes": 0, "status": status},
            "cdw10_info": 0,
        }
    }


@pytest.mark.parametrize(
    "status, place",
    [
        ("(0) NVM Subsystem has never been sanitized.", None),
        ("(1) Most Recent Sanitize Command Completed Successfully.", None),
        ("(2) Sanitize in Progress.", "sanitizing"),
        ("(3) Most Recent Sanitize Command Failed.", "sanitize_failed"),
        ("(4) Most Recent Sanitize Command (No-Deallocate After Sanitize) Completed Successfully.", None),
        ("(7) Unknown", "failures"),
    ],
)
def test_sanitize(host, status, place):
    host.nvme_says("sanitize-log", sanitize_log(status))
    host.nvme_says("id-ctrl", {"sanicap": 0x3})
    assert list(found(host)) == ([place] if place else [])
    host.nvme_says("id-ctrl", {"sanicap": 0})
    assert found(host) == {}


@pytest.mark.parametrize(
    "command, values, place",
    [
        ("id-ns", {"nsattr": 1}, "read_only"),
        ("smart-log", {"critical_warning": 0x8}, "read_only"),
        ("smart-log", {"critical_warning": {"value": 0x8, "ro": 1}}, "read_only"),  # nvme smart-log in its long form
        ("id-ns", {"ncap": 0}, "placeholder"),
    ],
)
def test_the_state_of_the_namespace(host, command, values, place):
    host.nvme_says(command, values)
    assert list(found(host)) == [place]


@pytest.mark.parametrize(
    "data, refused",
    [
        (discovery(TPER, locking(0x09), OPAL2), False),  # supported, media encryption; nobody has taken it
        (discovery(TPER, locking(0x0B)), False),  # enabled, and unlocked
        (discovery(TPER, locking(0x0F)), True),
        (discovery(TPER, locking(0x1B)), True),  # shadow MBR, not done: reads as zeros
        (discovery(TPER, locking(0x3B)), False),
        (discovery(TPER, OPAL2), False),
    ],
)
def test_opal(host, data, refused):
    opal_drive(host, data.ljust(2048, b"\0"))
    assert list(found(host)) == (["opal"] if refused else [])


def test_security_without_tcg_is_no_opal(host):
    opal_drive(host, b"", bytes(6) + b"\0\2" + b"\0\xef")
    assert found(host) == {}


@pytest.mark.parametrize(
    "data", [b"", bytes(48), discovery(TPER, length=5000), discovery((0x0002, b"")), discovery(TPER, length=50)]
)
def test_a_discovery_that_is_none_is_unknown(host, data):
    opal_drive(host, data)
    assert list(found(host)) == ["failures"]


@given(st.binary(max_size=120), st.booleans())
def test_no_answer_makes_the_opal_parser_fail_or_lie(data, framed):
    data = discovery(TPER, locking(0x04)) + data if framed else data
    try:
        seen = opal.locked(data)
        assert seen or not framed
    except ValueError:
        assert not framed
    try:
        assert all(0 <= protocol < 256 for protocol in opal.protocols(data))
    except ValueError:
        pass


@pytest.mark.parametrize("command", ["id-ctrl", "id-ns", "smart-log", "resv-report", "sanitize-log", "security-recv"])
@pytest.mark.parametrize(
    "answer", [(1, "", "failed"), (0, "", ""), (0, "{}", ""), (0, "[]", ""), (0, "garbage", ""), (124, "", "no answer")]
)
def test_no_answer_is_unknown(host, command, answer):
    host.nvme_says("id-ctrl", {"oncs": 0x20, "sanicap": 1, "oacs": 1})
    host.nvme_says("sanitize-log", sanitize_log("(0) never"))
    host.answers["nvme security-recv"] = dump(bytes(6) + b"\0\2" + b"\0\xef")
    assert found(host) == {}
    host.answers["nvme " + command] = answer
    assert list(found(host)) == ["failures"]


def test_a_missing_tool_names_its_package(host):
    for command in list(host.answers):
        if command.startswith("nvme"):
            del host.answers[command]
    assert "install nvme-cli" in found(host)["failures"][0]


def test_without_a_namespace_id_or_a_controller_nothing_is_known(host):
    host.put(host.block + "/nsid", "")
    assert list(found(host)) == ["failures"]
    host.disk("nvme5n1", "259:5", nsid="1")
    assert list(found(host, "nvme5n1")) == ["failures"]
