# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why io_uring_cmd (NVMe passthrough) is not offered: it writes through a node that the hold of the drive does not
guard, and the kernel's counts, by which every cell is judged, see none of it.
"""

from __future__ import annotations

import json

import pytest
from hardware import PLAIN

MIB = 1 << 20
# Written by passthrough: everything else on a blank drive is zero.
PATTERN = b"\x5a" * MIB
TRY = """
import errno, json, os, subprocess, sys
node = sys.argv[1]
name = os.path.basename(node)
generic = "/dev/" + name.replace("nvme", "ng", 1)
held = os.open(node, os.O_RDWR | os.O_EXCL)

def opens(path):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))
    except OSError as error:
        return errno.errorcode[error.errno]
    return "opened"

def write(path, byte, *engine):
    before = sectors()
    job = ["fio", "--name=write", "--filename=" + path, "--rw=write", "--bs=4k", "--size=1M", "--iodepth=4",
           "--thread=1", "--zero_buffers=0", "--buffer_pattern=" + byte, *engine]
    done = subprocess.run(job, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return {"rc": done.returncode, "output": done.stdout[-2000:], "sectors": sectors() - before}

def sectors():
    with open(f"/sys/block/{name}/stat") as file:
        return int(file.read().split()[6])

found = {"node": opens(node), "generic": opens(generic)}
found["held"] = write(f"/proc/{os.getpid()}/fd/{held}", "0xa5", "--ioengine=libaio", "--direct=1")
found["passthrough"] = write(generic, "0x5a", "--ioengine=io_uring_cmd", "--cmd_type=nvme")
print(json.dumps(found))
"""


@pytest.mark.long
def test_passthrough_goes_past_the_hold_and_past_the_kernels_counts(guest):
    guest.blank(PLAIN)
    found = json.loads(guest.run(f"python3 - {guest.device(PLAIN)}", stdin=TRY, timeout_s=300).stdout)
    assert (found["node"], found["generic"]) == ("EBUSY", "opened"), (
        "the hold keeps others out of the block device alone"
    )
    assert (found["held"]["rc"], found["held"]["sectors"]) == (0, MIB // 512), found["held"]["output"]
    assert (found["passthrough"]["rc"], found["passthrough"]["sectors"]) == (0, 0), found["passthrough"]["output"]
    guest.run("sync")
    (space,) = guest.drives[PLAIN].namespaces
    assert space.file.read_bytes()[:MIB] == PATTERN
