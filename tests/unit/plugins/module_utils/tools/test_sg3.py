# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sg3_utils print, read. Where the bytes come from: tests/fixtures/commands/sg3_utils/README.md."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import shutil
import subprocess

import pytest
import scsi_drive
from hypothesis import event, given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.progress import (
    DONE,
    FAILED,
    RUNNING,
    Progress,
    Unreadable,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import sg3

FIXTURES = pathlib.Path(__file__).parents[4] / "fixtures" / "commands" / "sg3_utils"
HEADER = "  EXAMPLE   ENTERPRISE SSD    0001\n  Peripheral device type: disk\n"


def dump(data):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        scsi_drive.dump(data)
    return text.getvalue()


def recorded(name):
    return sg3.hex_bytes((FIXTURES / (name + ".txt")).read_text())


def test_recorded_sense_data():
    assert sg3.sense(recorded("fixed-sense")) == sg3.Sense(
        3, 0x11, 0x00, None
    )  # it holds an actual retry count, in the same place
    assert sg3.sense(recorded("descriptor-sense")) == sg3.Sense(1, 0x03, 0x02, None)


@given(st.binary(min_size=1, max_size=300))
def test_a_hex_dump_gives_its_bytes_back(data):
    assert sg3.hex_bytes(HEADER + dump(data)) == data


def test_a_hex_dump_with_text_beside_it_gives_the_bytes_only():
    line = " 00     48 65 6c 6c 6f 20 61 62  63 64 65 66 20 61 62 20    Hello abcdef ab \n 10     21    !\n"
    assert sg3.hex_bytes(line) == b"Hello abcdef ab !"


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        "00",
        " 00     \n",
        " 10     00 01\n",
        dump(bytes(40)).replace(" 10 ", " 20 "),
        " 00     00 01\n 02     02\n",
        "00 00 00",
    ],
)
def test_what_is_no_hex_dump_is_an_error(text):
    with pytest.raises(ValueError):
        sg3.hex_bytes(text)


def support(code, usage=b"", size=None):
    return bytes([0, code]) + (len(usage) if size is None else size).to_bytes(2, "big") + usage


BLOCK_ERASE = bytes([0x48, 0x02]) + bytes(8)
FORMAT = bytes([0x04, 0xFF, 0, 0, 0, 7])


@pytest.mark.parametrize(
    "data, opcode, action, expected",
    [
        (support(3, BLOCK_ERASE), 0x48, 2, True),
        (support(3, b"\x48\x1f" + bytes(8)), 0x48, 2, True),  # a mask where the service action belongs
        (support(3, b"\x48\xe2" + bytes(8)), 0x48, 2, True),  # IMMED, ZNR and AUSE are there
        (support(3, FORMAT), 0x04, None, True),
        (support(3 | 0x80, BLOCK_ERASE) + bytes(12), 0x48, 2, True),  # CTDP: timeouts follow
        (support(1), 0x48, 2, False),
        (support(5, BLOCK_ERASE), 0x48, 2, False),
    ],
)
def test_has_command(data, opcode, action, expected):
    assert sg3.has_command(data, opcode, action) is expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        support(3),
        support(0),
        support(2, BLOCK_ERASE),
        support(3, BLOCK_ERASE, size=40),
        support(3, bytes(10)),
        support(3, b"\x48\x03" + bytes(8)),
        support(3, b"\x04\x02" + bytes(8)),
        bytes(4),
        b"\xff" * 14,
    ],
)
def test_another_answer_on_a_command_is_an_error(data):
    with pytest.raises(ValueError):
        sg3.has_command(data, 0x48, 2)


@pytest.mark.parametrize("descriptor", [False, True])
@pytest.mark.parametrize("share, expected", [(None, None), (0, 0.0), (0x4000, 0.25), (0xFFFF, 0xFFFF / 65536)])
def test_sense_in_both_formats(descriptor, share, expected):
    data = scsi_drive.sense_bytes((2, 0x04, 0x1B), share, descriptor)
    assert sg3.sense(data) == sg3.Sense(2, 0x04, 0x1B, expected)


