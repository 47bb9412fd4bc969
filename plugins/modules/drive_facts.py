#!/usr/bin/python

# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_facts
short_description: Find the drives that the inventory names, and report whether they may be erased
version_added: 0.1.0
author:
  - The ssdlab.fleet authors (@ssdlab)
description:
  - Finds each drive by its stable identity, returns that identity, and lists every reason why the drive may not be
    erased.
  - Anything that cannot be determined is such a reason too. A drive is eligible only if every probe succeeded and
    found nothing against it.
  - It only reads. It does not fail for a drive that must not be erased; check RV(drives[].eligible).
  - Needs root, C(wipefs) and C(blkid) of util-linux, and the tools that query the drives, C(nvme) of nvme-cli for NVMe,
    C(hdparm) for SATA and sg3_utils for SAS. Loop devices need none of these tools.
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.attributes.reads
options:
  drives:
    description:
      - The drives, as in the inventory's C(ssd_drives). Each is a mapping with exactly one of the keys C(serial),
        C(wwn), C(by_id) (a name in C(/dev/disk/by-id)) or C(backing_file) (of a loop device).
      - Values are strings, compared as a whole. Put them in quotes, because YAML reads V(0123), V(1e5) and V(NO) as
        something else.
      - An entry may also have options for that drive. C(allow) lists codes of refusals to override; only
        V(partition_table), V(signature), V(efi_system_partition), V(transport), V(removable), V(hard_disk),
        V(sanitize_failed), V(mentioned) and V(unseen_users) can be. C(ssd_overwrite_data=true) overrides
        V(unsigned_data). C(retired=true), or a date, gives up all that is the drive's own alone, until a run has erased
        the drive. C(passing_programs) is a list of programs that only look at the drive, each with C(path) and
        optionally C(opens_for_writing).
    type: list
    elements: raw
    default: []
  discover:
    description: Also return every other whole drive of the host, each with its best selector.
    type: bool
    default: false
  state_dir:
    description:
      - The folder on the host where runs keep their state, C(ssd_state_dir). Data that is proved to be left by a run is
        no reason against erasing the drive again.
      - Without it, no such data is recognised.
    type: path
  look:
    description: V(sample) reads random blocks of each drive that no other rule refuses, V(full) reads all of it.
    type: str
    choices: [sample, full]
    default: sample
  look_s:
    description: Seconds to read random blocks, of all drives at once. A drive that can be read completely in that
      time is read completely.
    type: float
    default: 10.0
  passing_programs:
    description:
      - Programs that only look at the drives that O(discover=true) finds, as C(ssd_passing_programs). For drives of
        O(drives) their entries have them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Full path of the executable, without links.
        type: str
        required: true
      opens_for_writing:
        description: Whether it may also open drives for writing.
        type: bool
        default: false
seealso:
  - module: ssdlab.fleet.host_info
"""

EXAMPLES = r"""
- name: Look at the drives of the inventory
  ssdlab.fleet.drive_facts:
    drives: "{{ ssd_drives }}"
    state_dir: "{{ ssd_state_dir }}"
  become: true
  register: seen

- name: Stop if one of them may not be erased
  ansible.builtin.assert:
    that: seen.drives | rejectattr('eligible') | length == 0
    fail_msg: "{{ seen.drives | map(attribute='refusals') | flatten | map(attribute='message') | join(' ') }}"

- name: Look at every drive of the host
  ssdlab.fleet.drive_facts:
    discover: true
  become: true
  register: seen
