# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the drives of a server share, and how many of 24 run side by side: servers as computed trees of sysfs."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus, links, shared_parts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.placement import CpuPlacement, CpuRequest
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import parallel_drives
from ansible_collections.ssdlab.fleet.tests.fixtures import machine_trees, plans

PORT = {"class": "0x060400"}


def nvme(number, link, node):
    name = f"nvme{number}n1"
    namespace = {"nsid": "1", "wwid": f"eui.00112233445566{number:02x}", "size": "15002931888"}
    controller = {"transport": "pcie", "serial": f"SN{number}", "model": "EXAMPLE", name: namespace}
    return {"class": "0x010802", "numa_node": str(node), "link": link, f"nvme/nvme{number}": controller}


def nvme_server(ports, uplink, link="16 x4", cores=32, node_of=lambda port: port % 2):
    """24 drives behind so many root ports; behind a switch where a port has several."""
    files, each = {}, 24 // ports
    for port in range(ports):
        bus, root, node = 0x10 + port, f"/sys/devices/pci0000:{port:02x}/0000:{port:02x}:01.0", node_of(port)
        drives = {
            f"0000:{bus:02x}:{place:02x}.0": {
                **PORT,
                "link": link,
                f"0000:{0x40 + port * each + place:02x}:00.0": nvme(port * each + place, link, node),
            }
            for place in range(each)
        }
        switch = {**PORT, "link": uplink, f"0000:{bus - 8:02x}:00.0": {**PORT, "link": uplink, **drives}}
        only = {**PORT, "link": uplink, f"0000:{0x40 + port:02x}:00.0": nvme(port, link, node)}
        files[root] = switch if each > 1 else only
    return {**machine(cores), "files": {**files, **nodes(cores)}}


def nodes(cores):
    half = cores // 2
    return {
        "/sys/devices/system/node/node0/cpulist": f"0-{half - 1}",
        "/sys/devices/system/node/node1/cpulist": f"{half}-{cores - 1}",
    }


def machine(cores):
    return {"cores": " ".join(str(core) for core in range(cores))}


def sata_server(adapter, phys):
    """24 SATA drives behind an expander."""
    bay = "/sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/host0/port-0:0"
    phy = {"negotiated_linkrate": "12.0 Gbit", "maximum_linkrate_hw": "12.0 Gbit"}
    files = {f"{bay}/phy-0:{number}/sas_phy/phy-0:{number}": phy for number in range(phys)}
    files["/sys/devices/pci0000:17/0000:17:02.0"] = {**PORT, "link": adapter}
    files["/sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0"] = {"class": "0x010700", "link": adapter}
    files["/sys/class/scsi_host/host0/proc_name"] = "mpt3sas"
    for number in range(24):
        own = f"{bay}/expander-0:0/port-0:0:{number}"
        files[f"{own}/phy-0:0:{number}/sas_phy/phy-0:0:{number}"] = {**phy, "negotiated_linkrate": "6.0 Gbit"}
        files[f"{own}/end_device-0:0:{number}/target0:0:{number}/0:0:{number}:0"] = {
            "vendor": "ATA",
            "model": "EXAMPLE SATA SSD",
            "rev": "1.0",
            "wwid": f"naa.50000000000000{number:02x}",
            "vpd_pg80": f"SN{number}",
            "block": {f"sd{chr(ord('a') + number)}": {}},
        }
    return {**machine(32), "files": files}


def drives_of(host):
    """The drives as preflight gets them."""
    found = []
    for name in sorted(host.listdir("/sys/block")):
        own = identity.identity(host, name)
        entry = parse({"serial": own.serial})
        parts = shared_parts.of_drive(host, name, own, entry, False)
        link_mb_s = links.carries_mb_s(host, name, own.transport)
        found.append(
            {"drive": entry.label, "selector": entry.given, "identity": base.to_json(own), "link_mb_s": link_mb_s}
        )
        found[-1].update({} if parts is None else {"shared": base.to_json(parts)})
    return found


SETTINGS = {"ssd_parallel_drives": "auto", "workload_ioengine": "libaio"}
SERVERS = [
    ("a root port for each drive", nvme_server(24, "16 x4"), 24, 24, "links, adapters and CPUs carry all 24"),
    ("six switches with all lanes", nvme_server(6, "16 x16"), 24, 24, "carry all 24 at full speed"),
    ("two switches for 12 each", nvme_server(2, "16 x16"), 4, 24, "the link 16 GT/s x16 of 0000:0"),
    ("such switches, drives of PCIe 3", nvme_server(2, "16 x16", "8 x4"), 8, 24, "the 12 drives behind it up to 47261"),
    ("fewer cores than drives", nvme_server(24, "16 x4", cores=16), 8, 8, "12 drives share the 8 cores of NUMA node"),
    ("an adapter of 8 lanes, SATA", sata_server("8 x8", 8), 6, 24, "the adapter 0000:18:00.0 carries 4096 MB/s"),
    ("an expander behind one phy", sata_server("8 x8", 1), 2, 24, "the SAS link port-0:0 carries 1200 MB/s"),
]


@pytest.mark.parametrize(("of", "sure", "most", "why"), [case[1:] for case in SERVERS], ids=[c[0] for c in SERVERS])
def test_24_drives_side_by_side(fake, of, sure, most, why):
    machine_trees.put(fake, of)
    drives = drives_of(fake)
    assert len(drives) == 24
    number, together, told = parallel_drives.spec(SETTINGS, plans.found(drives), any_test=True)
    assert (together.otherwise if together else number, number) == (sure, most) and why in told, told
    # Without a trial no time, and never more than three minutes.
    assert 0 <= parallel_drives.span_s(together, 24)[1] <= 180 * (sure < most)


@pytest.mark.parametrize("node_of", [lambda port: port % 2, lambda port: int(port < 6)], ids=["even", "uneven"])
def test_drives_side_by_side_get_like_cpus(fake, node_of):
    """Also where one node has a quarter of the drives."""
    machine_trees.put(fake, nvme_server(24, "16 x4", cores=64, node_of=node_of))
    drives = drives_of(fake)
    requests = [CpuRequest(drive["drive"], drive["identity"]["numa_node"]) for drive in drives]
    places = CpuPlacement(cpus.topology(fake), requests, parallel=24)
    taken = [cpus.parse(places.take(drive["drive"]).cpus) for drive in drives]
    assert len({len(own) for own in taken}) == 1 and len({cpu for own in taken for cpu in own}) == 24 * len(taken[0])


def test_what_a_virtual_machine_or_an_unknown_path_shares_is_unknown(fake):
    machine_trees.put(fake, nvme_server(24, "16 x4"))
    own = identity.identity(fake, "nvme0n1")
    assert shared_parts.of_drive(fake, "nvme0n1", own, parse({"serial": "SN0"}), True) is None
    assert shared_parts.of_drive(fake, "vda", Identity(transport="virtio"), parse({"serial": "V"}), False) is None


def test_loop_devices_share_what_is_behind_them(fake):
    (part,) = shared_parts.of_drive(fake, "loop0", Identity(transport="loop"), parse({"serial": "L"}), True)
    assert part.most_drives == 1