def test_another_progress_indication_is_one():
    data = bytes([0x72, 2, 4, 0x1B, 0, 0, 0, 8, 0x0A, 6, 2, 4, 0x1B, 0, 0x80, 0])
    assert sg3.sense(data).share == 0.5


@pytest.mark.parametrize(
    "data", [b"", b"\x70", bytes(18), b"\x71" + bytes(17), b"\x70" + bytes(17), b"\x7f" + bytes(17), b"\x72\0\0"]
)
def test_what_is_no_sense_data_is_an_error(data):
    with pytest.raises(ValueError):
        sg3.sense(data)


class Tools(Host):
    """sg_requests and sg_turs with one answer each: (exit code, output)."""

    def __init__(self, requests, turs=(0, "")):
        super().__init__()
        self.answers = {"sg_requests": requests, "sg_turs": turs}

    def run(self, argv, timeout_s=60, stdin=None):
        rc, stdout = self.answers[argv[0]]
        return Result(list(argv), rc, stdout, "")


def told(key, asc, ascq, share=None):
    return (0, dump(scsi_drive.sense_bytes((key, asc, ascq), share, False)))


@pytest.mark.parametrize(
    "requests, expected",
    [
        (told(2, 0x04, 0x1B, 0x8000), Progress(RUNNING, 0.5)),
        (told(2, 0x04, 0x04), Progress(RUNNING, None)),
        (told(0, 0x00, 0x16, 0x4000), Progress(RUNNING, 0.25)),
        (told(0, 0, 0), Progress(DONE)),
        (told(0, 0x5D, 0x62), Progress(DONE)),  # a failure prediction
        (told(2, 0x04, 0x09, 0x8000), Progress(DONE)),  # a self-test in the background
        (told(3, 0x31, 0x03), Progress(FAILED, None, "the last sanitize failed")),
        (told(3, 0x31, 0x01), Progress(FAILED, None, "the last format failed")),
        (told(2, 0x31, 0x00), Progress(FAILED, None, "the medium format is corrupted")),
        (told(3, 0x31, 0x09), Progress(FAILED, None, "additional sense 31h/09h")),
    ],
)
def test_progress(requests, expected):
    assert sg3.progress(Tools(requests), "/dev/sda") == expected


@pytest.mark.parametrize(
    "requests, turs, message",
    [
        ((72, ""), (0, ""), "sg_requests --hex /dev/sda ended with 72"),
        ((127, ""), (0, ""), "install sg3-utils"),
        ((0, "garbage"), (0, ""), "no hex dump"),
        (told(6, 0x29, 0x01), (0, ""), "sense key 6h, additional sense 29h/01h"),
        (told(2, 0x04, 0x01), (0, ""), "sense key 2h"),
        (told(2, 0x04, 0x09), (2, ""), "sg_turs /dev/sda ended with 2: the drive is not ready"),
        (told(5, 0x20, 0x00), (0, ""), "sense key 5h"),
        (told(0, 0x04, 0x02), (0, ""), "sense key 0h, additional sense 04h/02h"),
        (told(0, 0, 0), (2, "device not ready"), "sg_turs /dev/sda ended with 2: the drive is not ready"),
        (told(0, 0, 0), (6, ""), "unit attention"),
    ],
)
def test_a_progress_that_cannot_be_known(requests, turs, message):
    with pytest.raises(Unreadable, match=message):
        sg3.progress(Tools(requests, turs), "/dev/sda")


def test_a_command_is_tried_again_after_a_unit_attention():
    codes = [6, 6, 0, 0]

    class Attentive(Host):
        def run(self, argv, timeout_s=60, stdin=None):
            return Result(list(argv), codes.pop(0), "", "")

    assert sg3.run(Attentive(), ["sg_turs", "/dev/sda"]).rc == 0 and codes == [0]


