# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 29 to 34 of docs/wrong-drives.md: drives that others reach too, and purges that reach further
than the drive.
"""

from __future__ import annotations

import on_disk
import pytest
from fake_server import PCI, FakeServer, vpd80
from wrong_drive import run

FABRICS = {
    "nvme over tcp": "tcp",
    "nvme over rdma": "rdma",
    "nvme over fc": "fc",
}
NETWORKS = {
    "iscsi": "platform/host7/session1/target7:0:0/7:0:0:0",
    "fibre channel": "pci0000:00/0000:00:18.0/host8/rport-8:0-0/target8:0:0/8:0:0:0",
}
CLUSTERS = ("VMFS", "VMFS_volume_member", "gfs2", "ocfs", "ocfs2", "oracleasm")


@pytest.fixture(scope="module")
def server(make_bench):
    bench = make_bench()
    server = FakeServer(bench)
    server.nvme("plain", "nvme0n1", "PLAIN")
    server.nvme(
        "two controllers",
        "nvme1n1",
        "SHARED",
        {"id-ns": {"nmic": 1}, "list-ctrl": {"num_ctrl": 2, "ctrl_list": [{"ctrl_id": 0}, {"ctrl_id": 1}]}},
    )
    server.nvme(
        "no list of controllers", "nvme2n1", "SILENT", {"id-ns": {"nmic": 1}, "id-ctrl": {"cmic": 3}, "list-ctrl": None}
    )
    for number in (3, 4):
        server.nvme(f"path {number}", f"nvme{number}n1", f"PATH{number}", wwid="eui.0025385b71b0aaaa")
    for number, (label, transport) in enumerate(FABRICS.items(), start=5):
        disk = server.nvme(label, f"nvme{number}n1", label)
        server.tree.put(disk.block + "/device/transport", transport + "\n")
    server.nvme(
        "reserved",
        "nvme8n1",
        "RESERVED",
        {"resv-report": {"gen": 1, "regctl": 1, "rtype": 1}, "id-ctrl": {"oncs": 0x7F}},
    )
    server.sas("reserved sas", "sdc", "SASKEY", keys=["0123456789abcdef"])
    server.sas("plain sas", "sdd", "SASPLAIN")
    for name, (label, place) in zip(("sde", "sdf"), NETWORKS.items()):
        server.disk(label, name, "/sys/devices/" + place, {"serial": label}, **vpd80(label))
    server.sata("member of a multipath device", "sdg", "MPATH")
    server.tree.disk("dm-0", "250:0", "/sys/devices/virtual", dm__uuid="mpath-35000c500a1b2c3d4")
    (server.root / bench.disks["member of a multipath device"].block[1:] / "holders" / "dm-0").mkdir()
    server.disk("virtio", "vdz", PCI + "virtio7", {"serial": "VIRTIO"}, serial="VIRTIO")
    both = {"nsid_list": [{"nsid": 1}, {"nsid": 2}]}
    server.nvme(
        "format of all", "nvme11n1", "FNA0", {"id-ctrl": {"fna": 1}, "list-ns": both}, wwid="eui.0025385b71b0bb01"
    )
    server.nvme(
        "crypto erase of all", "nvme12n1", "FNA1", {"id-ctrl": {"fna": 6}, "list-ns": both}, wwid="eui.0025385b71b0bb02"
    )
    server.nvme("sanitize of all", "nvme13n1", "SANITIZE", {"list-ns": both}, wwid="eui.0025385b71b0bb03")
    for kind in CLUSTERS:
        disk = bench.disk(kind)
        for offset, data in on_disk.PIECES[kind]:
            disk.write(offset, data)
    run("sgdisk", "-n", "1:0:0", "-t", "1:" + on_disk.GPFS_PARTITION, bench.disk("gpfs").path)
    server.enter()
    return bench


@pytest.fixture(scope="module")
def outcome(server):
    return server.play()


def test_a_drive_of_this_server_alone_is_no_finding(outcome):
    assert {name: outcome.codes(name) for name in ("spare", "plain", "plain sas")} == {
        "spare": set(),
        "plain": set(),
        "plain sas": set(),
    }
    outcome.nothing_happened()


@pytest.mark.case(29)
@pytest.mark.parametrize("name", ["two controllers", "no list of controllers", "path 3", "path 4"])
def test_case_29_a_namespace_of_several_controllers_or_hosts(outcome, name):
    outcome.refused(name, "shared_namespace")


@pytest.mark.case(30)
@pytest.mark.parametrize("name", [*FABRICS, *NETWORKS])
def test_case_30_a_network_in_between(outcome, name):
    outcome.refused(name, "fabric")


@pytest.mark.case(30)
def test_case_30_a_path_of_a_multipath_device_or_no_local_transport(outcome):
    outcome.refused("member of a multipath device", "held", "fabric")
    outcome.refused("virtio", "transport")


@pytest.mark.case(31)
@pytest.mark.parametrize("name", CLUSTERS)
def test_case_31_a_cluster_file_system(outcome, name):
    outcome.refused(name, "shared_filesystem", "signature")


@pytest.mark.case(31)
def test_case_31_a_partition_of_a_cluster_file_system(outcome):
    outcome.refused("gpfs", "shared_filesystem", "partition_table")


@pytest.mark.case(32)
@pytest.mark.parametrize("name", ["reserved", "reserved sas"])
def test_case_32_a_reservation(outcome, name):
    outcome.refused(name, "reserved")


@pytest.mark.case(33)
@pytest.mark.parametrize(
    "name, method", [("format of all", "nvme_format_user_data"), ("crypto erase of all", "nvme_format_crypto")]
)
def test_case_33_a_format_that_hits_all_namespaces(server, name, method):
    outcome = server.play("-e", "purge_method=" + method, playbook="purge", entries=[server.disks[name].entry])
    assert "purge_hits_others" in outcome.codes(name)
    outcome.nothing_happened()


@pytest.mark.case(34)
def test_case_34_a_sanitize_that_hits_the_whole_subsystem(server):
    name = "sanitize of all"
    outcome = server.play(
        "-e", "purge_method=nvme_sanitize_block", playbook="purge", entries=[server.disks[name].entry]
    )
    assert "purge_hits_others" in outcome.codes(name)
    outcome.nothing_happened()
