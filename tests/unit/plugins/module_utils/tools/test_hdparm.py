# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hdparm prints, read. Recorded outputs: tests/fixtures/commands/hdparm/README.md."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from dataclasses import replace

import ata_drive
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.progress import DONE, FAILED, IDLE, RUNNING, Progress
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import AtaSecurity
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import hdparm

FIXTURES = pathlib.Path(__file__).parents[4] / "fixtures" / "commands" / "hdparm"
NOTHING = AtaSecurity(*[False] * 6, None, None)
ISSUING = "\n/dev/sda:\nIssuing SANITIZE_STATUS command\n"


def recorded(name):
    return (FIXTURES / (name + ".txt")).read_text()


def istdout(words):
    return (
        "\n/dev/sda:\n"
        + "\n".join(" ".join(f"{word:04x}" for word in words[start : start + 8]) for start in range(0, len(words), 8))
        + "\n"
    )


def drive(tmp_path_factory=None, **facts):
    return ata_drive.new(__file__, **facts)


def summed(words):
    words[255] = 0xA5 | (-sum((word >> 8) + (word & 0xFF) for word in words[:255]) - 0xA5) % 256 << 8
    return words


@pytest.mark.parametrize(
    "name, serial, model, firmware",
    [
        ("istdout-st3160023as", "3JS2KSL3", "ST3160023AS", "3.18"),
        ("istdout-maxtor-6b200m0", "B41RVC2H", "Maxtor 6B200M0", "BANC1BY0"),
    ],
)
def test_recorded_drives_without_sanitize(name, serial, model, firmware):
    found = hdparm.identify(recorded(name))
    told = hdparm.Identify(serial, model, firmware, (), replace(NOTHING, supported=True), has_self_tests=True)
    assert found == told


@pytest.mark.parametrize(
    ("trim", "reads"),
    [
        (["TRIM", "DRAT", "RZAT"], "zeros"),
        (["TRIM", "DRAT"], None),
        (["TRIM", "RZAT"], None),
        (["DRAT", "RZAT"], None),
        ([], None),
    ],
)
def test_trimmed_blocks_read_as_zeros_where_three_bits_say_so(trim, reads):
    found = hdparm.identify(istdout(ata_drive.words(drive(trim=trim))))
    assert found.deallocated_read == reads


@pytest.mark.parametrize("offered", [True, False])
def test_self_tests_are_a_bit_of_a_word_that_counts(offered):
    words = ata_drive.words(drive(self_tests=offered))
    assert hdparm.identify(istdout(words)).has_self_tests is offered
    words[84] &= 0x3FFF
    assert hdparm.identify(istdout(summed(words))).has_self_tests is None


@pytest.mark.parametrize(
    "facts, expected",
    [
        ({}, {"supported": True, "enhanced": True, "erase_min": 2, "enhanced_erase_min": 2}),
        ({"supported": False}, {"supported": False}),
        ({"frozen": True}, {"frozen": True}),
        ({"password": "x"}, {"enabled": True, "locked": False}),
        ({"password": "x", "locked": True}, {"enabled": True, "locked": True}),
        ({"attempts": 0}, {"expired": True}),
        (
            {"enhanced": False, "units": 0, "enhanced_units": 0},
            {"enhanced": False, "erase_min": None, "enhanced_erase_min": None},
        ),
        ({"units": 0xFF, "enhanced_units": 0xFFFF}, {"erase_min": 508, "enhanced_erase_min": 65532}),
        ({"units": 0x8123}, {"erase_min": 582}),
    ],
)
def test_each_state_of_the_security_feature_set(facts, expected):
    found = hdparm.identify(istdout(ata_drive.words(drive(security=facts)))).security
    assert replace(found, **expected) == found


def test_sanitize_operations_count_only_with_the_feature_set():
    words = ata_drive.words(drive(sanitize={"operations": ["overwrite", "block_erase"]}))
    assert hdparm.identify(istdout(words)).sanitize == ("overwrite", "block_erase")
    words[59] &= ~(1 << 12)
    assert hdparm.identify(istdout(summed(words))).sanitize == ()


def test_of_two_words_that_contradict_each_other_the_worse_counts():
    words = ata_drive.words(drive())
    words[85] |= 2
    assert hdparm.identify(istdout(summed(words))).security.enabled
    words[82] &= ~2
    assert not hdparm.identify(istdout(summed(words))).security.supported


def test_swapped_bytes_are_set_right():
    words = ata_drive.words(drive())
    assert hdparm.identify(istdout([word >> 8 | (word & 0xFF) << 8 for word in words])) == hdparm.identify(
        istdout(words)
    )


