# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the tools of a host say: a parser ends with a result or with the error that it documents, and the guard
calls no drive eligible.

SSDLAB_FLEET_FUZZ=5000 tries so many inputs each; the count is printed at the end. hdparm's and sg3_utils' own parsers:
test_ata.py, test_scsi.py.
"""

from __future__ import annotations

import collections
import json
import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import (
    entry,
    health,
    hidden_capacity,
    power,
    self_test,
    self_test_result,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check, partition_tables
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import links, pcie
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_result
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import nvme, opal
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory, iomemory_pci, rssdm
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError

EXAMPLES = int(os.environ.get("SSDLAB_FLEET_FUZZ", "100"))
COUNT = collections.Counter()
pytestmark = pytest.mark.thorough
fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def printed(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        told = ", ".join(f"{name} {count}" for name, count in sorted(COUNT.items()))
        print(f"\nfuzzed {sum(COUNT.values())} inputs: {told}")


def counted(name, garbage):
    """Count the input of one example."""
    COUNT[name] += 1
    return garbage


# --- garbage ------------------------------------------------------------------

# Words that the parsers look for, so that garbage gets past their first line.
WORDS = st.sampled_from(
    """signatures type critical_warning value sn cmic oacs oncs fna sanicap nsze ncap nmic nsattr nsid nsid_list
    ctrl_list lbafs flbas ds ms rp sprog sstat status jobs read write error jobname total_ios runtime regctl rtype
    temperature avail_spare percent_used thm_temp1_trans_count nvme_smart_health_information_log smart_status
    ata_smart_attributes table scsi_error_counter_log eui64 nguid fpi dps tnvmcap psds flags non-operational_state
    edstt nvme_self_test_log current_self_test_operation ata_smart_data self_test polling_minutes extended
    self_test_result lba_first_failure segment
    ata_smart_self_test_log standard smartctl output completion_percent self_test_in_progress
    """.split()
)
NUMBERS = st.one_of(
    st.integers(-2, 2),
    st.integers(),
    st.integers(10**30, 10**40),
    st.floats(),
    st.booleans(),
    st.none(),
    st.sampled_from(["0x1f", "12", "-1", "1e9", "٣"]),
)
JSON = st.recursive(
    st.one_of(
        NUMBERS,
        st.text(max_size=20),
        st.sampled_from(["(2) Sanitize in Progress.", "(99999) x", "(1" + "0" * 5000 + ") x"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=8)), inner, max_size=6)
    ),
    max_leaves=20,
)
LINES = st.sampled_from(
    [
        "Drive Id             : 0",
        "Drive Id             : x",
        "Serial No            : SN1",
        "Model No : P420m-MTFDGAR",
        "PCI Path (B:D.F)     : 04:00.0",
        "Power Limiting : maybe",
        "Interrupt Coalescing : 0xZZ",
        "Interrupt Coalescing : 0xFFFFFFFFFF",
        "CMD_STATUS   : Success",
        "STATUS_CODE  : 0",
        "fct0\tAttached",
        "fct0\tAttached as 'fioa'",
        "fct1\t",
        "\tSN:1241D0259",
        "\tContained VSUs:",
        "\t  fioa:\tID:0, UUID:x",
        "\tFormat: v500, 99999999999999999999 sectors of 512 bytes",
        "\tFormat: v500, 1 sectors of 0 bytes",
        "\tPCIe negotiated link: 99999 lanes at 5.0.0 Gt/sec",
        "\tInternal temperature: ... degC",
        "Adapter: Dual",
        "Root Bridge PCIe 3000 MB/sec",
        "* Needed 9 MB/sec Avail 1 MB/sec",
        "ioDrive 04:00.0 Firmware 1",
        "* Correctable Error(s): None",
        "Link width: 999 lanes",
        "# 1  Background long   Failed in segment -->       6   47877         764900874 [0x3 0x5d 0x1]",
        "Self-test execution status:\t\t75% of test remaining",
        "DEVNAME=/dev/sda",
        "PTTYPE=",
        "=",
        "TYPE",
        "read: IOPS=1",
        '{"jobs": [',
        "}",
    ]
)
TEXT = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(LINES, st.text(max_size=40)), max_size=25).map("\n".join),
    JSON.map(json.dumps),
    JSON.map(lambda data: "warning: {\n" + json.dumps(data)),
    st.sampled_from(
        ['{"signatures": {}}', '{"signatures": ""}', '{"signatures": [{}]}', '{"signatures": 0}', '{"jobs": []}']
    ),
    st.sampled_from(["[" * 3000, '{"a":' * 3000, "1" * 5000, '{"sn": ' + "9" * 5000 + "}", "\0", "\ud7ff\ufeff{}"]),
)
# Codes with which a tool says "there is nothing" are answers, not garbage.
CODES = st.sampled_from([0, 0, 0, 1, 3, 99, 124, 127, -9, -11, 255])
ANSWERS = st.tuples(CODES, TEXT, st.one_of(st.just(""), TEXT))


class Says(Host):
    """A host whose every command says the same."""

    def __init__(self, answer):
        super().__init__("/nowhere")
        self.answer = answer

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        return Result([str(word) for word in argv], *self.answer)


# --- parsers ------------------------------------------------------------------


def results(seen):
    return [self_test_result.of_entry(entry) for entry in seen.ended]


NVME = Identity(transport="nvme", path="/dev/nvme0n1")
OF_COMMANDS = {
    "nvme id-ctrl": (lambda host: nvme.controller(host, "/dev/nvme0"), nvme.NvmeError),
    "nvme id-ns": (lambda host: nvme.namespace(host, "/dev/nvme0", 1), nvme.NvmeError),
    "nvme ns-descs": (lambda host: nvme.descriptors(host, "/dev/nvme0", 1), nvme.NvmeError),
    "nvme list-ns": (lambda host: nvme.namespace_ids(host, "/dev/nvme0", True), nvme.NvmeError),
    "nvme list-ctrl": (lambda host: nvme.controller_ids(host, "/dev/nvme0"), nvme.NvmeError),
    "nvme sanitize-log": (lambda host: nvme.sanitize_log(host, "/dev/nvme0"), nvme.NvmeError),
    "nvme smart-log": (lambda host: health.read(host, NVME), ()),
    "smartctl": (lambda host: health.read(host, Identity(transport="sata", path="/dev/sda")), ()),
    "nvme self-test-log": (lambda host: results(self_test.read(host, NVME, self_test.SelfTest(True))), ()),
    "smartctl -l selftest": (
        lambda host: results(self_test.read(host, Identity(transport="sas", path="/dev/sda"))),
        (),
    ),
    "rssdm -L": (lambda host: [rssdm.parse_settings(item) for item in rssdm.drives(host)], ToolError),
    "rssdm status": (lambda host: rssdm.failure_text(host.run(["rssdm"])), ()),
}
OF_TEXTS = {
    "rssdm list": (lambda text: [rssdm.parse_settings(item) for item in rssdm.parse_list(text)], ()),
    "fio-status": (lambda text: [card.size_pct for card in iomemory.parse_status(text)], ()),
    "fio-pci-check": (iomemory_pci.parse, ()),
    "fio": (fio_result.load, fio.FioError),
    "link speed": (pcie.speed_gts, ()),
    "link width": (pcie.lanes, ()),
    "serial link": (links.rate, ()),
    "hidden capacity": (
        lambda text: (hidden_capacity.of_ata(text).share, hidden_capacity.of_nvme(text, 10**12).share),
        (),
    ),
    "power state": (lambda text: (power.current(text), power.operational(text, 1)), ()),
    "AER": (lambda text: pcie.aer_total(text, "TOTAL_ERR_COR"), ()),
    "selector": (
        lambda text: (entry.parse({"serial": text}), files.slug(text), entry.parse({"wwn": text})),
        (),
    ),
}
OF_BYTES = {
    "security protocols": (opal.protocols, ValueError),
    "Level 0 discovery": (opal.locked, ValueError),
    "partition tables": (
        lambda data: partition_tables.partitions(lambda offset, length: data[offset : offset + length], len(data)),
        (),
    ),
    "PCIe configuration": (pcie.slot_power_w, ()),
}


def ends(parse, error, garbage):
    """A result, or the documented error; anything else that is raised fails the test."""
    try:
        parse(garbage)
    except error:
        pass


@pytest.mark.parametrize("name", sorted(OF_COMMANDS))
@fuzzed
@given(answer=ANSWERS)
def test_what_a_command_says(name, answer):
    ends(*OF_COMMANDS[name], Says(counted(name, answer)))


@pytest.mark.parametrize("name", sorted(OF_TEXTS))
@fuzzed
@given(text=TEXT)
def test_what_a_text_says(name, text):
    ends(*OF_TEXTS[name], counted(name, text))


SECTOR = st.one_of(
    st.binary(max_size=512),
    st.tuples(st.binary(min_size=446, max_size=446), st.binary(min_size=64, max_size=64)).map(
        lambda parts: parts[0] + parts[1] + b"\x55\xaa"
    ),
    st.binary(max_size=420).map(lambda rest: (b"EFI PART" + rest).ljust(512, b"\xff")),
)


@pytest.mark.parametrize("name", sorted(OF_BYTES))
@fuzzed
@given(sectors=st.lists(SECTOR, max_size=6))
def test_what_bytes_say(name, sectors):
    ends(*OF_BYTES[name], counted(name, b"".join(sectors)))


@pytest.mark.parametrize("name", ["nvme id-ctrl", "nvme id-ns", "nvme list-ns", "nvme sanitize-log"])
@fuzzed
@given(text=st.text(max_size=100))
def test_what_is_not_even_json_is_never_an_answer_of_nvme(name, text):
    with pytest.raises(nvme.NvmeError):
        OF_COMMANDS[name][0](Says((0, counted(name, text), "")))


# --- the guard ----------------------------------------------------------------

SELECTOR = {"serial": "SN1"}
READY = " 00     70 00 00 00 00 00 00 0a  00 00 00 00 00 00 00 00\n 10     00 00\n"
NO_KEYS = "  PR generation=0x0, Additional length=0\n"
NOT_SUPPORTED = (9, "", "security protocol in: command not supported\n")


def identify_words():
    """`hdparm --Istdout` of a drive with sanitize and security, neither locked nor frozen (ACS-3)."""
    words = [0] * 256
    words[0], words[59], words[82], words[83], words[84], words[87], words[128] = (
        0x40,
        0x9000,
        2,
        0x4000,
        0x4000,
        0x4000,
        0x21,
    )
    for place in range(10, 47):
        words[place] = 0x2020
    words[10:12] = [0x534E, 0x3120]
    return (
        "\n/dev/sda:\n"
        + "\n".join(" ".join(f"{word:04x}" for word in words[start : start + 8]) for start in range(0, 256, 8))
        + "\n"
    )


ATA = {
    "hdparm -V": (0, "hdparm v9.65", ""),
    "hdparm --Istdout": (0, identify_words(), ""),
    "hdparm --sanitize-status": (
        0,
        "Issuing SANITIZE_STATUS command\nSanitize status:\n    State:    SD0 Sanitize Idle\n",
        "",
    ),
    "sg_raw": NOT_SUPPORTED,
}
SAS = {"sg_turs": (0, "", ""), "sg_requests": (0, READY, ""), "sg_persist": (0, NO_KEYS, ""), "sg_raw": NOT_SUPPORTED}
PLACES = {
    "sata": "/sys/devices/pci0000:00/0000:00:17.0/ata3/host2",
    "sas": "/sys/devices/pci0000:00/0000:00:03.0/host0/port-0:0/end_device-0:0",
}
# These only tell whether a tool is there.
PRESENCE = ("hdparm -V", "sg_turs --version", "nvme version")
# Tools of which the exit code alone counts.
SILENT = ("sg_turs",)


def clean(fake, transport):
    """A host with one drive of this transport that may be erased."""
    if transport == "nvme":
        fake.nvme("nvme0n1", "259:0", "SN1")
        fake.nvme_says("id-ctrl", {"sanicap": 2, "oncs": 0x20, "cmic": 2})
        fake.nvme_says("id-ns", {"nmic": 1})
        fake.nvme_says("list-ctrl", {"num_ctrl": 1, "ctrl_list": [{"ctrl_id": 1}]})
        fake.nvme_says(
            "sanitize-log",
            {"nvme0": {"sprog": 65535, "sstat": {"status": "(0) NVM subsystem has never been sanitized."}}},
        )
    else:
        fake.link(
            fake.disk("sda", "8:0", PLACES[transport], device__vpd_pg80=b"\0\x80\0\x03SN1") + "/queue/x",
            PLACES[transport],
        )
        fake.answers.update(ATA if transport == "sata" else SAS)
    return fake


def inspect(fake, asked="", change=None):
    """The guard's one result, and the names of the commands that it ran; `change` is the answer to every command of
    that name.
    """
    names = []

    def run(argv, timeout_s=60, stdin=None, started=None):
        names.append(" ".join(argv[:2]))
        result = type(fake).run(fake, argv)
        return result._replace(rc=change[0], stdout=change[1], stderr=change[2]) if names[-1] == asked else result

    fake.run = run
    (result,) = guard_check.inspect(fake, [entry.parse(SELECTOR)])
    assert result["eligible"] is (not result["refusals"])
    json.dumps(result)
    return result, names


@pytest.mark.parametrize("transport", ["nvme", "sata", "sas"])
def test_no_drive_is_eligible_when_a_command_answers_garbage(fake, transport):
    result, names = inspect(clean(fake, transport))
    assert result["eligible"], result["refusals"]
    asked = st.sampled_from(sorted(set(names) - set(PRESENCE)))

    @settings(fuzzed, max_examples=2 * EXAMPLES)
    @given(asked, ANSWERS)
    def check(name, answer):
        assume(answer[0] != 0 or not name.startswith(SILENT))
        counted("guard, {}".format(name.replace("/dev/sda", "")), answer)
        assert not inspect(fake, name, answer)[0]["eligible"], (name, answer)

    check()
