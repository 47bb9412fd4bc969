# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SATA and SAS drives say of themselves. The answers have the form of hdparm 9.65 and sg3_utils 1.46, from their
sources.
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.scsi import probe_ata, probe_scsi
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity

PLACES = ("ata_security", "reserved", "sanitizing", "sanitize_failed", "opal", "failures")
SERIAL = "S4ABC"
NOT_SUPPORTED = (9, "", "security protocol in: command not supported\n")
READY = " 00     70 00 00 00 00 00 00 0a  00 00 00 00 00 00 00 00\n 10     00 00\n"


def words(security=0x21, sanitize=0):
    """`hdparm --Istdout` of an SSD: IDENTIFY DEVICE after ACS-3, table 45; word 128 is the security status, word 59
    sanitize.
    """
    page = [0] * 256
    page[0], page[82], page[83], page[84], page[87] = 0x0040, 0x0002, 0x4000, 0x4000, 0x4000
    for start, text, length in ((10, SERIAL, 20), (23, "FW1", 8), (27, "EXAMPLE SSD", 40)):
        data = text.ljust(length).encode()
        page[start : start + length // 2] = [data[place] << 8 | data[place + 1] for place in range(0, length, 2)]
    page[59], page[128] = sanitize, security
    return (
        "\n/dev/sda:\n"
        + "\n".join(" ".join(f"{word:04x}" for word in page[start : start + 8]) for start in range(0, 256, 8))
        + "\n"
    )


def status(state, *lines):
    return (
        0,
        "\n/dev/sda:\nIssuing SANITIZE_STATUS command\nSanitize status:\n    State:    {}\n{}".format(
            state, "".join(lines)
        ),
        "",
    )


def dump(data):
    """sg_raw's hex dump, on stderr."""
    lines = ["SCSI Status: Good \n", f"Received {len(data)} bytes of data:"]
    for start in range(0, len(data), 16):
        part = data[start : start + 16]
        lines.append(" {:02x}     {}  {}".format(start, part[:8].hex(" "), part[8:].hex(" ")))
    return (0, "", "\n".join(line.rstrip() for line in lines) + "\n")


@pytest.fixture
def sata(fake):
    """A SATA drive without Trusted Computing, and nothing against it."""
    fake.answers.update({"hdparm --Istdout": (0, words(), ""), "hdparm -V": (0, "hdparm v9.65", "")})
    trusted(fake, 0x4000)
    return fake


@pytest.fixture
def sas(fake):
    """A SAS drive without security protocols, and nothing against it."""
    fake.answers.update(
        {
            "sg_turs": (0, "", ""),
            "sg_requests": (0, READY, ""),
            "sg_persist": (0, "  PR generation=0x0, Additional length=0\n", ""),
            "sg_raw": NOT_SUPPORTED,
        }
    )
    return fake


def trusted(fake, word):
    page = bytearray(572)
    page[60 + 96 : 60 + 98] = word.to_bytes(2, "little")
    fake.put("/sys/block/sda/device/vpd_pg89", bytes(page))


def facts_of(fake, probe):
    facts = Facts(name="sda", path="/dev/sda", kind="drive", identity=Identity(serial=SERIAL))
    probe(fake, facts)
    return facts


def found(fake, probe):
    facts = facts_of(fake, probe)
    return {place: getattr(facts, place) for place in PLACES if getattr(facts, place)}


def opal(fake, flags):
    """Security Protocol In: the list of protocols, then a Level 0 discovery with a Locking feature."""
    feature = b"\0\2\x10\x0c" + bytes([flags]) + bytes(11)
    answers = {"00": bytes(6) + b"\0\2\0\1", "01": (44 + len(feature)).to_bytes(4, "big") + bytes(44) + feature}
    run = fake.run

    def answer(argv, **options):
        if argv[0] == "sg_raw":
            assert argv[1] == "--readonly" and argv[4] == "a2"
            fake.answers["sg_raw"] = dump(answers[argv[5]])
        return run(argv, **options)

    fake.run = answer


# --- SATA ---------------------------------------------------------------------


def test_nothing_against_a_sata_drive(sata):
    assert found(sata, probe_ata) == {}
    assert [command[0] for command in sata.commands] == ["hdparm", "hdparm"]


@pytest.mark.parametrize(
    "security, findings, frozen",
    [
        (0x21, [], False),
        (0x00, [], False),
        (0x29, [], True),  # frozen: what a purge method asks about
        (0x23, ["enabled"], False),
        (0x27, ["locked", "enabled"], False),
        (0x31, ["its attempts have expired"], False),
    ],
)
def test_ata_security(sata, security, findings, frozen):
    sata.answers["hdparm --Istdout"] = (0, words(security), "")
    facts = facts_of(sata, probe_ata)
    assert (facts.ata_security, facts.ata_frozen, facts.failures) == (findings, frozen, [])


@pytest.mark.parametrize(
    "answer, place",
    [
        (status("SD0 Sanitize Idle"), None),
        (status("SD0 Sanitize Idle", "    Last Sanitize Operation Completed Without Error\n"), None),
        (status("SD2 Sanitize operation In Process", "    Progress: 0x8000 (50%)\n"), "sanitizing"),
        (
            (
                5,
                "Issuing SANITIZE_STATUS command\n",
                "SANITIZE failed: Input/output error\nDrive in SD3 Sanitize Operation Failed state\n",
            ),
            "sanitize_failed",
        ),
        ((5, "", "SANITIZE failed: Input/output error\n"), "failures"),
    ],
)
def test_a_sanitize_of_a_sata_drive(sata, answer, place):
    sata.answers["hdparm --Istdout"] = (0, words(sanitize=0xB000), "")
    sata.answers["hdparm --sanitize-status"] = answer
    assert list(found(sata, probe_ata)) == ([place] if place else [])


@pytest.mark.parametrize("flags, refused", [(0x0B, False), (0x0F, True), (0x1B, True)])
def test_opal_of_a_sata_drive(sata, flags, refused):
    trusted(sata, 0x4001)
    opal(sata, flags)
    assert list(found(sata, probe_ata)) == (["opal"] if refused else [])


@pytest.mark.parametrize(
    "word, answer, places",
    [
        (0x4001, NOT_SUPPORTED, ["failures"]),  # it has Trusted Computing, so no answer is no good one
        (0x4001, (127, "", ""), ["failures"]),
        (0x0000, NOT_SUPPORTED, []),  # the word is not valid, and the drive has no such command
        (0x0000, (127, "", ""), ["failures"]),
        (0x4001, (0, "", "garbage"), ["failures"]),
    ],
)
def test_when_opal_cannot_be_asked(sata, word, answer, places):
    trusted(sata, word)
    sata.answers["sg_raw"] = answer
    assert list(found(sata, probe_ata)) == places


@pytest.mark.parametrize(
    "answer", [(0, "", ""), (0, "garbage", ""), (0, words().replace("5334", "5335"), ""), (0, words()[:900], "")]
)
def test_a_sata_drive_that_is_not_understood(sata, answer):
    sata.answers["hdparm --Istdout"] = answer
    assert list(found(sata, probe_ata)) == ["failures"]


# --- SAS ----------------------------------------------------------------------


def test_nothing_against_a_sas_drive(sas):
    assert found(sas, probe_scsi) == {}


@pytest.mark.parametrize(
    "text, place",
    [
        (
            "  PR generation=0x4, Additional length=16\n 00     00 00 00 00 00 00 00 01  00 00 00 00 00 00 00 02\n",
            "reserved",
        ),
        ("garbage", "failures"),
        ("  PR generation=0x4, Additional length=16\n", "failures"),
    ],
)
def test_registered_keys(sas, text, place):
    sas.answers["sg_persist"] = (0, text, "")
    assert list(found(sas, probe_scsi)) == [place]


@pytest.mark.parametrize(
    "rc, places", [(5, []), (9, []), (24, ["failures"]), (2, ["failures"]), (124, ["failures"]), (127, ["failures"])]
)
def test_a_drive_without_reservations_has_none(sas, rc, places):
    sas.answers["sg_persist"] = (rc, "", "PR in: failed")
    assert list(found(sas, probe_scsi)) == places


@pytest.mark.parametrize(
    "sense, place",
    [
        ("70 00 02 00 00 00 00 0a  00 00 00 00 04 1b 00 80\n 10     40 00", "sanitizing"),
        ("70 00 03 00 00 00 00 0a  00 00 00 00 31 03 00 00\n 10     00 00", "sanitize_failed"),
        ("70 00 04 00 00 00 00 0a  00 00 00 00 44 00 00 00\n 10     00 00", "failures"),
    ],
)
def test_a_sanitize_of_a_sas_drive(sas, sense, place):
    sas.answers["sg_requests"] = (0, " 00     " + sense + "\n", "")
    assert list(found(sas, probe_scsi)) == [place]


@pytest.mark.parametrize("flags, refused", [(0x0B, False), (0x0F, True), (0x1B, True)])
def test_opal_of_a_sas_drive(sas, flags, refused):
    opal(sas, flags)
    assert list(found(sas, probe_scsi)) == (["opal"] if refused else [])


@pytest.mark.parametrize("probe, package", [(probe_ata, "install hdparm"), (probe_scsi, "install sg3-utils")])
def test_a_missing_tool_names_its_package(fake, probe, package):
    (failure,) = found(fake, probe)["failures"]
    assert package in failure