def broken(**changes):
    words = ata_drive.words(drive())
    for place, value in changes.items():
        words[int(place[1:])] = value
    return words


@pytest.mark.parametrize(
    "text",
    [
        "",
        recorded("istdout-loop"),
        istdout(ata_drive.words(drive())[:248]),
        istdout(ata_drive.words(drive()) * 2),
        istdout(ata_drive.words(drive())).replace("0040", "004g"),
        istdout(broken(w128=0)),  # the checksum
        istdout(summed(broken(w0=0x8580))),  # ATAPI
        istdout(summed(broken(w83=0))),
        istdout(summed(broken(w84=0, w87=0))),
        istdout(summed(broken(**{f"w{place}": 0x2020 for place in range(10, 20)}))),
        istdout(summed(broken(w12=0x0107))),
        istdout(broken(w83=0x0040)),  # its other byte order would pass, without the checksum
        istdout([0] * 256),
        istdout([0xFFFF] * 256),
    ],
)
def test_what_is_not_the_identity_of_a_drive_is_an_error(text):
    with pytest.raises(ValueError):
        hdparm.identify(text)


class Hdparm(Host):
    """Answers with one text."""

    def __init__(self, text, rc=0, stderr=""):
        super().__init__()
        self.answer = (rc, text, stderr)

    def run(self, argv, timeout_s=60, stdin=None):
        assert argv == ["hdparm", "--Istdout", "/dev/sda"]
        return Result(argv, *self.answer)


@pytest.mark.parametrize(
    "host, serial, message",
    [
        (Hdparm("", 127), None, "install"),
        (
            Hdparm("\n/dev/sda:\n", 0, "SG_IO: bad/missing sense data\nmore"),
            None,
            "0 of the 256 words.*it said: SG_IO: bad",
        ),
        (Hdparm(istdout(ata_drive.words(drive()))), "OTHER", "another drive"),
    ],
)
def test_reading_says_what_is_wrong(host, serial, message):
    with pytest.raises(ValueError, match=message):
        hdparm.read(host, "/dev/sda", serial)


@pytest.mark.parametrize("serial", [None, "22123A4F5B6C", " 22123A4F5B6C "])
def test_reading_a_drive(serial):
    assert hdparm.read(Hdparm(istdout(ata_drive.words(drive()))), "/dev/sda", serial).serial == "22123A4F5B6C"


def status(stdout, rc=0, stderr=""):
    return hdparm.sanitize_status(Result(["hdparm", "--sanitize-status", "/dev/sda"], rc, stdout, stderr))


@pytest.mark.parametrize(
    "stdout, rc, stderr, expected",
    [
        (recorded("sanitize-status-done"), 0, "", Progress(DONE)),
        (recorded("sanitize-status-running"), 0, "", Progress(RUNNING, 0x41C2 / 65536)),
        (ISSUING + "Sanitize status:\n    State:    SD0 Sanitize Idle\n", 0, "", Progress(IDLE)),
        (
            ISSUING
            + (
                "Sanitize status:\n    State:    SD1 Sanitize Frozen\n    Last Sanitize Operation Completed Without "
                "Error\n"
            ),
            0,
            "",
            Progress(hdparm.FROZEN),
        ),
        (
            ISSUING + "Sanitize status:\n    State:    SD2 Sanitize operation In Process\n",
            0,
            "",
            Progress(RUNNING, None),
        ),
        (ISSUING + "Sanitize status:\n    State:    SD4 Sanitize Operation succeeded\n", 0, "", Progress(DONE)),
        (
            ISSUING + "Sanitize status:\n    State:    SD3 Sanitize Operation Failed\n",
            0,
            "",
            Progress(FAILED, None, "the last sanitize failed"),
        ),
        (
            ISSUING,
            5,
            (
                "SANITIZE failed: Input/output error\nSANITIZE device error reason: Last Sanitize Command completed "
                "unsuccessfully\n"
            ),
            Progress(FAILED, None, "the last sanitize failed"),
        ),
    ],
)
def test_sanitize_status(stdout, rc, stderr, expected):
    assert status(stdout, rc, stderr) == expected


def split(name):
    """A recorded text as hdparm wrote it: what begins with SG_IO or SANITIZE on standard error."""
    lines = recorded(name).splitlines(True)
    errors = [line for line in lines if line.startswith(("SG_IO", "SANITIZE"))]
    return "".join(line for line in lines if line not in errors), "".join(errors)