def test_a_progress_is_asked_for_again_after_a_unit_attention():
    class Attentive(Tools):
        def run(self, argv, timeout_s=60, stdin=None):
            answer = super().run(argv)
            self.answers["sg_requests"] = told(0, 0, 0)
            return answer

    assert sg3.progress(Attentive(told(6, 0x29, 0x00)), "/dev/sda") == Progress(DONE)


KEYS = "  PR generation=0x8, Additional length=%d\n"


@pytest.mark.parametrize(
    "text, keys",
    [
        (HEADER + KEYS % 0 + KEYS % 0, []),
        (HEADER + KEYS % 16 + dump(bytes(7) + b"\1" + bytes(7) + b"\2"), ["0000000000000001", "0000000000000002"]),
    ],
)
def test_reservation_keys(text, keys):
    assert sg3.reservation_keys(text) == keys


@pytest.mark.parametrize("text", ["", HEADER, KEYS % 16, KEYS % 16 + dump(bytes(8)), KEYS % 4 + dump(bytes(4))])
def test_keys_that_cannot_be_known(text):
    with pytest.raises(ValueError):
        sg3.reservation_keys(text)


# --- anything at all --------------------------------------------------------------------------------------------------

HEX_LINES = st.tuples(st.sampled_from([0, 16, 32, 5]), st.binary(max_size=18)).map(
    lambda line: " {:02x}     {}".format(line[0], line[1].hex(" "))
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(HEX_LINES, st.text(max_size=40), st.just((KEYS % 16).strip())), max_size=8).map("\n".join),
)


@given(TEXTS, st.integers(-15, 255), st.integers(-15, 255))
def test_garbage_is_never_a_drive_that_is_done(text, rc, ready):
    try:
        found = sg3.progress(Tools((rc, text), (ready, "")), "/dev/sda")
    except Unreadable:
        event("refused")
        return
    event(found.state)
    assert rc == 0 and found.state in (RUNNING, DONE, FAILED)
    assert found.state != DONE or (ready == 0 and sg3.sense(sg3.hex_bytes(text)).key in (0, 1))


@given(
    st.one_of(
        st.binary(max_size=40),
        st.binary(max_size=36).map(lambda rest: b"\x70" + rest),
        st.binary(max_size=36).map(lambda rest: b"\x72" + rest),
    )
)
def test_any_bytes_are_sense_data_or_an_error(data):
    try:
        found = sg3.sense(data)
    except ValueError:
        event("refused")
        return
    event("sense")
    assert found.key < 16 and (found.share is None or 0 <= found.share < 1)


@given(st.binary(max_size=24))
def test_any_bytes_support_a_command_only_where_they_name_it(data):
    with contextlib.suppress(ValueError):
        if sg3.has_command(data, 0x48, 2):
            assert data[1] & 7 == 3 and data[4] == 0x48


@given(TEXTS)
def test_garbage_has_no_keys(text):
    with contextlib.suppress(ValueError):
        assert all(re.fullmatch("[0-9a-f]{16}", key) for key in sg3.reservation_keys(text))


@pytest.mark.skipif(shutil.which("sg_decode_sense") is None, reason="no sg_decode_sense")
@pytest.mark.parametrize("descriptor", [False, True])
@pytest.mark.parametrize(
    "code, text",
    [
        ((2, 4, 0x1B), "sanitize in progress"),
        ((2, 4, 4), "format in progress"),
        ((3, 0x31, 3), "SANITIZE command failed"),
        ((3, 0x31, 1), "Format command failed"),
    ],
)
def test_sg_decode_sense_itself_reads_what_we_read(descriptor, code, text):
    data = scsi_drive.sense_bytes(code, 0x4000 if code[0] == 2 else None, descriptor)
    decoded = subprocess.run(
        ["sg_decode_sense", *data.hex(" ").split()], capture_output=True, text=True, check=True
    ).stdout
    assert text.lower() in decoded.lower() and ("25.00%" in decoded) == (sg3.sense(data).share == 0.25)