"""

RETURN = r"""
drives:
  description: One entry a drive, in the order given; with O(discover=true) those not named follow.
  returned: success
  type: list
  elements: dict
  contains:
    selector:
      description: The selector as given, or the proposed one; null if nothing names the drive or the entry is invalid.
      type: dict
      sample: {serial: 22123A4F5B6C}
    drive:
      description: The selector's value, the drive's name in every record.
      type: str
      sample: 22123A4F5B6C
    path:
      description: The current device node; null unless exactly one drive matches.
      type: str
      sample: /dev/nvme0n1
    identity:
      description: The drive's identity; null unless exactly one drive matches. A key is null if its value is unknown.
      type: dict
      contains:
        serial:
          description: Serial number.
          type: str
          sample: 22123A4F5B6C
        wwn:
          description: World wide name, as the kernel writes it.
          type: str
          sample: eui.000000000000000100a0752234f5b6c0
        model:
          description: Model.
          type: str
          sample: Micron_7450_MTFDKCC3T2TFS
        firmware:
          description: Firmware revision.
          type: str
          sample: E2MU110
        size_bytes:
          description: Capacity.
          type: int
          sample: 3200631791616
        logical_block_size_bytes:
          description: Logical block size.
          type: int
          sample: 512
        metadata_bytes:
          description: Metadata of each block, such as 8 in the LBA format 512+8.
          type: int
          sample: 0
        physical_block_size_bytes:
          description: Physical block size.
          type: int
          sample: 4096
        minimum_io_size_bytes:
          description: The smallest efficient I/O size that the kernel reports; for an NVMe drive its preferred write
            granularity (NPWG).
          type: int
          sample: 16384
        transport:
          description: Its transport, such as V(nvme), V(nvme-tcp), V(sata), V(sas), V(usb), V(virtio), V(loop), or
            V(pcie) for a P320h, P420m or ioMemory.
          type: str
          sample: nvme
        numa_node:
          description: The NUMA node that it is attached to.
          type: int
          sample: 1
        diskseq:
          description: The kernel's sequence number of this attachment; another number means that the drive was swapped
            or attached again.
          type: int
          sample: 12
        kernel_name:
          description: The kernel's name now.
          type: str
          sample: nvme0n1
        path:
          description: The device node now.
          type: str
          sample: /dev/nvme0n1
        major_minor:
          description: The device number now.
          type: str
          sample: "259:0"
        backing_file:
          description: The file behind a loop device.
          type: str
          sample: null
        backing:
          description: The file (device and inode) that the kernel reports behind a loop device, and which part of it.
          type: str
          sample: null
        max_discard_bytes:
          description: Maximum size of one discard; 0 if it supports none.
          type: int
          sample: 2199023255040
        queue_depth:
          description: Number of commands that one queue of the drive accepts at a time.
          type: int
          sample: 1023
        rotational:
          description: Whether the kernel reports it as rotational.
          type: bool
          sample: false
        io_poll:
          description: Whether its queue supports polled I/O, as does that of an NVMe drive with poll queues
            (C(nvme.poll_queues)).
          type: bool
          sample: false
        zone_model:
          description: C(host-managed) if it takes writes in sequence by zone alone (NVMe ZNS, SMR), C(host-aware) if it
            takes all; null without zones.
          type: str
          sample: host-aware
        zone_bytes:
          description: Size of a zone; null without zones.
          type: int
          sample: 268435456
        max_open_zones:
          description: How many zones may be open at a time; 0 if any number. Null without zones.
          type: int
          sample: 14
        max_active_zones:
          description: How many zones may be open, or written in part; 0 if any number. Null without zones.
          type: int
          sample: 14
    eligible:
      description: Whether it may be erased.
      type: bool
      sample: false
    refusals:
      description: Every reason why it may not be erased.
      type: list
      elements: dict
      contains:
        code:
          description: The kind of reason.
          type: str
          sample: mounted
        message:
          description: What was found, and what to do.
          type: str
          sample: "22123A4F5B6C (/dev/nvme0n1): it is mounted: /dev/nvme0n1p1 on /srv. Unmount it everywhere, containers
            included, ..."
    overridden:
      description: Refusals that the options of the drive's entry lifted, in the form of RV(drives[].refusals).
      type: list
      elements: dict
      sample: [{code: partition_table, message: "22123A4F5B6C (/dev/nvme0n1): it has a partition table: gpt. ..."}]
    holds:
      description: What lies on the drive, as far as it describes itself.
      type: list
      elements: str
      sample: ["a GPT", "partition 1 \"data\": ext, label srv, UUID ..., last used 2026-10-01 12:00 UTC"]
    gives_up:
      description: What C(retired) of the drive's entry gives up; empty if it lifts nothing, or the drive may not be
        erased.
      type: list
      elements: str
      sample: ["ext, label srv, UUID ..., last used 2026-10-01 12:00 UTC"]
    members:
      description: Which parts of arrays and volume groups lie on the drive, with the count of changes by which md and
        btrfs tell a part that is out of date.
      type: list
      elements: str
      sample: ["md 6e1f7a34-5dd2-4f6b-8d0b-1c2f3a4b5c6d 0 41"]
    may_retire:
      description: With O(discover=true), the value of C(retired) with which a drive that is refused could be erased.
      returned: when there is one
      type: str
      sample: "true"
    power_on_hours:
      description: For how long such a drive was in use; null if it does not report it.
      type: int
      sample: 12345
    passing:
      description: Programs that have it open but only probe drives, such as udev, smartd or multipathd. They are not
        a reason against erasing it.
      type: list
      elements: str
      sample: ["smartd (process 812)"]
    own_data:
      description: What the ledger in O(state_dir) has about the data on the drive; null if it has nothing.
      type: dict
      contains:
        run_id:
          description: The run that wrote last.
          type: str
          sample: 20261121T130000Z-qualify
        state:
          description: V(writing) until the run releases the drive, then V(released), or V(evidence) if it missed a
            criterion.
          type: str
          sample: released
        released:
          description: When the run released the drive.
          type: str
          sample: "2026-11-21T18:00:00.123Z"
        reason:
          description: Why the drive is kept as evidence; empty when it is not.
          type: str
          sample: ""
        proved:
          description:
            - What proves that nobody else's data is on it. V(counters), the kernel has counted no write since, in the
              same boot and attachment; V(content), the look found only blank blocks and fio's random data.
            - Empty if there is no proof. Only proved data counts as left by a run.
          type: str
          sample: content
    look:
      description: How the content of the drive was sampled; null if another rule already refused the drive.
      type: dict
      contains:
        blocks:
          description: Number of random blocks of 4 KiB.
          type: int
          sample: 182000
        aimed_blocks:
          description: Number of further blocks, where the drive itself reports data (SCSI GET LBA STATUS; the file
            behind a loop device).
          type: int
          sample: 0
        allocated_bytes:
          description: How much the drive itself reports as in use; null if it does not report it. It lifts no refusal.
          type: int
          sample: null
        size_bytes:
          description: Of the drive.
          type: int
          sample: 3200631791616
        seconds:
          description: How long it took.
          type: float
          sample: 10.02
        whole:
          description: Whether all of the drive was read.
          type: bool
          sample: false
        seen_bytes:
          description: The look would have found this many bytes of data, anywhere on the drive, with a probability of
            99.9 %.
          type: int
          sample: 121474560
    purge:
      description:
        - The purge methods for this kind of drive, strongest first, as they would run without a test's options.
        - Empty for a drive that may not be erased for a reason other than V(unsigned_data); it is not queried.
      type: list
      elements: dict
      contains:
        method:
          description: Its name, as for C(purge_method).
          type: str
          sample: nvme_format_crypto
        supported:
          description: Whether the drive has it.
          type: bool
          sample: true
        reason:
          description: Why it does not; empty if it does.
          type: str
          sample: ""
        hits_others:
          description: What else it would erase; empty if nothing.
          type: str
          sample: ""
        unknown:
          description: Why nobody knows whether the drive has it; then it is taken only by its name.
          returned: when the drive does not tell
          type: str
          sample: the drive does not report which commands it supports
        purge_class:
          description: V(pts), or V(not_pts) for a method that does not meet the SNIA PTS definition of a purge.
          type: str
          sample: pts
        commands:
          description: Exactly what it would run.
          type: list
          elements: list
          sample: [[nvme, format, /dev/nvme0, --namespace-id=1, --lbaf=0, --ses=2, --timeout=21800000]]
        timeout_s:
          description: How long it may take; null if it is not supported.
          type: float
          sample: 21800.0
    purge_capabilities:
      description: What the drive reported about each family of methods, or C(error), why it could not be queried.
        Preflight plans with it.
      type: dict
      sample: {any: {path: /dev/nvme0n1, size_bytes: 1000204886016, max_discard_bytes: 2199023255040}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.host import Host
from ..module_utils.purge import drive_facts


def main() -> None:
    module = AnsibleModule(argument_spec=drive_facts.OPTIONS, supports_check_mode=True)
    module.exit_json(changed=False, **drive_facts.module_result(Host(), module.params))


if __name__ == "__main__":
    main()
