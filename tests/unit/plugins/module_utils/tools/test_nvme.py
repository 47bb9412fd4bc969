# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapes are those that nvme-cli's json printers write: nvme-print.c of 1.16, nvme-print-json.c of 2.3, 2.8, 2.11
and 2.16.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.progress import DONE, FAILED, IDLE, RUNNING
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import nvme
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools.nvme import NvmeError

TIMES = {
    "cdw10_info": 4,
    "time_over_write": 4294967295,
    "time_block_erase": 4294967295,
    "time_crypto_erase": 4294967295,
}


def sanitize(status, text, sprog, **sstat):
    return {
        "nvme0": dict(
            {
                "sprog": sprog,
                "sstat": dict({"global_erased": 0, "no_cmplted_passes": 0}, **sstat, status=f"({status}) {text}"),
            },
            **TIMES,
        )
    }


def of_2_8(log):
    """2.7 and 2.8 took the words for the key."""
    (drive,) = log.values()
    text = drive["sstat"].pop("status")
    drive["sstat"][text.partition(") ")[2]] = text
    return log


IN_PROGRESS, SUCCEEDED = "Sanitize in Progress.", "Most Recent Sanitize Command Completed Successfully."


@pytest.mark.parametrize(
    "log, state, share",
    [
        (sanitize(0, "NVM Subsystem has never been sanitized.", 65535), IDLE, None),
        (sanitize(1, SUCCEEDED, 65535), DONE, None),
        (sanitize(2, IN_PROGRESS, 16384), RUNNING, 0.25),
        (sanitize(2, IN_PROGRESS, 65535), RUNNING, None),
        (of_2_8(sanitize(2, IN_PROGRESS, 32768)), RUNNING, 0.5),
        (of_2_8(sanitize(1, SUCCEEDED, 65535)), DONE, None),
        (sanitize(2, IN_PROGRESS, 655, media_verification_canceled=0), RUNNING, 655 / 65536),
        (sanitize(3, "Most Recent Sanitize Command Failed.", 65535), FAILED, None),
        (
            sanitize(4, "Most Recent Sanitize Command (No-Deallocate After Sanitize) Completed Successfully.", 65535),
            DONE,
            None,
        ),
    ],
)
def test_the_sanitize_log_of_all_versions(log, state, share):
    progress = nvme.parse_sanitize_log(log)
    assert (progress.state, progress.share) == (state, share)


@pytest.mark.parametrize(
    "log",
    [
        {},
        {"nvme0": None},
        {"nvme0": {"sprog": 1}},
        {"nvme0": {"sprog": 1, "sstat": 257}},
        {"nvme0": {"sprog": 1, "sstat": {}}},
        sanitize(7, "Unknown", 65535),
        {**sanitize(1, SUCCEEDED, 65535), "nvme1": sanitize(2, IN_PROGRESS, 5)["nvme0"]},
        sanitize(1, SUCCEEDED, 65536),
        sanitize(1, SUCCEEDED, None),
        sanitize(1, SUCCEEDED, True),
        sanitize(1, SUCCEEDED, 65535, other="(2) Sanitize in Progress."),
    ],
)
def test_a_sanitize_log_that_is_odd_says_nothing(log):
    with pytest.raises(NvmeError):
        nvme.parse_sanitize_log(log)


def identify(**fields):
    known = {"nsze": 1 << 20, "flbas": 0, "dps": 0, "nmic": 0, "fpi": 0, "eui64": "0025385b71b004a1", "nguid": "0" * 32}
    return dict(
        dict(known, lbafs=[{"ms": 0, "ds": 9, "rp": 2}, {"ms": 8, "ds": 9, "rp": 1}, {"ms": 0, "ds": 12, "rp": 0}]),
        **fields,
    )


@pytest.mark.parametrize(
    "fields, block, index, left",
    [
        ({}, 512, 0, None),
        ({"flbas": 2}, 4096, 2, None),
        ({"flbas": 0x12}, 4096, 2, None),
        ({"fpi": 0x80}, 512, 0, None),
        ({"fpi": 0xA8}, 512, 0, 40),
    ],
)
def test_the_format_in_use_and_how_far_another_is(fields, block, index, left):
    space = nvme.parse_namespace(identify(**fields))
    assert (space.size_bytes, space.lba_format, space.format_left_pct) == (block << 20, index, left)
    assert (space.eui64, space.nguid) == ("0025385b71b004a1", "")


@pytest.mark.parametrize(
    ("dlfeat", "reads"),
    [(0, None), (1, "zeros"), (2, "ones"), (3, None), (0x19, "zeros"), ("9", "zeros"), (None, None), (-1, None)],
)
def test_what_deallocated_blocks_read_as_is_told_by_three_bits(dlfeat, reads):
    assert nvme.parse_namespace(identify(dlfeat=dlfeat)).deallocated_read == reads
    assert nvme.parse_namespace(identify()).deallocated_read is None


