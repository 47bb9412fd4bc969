# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading blocks of a drive past the page cache: single places, or many at once through the kernel's asynchronous I/O,
or threads where there is none.

A drive answers 32 reads in little more than the time of one, and Python can't wait for 32 at a time without either.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import errno
import mmap
import os
import types
import typing as t

from ..core import aio

# What the kernel says of a block that a drive cannot give: lost (BLK_STS_MEDIUM), failing its check (PROTECTION,
# TARGET), or without a reason.
UNREADABLE = (errno.ENODATA, errno.EILSEQ, errno.EREMOTEIO, errno.EIO)


class Unreadable(OSError):
    """A piece that the drive cannot give: offset and length in bytes."""

    def __init__(self, code: int, offset: int, length: int) -> None:
        super().__init__(code, f"{os.strerror(code)} at byte {offset}")
        self.offset, self.length = offset, length


class PlaceReader:
    """Reads through a descriptor that was opened with O_DIRECT, in whole blocks, so that no stale page answers for the
    drive.
    """

    def __init__(self, handle: int, size_bytes: int, block_bytes: int) -> None:
        self._handle = handle
        self.size_bytes = size_bytes
        self._block_bytes = max(512, block_bytes)

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes there; fewer at the drive's end. Raises OSError, also for a short read elsewhere."""
        start = offset // self._block_bytes * self._block_bytes
        end = min(self.size_bytes, -(-(offset + length) // self._block_bytes) * self._block_bytes)
        if offset < 0 or start >= end:
            return b""
        with mmap.mmap(-1, end - start) as buffer:
            try:
                got = os.preadv(self._handle, [buffer], start)
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror} at byte {start} or after it") from None
            if got != end - start:
                raise OSError(5, f"{got} of {end - start} bytes at byte {start}")
            return buffer[offset - start : min(end, offset + length) - start]


class BlockReader:
    """Reads up to `count` pieces of `piece_bytes` at a time through a descriptor that was opened with O_DIRECT. A
    context manager.
    """

    def __init__(self, handle: int, piece_bytes: int, count: int = 32) -> None:
        self._handle, self._piece_bytes, self._count = handle, piece_bytes, count
        self._buffer = mmap.mmap(-1, piece_bytes * count)  # page-aligned, as O_DIRECT asks for
        self._aio = _Aio.make(handle, self._buffer, piece_bytes, count)
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None

    def __enter__(self) -> BlockReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        if self._aio:
            self._aio.close()
        if self._pool:
            self._pool.shutdown()

    def read(self, offsets: t.Sequence[int]) -> bytes:
        """Return the pieces one after the other, in the order given. Raises OSError where one can't be read whole, and
        Unreadable where that is the drive's own word.
        """
        if self._aio:
            lengths = self._aio.read(offsets)
        else:
            self._pool = self._pool or concurrent.futures.ThreadPoolExecutor(self._count)
            lengths = list(self._pool.map(self._read_one, range(len(offsets)), offsets))
        for offset, length in zip(offsets, lengths):
            if length != self._piece_bytes:
                if -length in UNREADABLE:
                    raise Unreadable(-length, offset, self._piece_bytes)
                code = -length if length < 0 else errno.EIO
                raise OSError(code, f"{os.strerror(code)} at byte {offset}")
        return self._buffer[: len(offsets) * self._piece_bytes]

    def _read_one(self, place: int, offset: int) -> int:
        """Return how many bytes were read, or an error number below 0, as the kernel's asynchronous I/O does."""
        view = memoryview(self._buffer)[place * self._piece_bytes : (place + 1) * self._piece_bytes]
        try:
            return os.preadv(self._handle, [view], offset)
        except OSError as error:
            return -(error.errno or errno.EINVAL)


class _Aio:
    """Reads of pieces by the kernel's asynchronous I/O."""

    def __init__(self, context: ctypes.c_ulong, handle: int, buffer: mmap.mmap, piece_bytes: int, count: int) -> None:
        self._context = context
        self._handle, self._piece_bytes = handle, piece_bytes
        self._view = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        self._address = ctypes.addressof(self._view)
        self._blocks = ctypes.create_string_buffer(aio.IOCB.size * count)
        self._events = ctypes.create_string_buffer(aio.EVENT.size * count)
        start = ctypes.addressof(self._blocks)
        self._pointers = (ctypes.c_void_p * count)(*(start + aio.IOCB.size * place for place in range(count)))

    @classmethod
    def make(cls, handle: int, buffer: mmap.mmap, piece_bytes: int, count: int) -> _Aio | None:
        """None where this machine has none, or no more (fs.aio-max-nr)."""
        context = aio.setup(count)
        return None if context is None else cls(context, handle, buffer, piece_bytes, count)

    def read(self, offsets: t.Sequence[int]) -> list[int]:
        """For each offset how many bytes were read, or an error number below 0."""
        lengths = [0] * len(offsets)
        for place, offset in enumerate(offsets):
            address = self._address + place * self._piece_bytes
            aio.IOCB.pack_into(
                self._blocks,
                place * aio.IOCB.size,
                place,
                0,
                0,
                aio.PREAD,
                0,
                self._handle,
                address,
                self._piece_bytes,
                offset,
                0,
                0,
                0,
            )
        submitted = 0
        try:
            while submitted < len(offsets):
                first = ctypes.byref(self._pointers, submitted * ctypes.sizeof(ctypes.c_void_p))
                submitted += aio.syscall(aio.SUBMIT, self._context, len(offsets) - submitted, first)
        finally:
            self._reap(submitted, lengths)  # else the kernel would write into the buffer later
        return lengths

    def _reap(self, count: int, lengths: list[int]) -> None:
        while count:
            done = aio.syscall(aio.GETEVENTS, self._context, count, count, self._events, None)
            for place, _block, length, _more in aio.EVENT.iter_unpack(self._events.raw[: done * aio.EVENT.size]):
                lengths[place] = length
            count -= done

    def close(self) -> None:
        """Give the context back."""
        aio.syscall(aio.DESTROY, self._context)