@pytest.mark.parametrize(
    "name, rc, message",
    [
        ("sanitize-status-unsupported", 22, "not supported"),
        ("sanitize-status-no-registers-mx500", 0, "no ATA registers"),
        ("sanitize-status-no-registers-tusb9261", 0, "no ATA registers"),
        ("sanitize-status-done", 5, "ended with 5"),
        ("istdout-loop", 5, "no state"),
        ("istdout-loop", 0, "no state"),
    ],
)
def test_a_state_that_cannot_be_known_is_an_error(name, rc, message):
    stdout, stderr = split(name)
    with pytest.raises(ValueError, match=message):
        status(stdout, rc, stderr)


@pytest.mark.parametrize("name", ["sanitize-start-no-registers-mx500", "security-set-pass-frozen-m600"])
def test_a_command_whose_outcome_hdparm_did_not_learn(name):
    stdout, stderr = split(name)
    assert hdparm.lost_registers(Result([], 0, stdout, stderr))
    assert not hdparm.lost_registers(Result([], 0, recorded("sanitize-status-done"), ""))


# --- anything at all --------------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        "/dev/sda:",
        "Sanitize status:",
        "    State:    SD0 Sanitize Idle",
        "    State:    SD2 Sanitize operation In Process",
        "    State: SD9 x",
        "    Progress: 0xffff (100%)",
        "    Progress: 0xfffff (1%)",
        "    Last Sanitize Operation Completed Without Error",
        "0040 " * 7 + "0040",
        "ffff " * 7 + "ffff",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=40).map("\n".join))


@given(TEXTS, st.integers(-15, 255), TEXTS)
def test_garbage_is_an_error_or_a_known_state(stdout, rc, stderr):
    try:
        found = status(stdout, rc, stderr)
    except ValueError:
        event("refused")
        return
    event(found.state)
    assert found.state in (IDLE, RUNNING, DONE, FAILED, hdparm.FROZEN)
    assert found.share is None or 0 <= found.share < 1
    if found.state == DONE:
        assert "State:" in stdout and not hdparm.lost_registers(Result([], rc, stdout, stderr)) and rc == 0


@given(TEXTS)
def test_garbage_is_never_a_drive(text):
    with pytest.raises(ValueError):
        hdparm.identify(text)


@pytest.mark.thorough
@settings(max_examples=1000, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 0xFFFF)), min_size=1, max_size=6))
def test_a_word_that_changed_on_its_way_is_an_error_unless_the_sum_is_right(changes):
    words = ata_drive.words(drive())
    for place, value in changes:
        words[place] = value
    right = sum((word >> 8) + (word & 0xFF) for word in words) % 256 == 0 or words[255] & 0xFF != 0xA5
    try:
        found = hdparm.identify(istdout(words))
    except ValueError:
        event("refused")
        return
    event("accepted")
    assert right and found.serial
    assert found.security.enabled or not found.security.locked


@pytest.mark.skipif(shutil.which("hdparm", path="/usr/sbin:/sbin") is None, reason="no hdparm")
@settings(deadline=None)
@given(
    st.integers(0, 63).filter(lambda bits: bits & 1), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 15)
)
def test_hdparm_itself_reads_the_words_as_we_do(bits, erase, enhanced, sanitize):
    """`hdparm -I` in prose, made by the real tool from the same words (`--Istdin`)."""
    words = ata_drive.words(drive())
    words[128], words[89], words[90], words[59] = bits | (bits & 4) >> 1, erase, enhanced, sanitize << 12
    text = istdout(summed(words))
    prose = subprocess.run(
        ["hdparm", "--Istdin"], input=text, capture_output=True, text=True, check=True, env={"PATH": "/usr/sbin:/sbin"}
    ).stdout
    found = hdparm.identify(text)
    lines = [" ".join(line.split()) for line in prose.splitlines()]
    names = {
        "enabled": "enabled",
        "locked": "locked",
        "frozen": "frozen",
        "expired": "expired: security count",
        "enhanced": "supported: enhanced erase",
    }
    for field, name in names.items():
        assert (("not " if not getattr(found.security, field) else "") + name) in lines
    for minutes, name in (
        (found.security.erase_min, "min for SECURITY"),
        (found.security.enhanced_erase_min, "min for ENHANCED"),
    ):
        assert (str(minutes) + name in prose) if minutes is not None else name not in prose
    for operation, name in (
        ("crypto_scramble", "CRYPTO_SCRAMBLE_EXT"),
        ("block_erase", "BLOCK_ERASE_EXT"),
        ("overwrite", "OVERWRITE_EXT"),
    ):
        assert (operation in found.sanitize) == (f"* {name} command" in lines)