def controller(fake, **fields):
    fake.nvme("nvme0n1", "259:0", "SN1")
    fake.nvme_says("id-ctrl", fields)
    return nvme.controller(fake, "/dev/nvme0")


WORKS, RESTS, SILENT = {"flags": 0}, {"non-operational_state": 1}, {}


@pytest.mark.parametrize(
    ("states", "rests"),
    [
        ([WORKS, RESTS], True),
        ([WORKS, WORKS], False),
        ([WORKS, SILENT], None),
        ([SILENT, RESTS], True),
        ([], None),
        (None, None),
    ],
)
def test_a_drive_can_rest_that_has_a_state_without_io(fake, states, rests):
    assert controller(fake, psds=states).can_rest is rests


@pytest.mark.parametrize(("oacs", "offered"), [(0, False), (0x0F, False), (0x10, True), (0x5F, True)])
def test_self_tests_are_a_bit_of_oacs(fake, oacs, offered):
    assert controller(fake, oacs=oacs).has_self_tests is offered


def test_the_index_has_more_bits_where_there_are_more_formats():
    many = [{"ms": 0, "ds": 9, "rp": 0}] * 16 + [{"ms": 0, "ds": 12, "rp": 0}] * 2
    assert nvme.parse_namespace(identify(flbas=0x21, lbafs=many)).lba_format == 17
    assert nvme.parse_namespace(identify(flbas=0x21, lbafs=many[:16])).lba_format == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"flbas": 3},
        {"lbafs": []},
        {"lbafs": None},
        {"nsze": "many"},
        {"eui64": 5},
        {"nguid": "xyz"},
        {"dps": -1},
        {"fpi": 256},
    ],
)
def test_an_odd_namespace_is_an_error(fields):
    with pytest.raises(NvmeError):
        nvme.parse_namespace(identify(**fields))


@pytest.mark.parametrize("text, number", [(7, 7), ("7", 7), ("0x1f", 31), (255, 255)])
def test_numbers_may_be_texts(text, number):
    assert nvme.number({"fna": text}, "fna", 255) == number


@pytest.mark.parametrize("value", [None, True, -1, 256, "", "seven", "9" * 50, 1.5, [1], "1e3"])
def test_what_is_no_number_is_an_error(value):
    with pytest.raises(NvmeError):
        nvme.number({"fna": value}, "fna", 255)


@pytest.mark.parametrize(
    "text, digits",
    [("00 25 38 5b", "0025385b"), ("eui", None), (None, ""), ("0000", ""), ("6479a751-2b0c-4fa0", "6479a7512b0c4fa0")],
)
def test_names_are_compared_by_their_digits(text, digits):
    if digits is None:
        with pytest.raises(NvmeError):
            nvme.hexadecimal(text)
    else:
        assert nvme.hexadecimal(text) == digits


@pytest.mark.parametrize(
    "rc, stdout, stderr, message",
    [
        (127, "", "", "not installed"),
        (1, "{}", "NVMe status: Invalid Field", "ended with 1: NVMe status: Invalid Field"),
        (0, "", "", "no JSON"),
        (0, "[1]", "", "no JSON"),
        (0, '{"sn": ', "", "broken JSON"),
        (124, "", "nvme gave no answer in 60 s", "no answer"),
    ],
)
def test_a_command_that_gave_nothing_says_why(rc, stdout, stderr, message):
    with pytest.raises(NvmeError, match=message):
        nvme.parse(Result(["nvme", "id-ctrl", "/dev/nvme0"], rc, stdout, stderr))


def test_words_before_the_json_are_passed_over():
    assert nvme.parse(Result(["nvme"], 0, 'Failed to open tables\n{"sn": "A"}\n', "")) == {"sn": "A"}


KEYS = st.sampled_from(["sprog", "sstat", "status", "lbafs", "flbas", "ds", "nvme0", "fpi"])
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["(2) Sanitize in Progress.", "0x2", "12"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.thorough
@settings(max_examples=500, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["nvme0", "sprog", "lbafs", "flbas", "nsze", "dps", "nmic", "fpi", "eui64", "nguid"]),
        ODD,
        max_size=10,
    )
)
def test_garbage_is_an_error_and_never_a_crash(data):
    for parser in (nvme.parse_sanitize_log, nvme.parse_namespace):
        try:
            parser(data)
        except NvmeError:
            pass


@pytest.mark.thorough
@settings(max_examples=500, deadline=None)
@given(st.text(max_size=60) | ODD.map(json.dumps))
def test_outputs_of_any_kind_are_read_or_refused(text):
    try:
        assert isinstance(nvme.parse(Result(["nvme"], 0, text, "")), dict)
    except NvmeError:
        pass
