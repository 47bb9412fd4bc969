# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system in user space that holds one device node, and a process that has the node open: `fuse_node.py
MAJOR:MINOR FOLDER`.

Speaks the kernel's protocol itself (include/uapi/linux/fuse.h), so that no library is needed. Ends with its standard
input.
"""

import ctypes
import os
import struct
import sys
import threading

LOOKUP, FORGET, GETATTR, INIT, BATCH_FORGET = 1, 2, 3, 26, 42
NODE = 2


def attributes(inode, number):
    """struct fuse_attr."""
    mode = 0o60600 if inode == NODE else 0o40755
    return struct.pack("=6Q10I", inode, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, number if inode == NODE else 0, 4096, 0)


def answer(opcode, inode, number):
    """What follows the header of an answer; None: the kernel waits for none, a number: an error."""
    if opcode in (FORGET, BATCH_FORGET):
        return None
    if opcode == INIT:
        return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 1, 1, 65536, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        return struct.pack("=4Q2I", NODE, 1, 3600, 3600, 0, 0) + attributes(NODE, number)
    if opcode == GETATTR:
        return struct.pack("=Q2I", 3600, 0, 0) + attributes(inode, number)
    return 38  # ENOSYS


def serve(handle, number):
    while True:
        try:
            request = os.read(handle, 1 << 20)
        except OSError:
            return
        _length, opcode, unique, inode = struct.unpack_from("=2I2Q", request)
        body = answer(opcode, inode, number)
        if isinstance(body, bytes):
            os.write(handle, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
        elif body is not None:
            os.write(handle, struct.pack("=IiQ", 16, -body, unique))


def main():
    major, minor = map(int, sys.argv[1].split(":"))
    where = os.fsencode(sys.argv[2])
    handle = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % handle
    if ctypes.CDLL(None, use_errno=True).mount(b"node", where, b"fuse.node", 0, options):
        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
    threading.Thread(target=serve, args=(handle, os.makedev(major, minor)), daemon=True).start()
    os.open(os.path.join(sys.argv[2], "node"), os.O_RDONLY)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
