# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Uses a device or a file in a way that is hard to see, until its standard input ends: `openers.py HOW PATH`."""

import ctypes
import os
import platform
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine())
PROT_READ, MAP_SHARED, CLONE_FILES = 1, 1, 0x400
CLONE_NEWNS, MS_RDONLY, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 1, 1 << 14, 1 << 18, 2
IO_URING_SETUP, IO_URING_REGISTER, REGISTER_FILES = 425, 427, 2


def wait():
    """Until nobody needs this any more."""
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


def mapped(path):
    """Mapped, and the descriptor closed."""
    handle = os.open(path, os.O_RDONLY)
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    assert LIBC.mmap(None, 4096, PROT_READ, MAP_SHARED, handle, 0) != ctypes.c_void_p(-1).value
    os.close(handle)
    wait()


def first_thread_gone(path):
    """Open, while the thread that the process began with has ended: /proc/PID/fd is empty then."""
    os.open(path, os.O_RDONLY)
    threading.Thread(target=wait).start()
    LIBC.syscall(EXIT, 0)


def mapped_first_thread_gone(path):
    """Mapped, the descriptor closed, and the thread that the process began with has ended."""
    threading.Thread(target=mapped, args=(path,)).start()
    LIBC.syscall(EXIT, 0)


def own_table(path):
    """Open in a thread that has descriptors of its own."""

    def work():
        assert LIBC.unshare(CLONE_FILES) == 0
        os.open(path, os.O_RDONLY)
        wait()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def io_uring(path):
    """Registered with an io_uring, and the descriptor closed."""
    handle = os.open(path, os.O_RDONLY)
    ring = LIBC.syscall(IO_URING_SETUP, 4, ctypes.create_string_buffer(120))
    assert ring >= 0, os.strerror(ctypes.get_errno())
    files = (ctypes.c_int * 1)(handle)
    assert LIBC.syscall(IO_URING_REGISTER, ring, REGISTER_FILES, files, 1) == 0
    os.close(handle)
    wait()


def _again_and_again(path, flags, open_s, closed_s):
    def work():
        while True:
            handle = os.open(path, flags)
            os.read(handle, 512)
            time.sleep(open_s)
            os.close(handle)
            time.sleep(closed_s)

    threading.Thread(target=work, daemon=True).start()
    wait()


def comes_and_goes(path):
    """Reads every 300 ms, and has it open half of the time."""
    _again_and_again(path, os.O_RDONLY, 0.15, 0.15)


def comes_and_goes_at_once(path):
    """Every 300 ms, for no longer than a read takes."""
    _again_and_again(path, os.O_RDONLY, 0, 0.3)


def writes_now_and_then(path):
    """Has it open for writing, for a quarter of each second."""
    _again_and_again(path, os.O_RDWR, 0.25, 0.75)


def _call(name, *arguments):
    assert getattr(LIBC, name)(*arguments) == 0, os.strerror(ctypes.get_errno())


def _mount(path):
    """Mount it, and change nothing on it, on a folder of a mount namespace of its own; where."""
    _call("unshare", CLONE_NEWNS)
    _call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    where = tempfile.mkdtemp()
    _call("mount", path.encode(), where.encode(), b"ext4", ctypes.c_ulong(MS_RDONLY), b"noload")
    return where


def mounted_and_detached(path):
    """Mounted, and taken out of the tree (umount -l) while a file on it is open: no mountinfo shows it."""
    where = _mount(path)
    os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    _call("umount2", where.encode(), MNT_DETACH)
    os.rmdir(where)
    wait()


def mounted_without_a_process(path):
    """Mounted in a namespace that no process is in: it is kept by an open file."""
    told, tell = os.pipe()
    end, ended = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ended)
        os.write(tell, _mount(path).encode())
        os.read(end, 1)
        os._exit(0)
    where = os.read(told, 4096).decode()
    os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    os.close(ended)
    os.waitpid(pid, 0)
    print("ready", flush=True)
    sys.stdin.read()
    os.rmdir(where)  # which unmounts it
    os._exit(0)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
