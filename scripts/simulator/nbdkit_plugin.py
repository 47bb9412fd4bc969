# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nbdkit plugin: memory that is as slow as the model says. Started by simulated_ssd.py.

The callbacks run in nbdkit's threads. A request sleeps until its deadline, so waiting costs no CPU.
"""

from __future__ import annotations

import errno
import threading
import time

import nbdkit
from lies import Lies
from model import Model

API_VERSION = 2

_settings = {}
_lock = threading.Lock()
_model = None
_memory = None
_lies = None


def config(key, value):
    _settings[key] = value


def config_complete():
    global _model, _memory, _lies
    lies = _settings.pop("lies", "")
    numbers = {key: float(value) for key, value in _settings.items()}
    size = int(numbers.pop("size_bytes"))
    _model = Model(size_bytes=size, seed=int(numbers.pop("seed")), **numbers)
    _memory = bytearray(size)
    _lies = Lies(lies, size)


def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL


def open(readonly):
    return 1


def get_size(handle):
    return len(_memory)


def can_multi_conn(handle):
    return True


def can_trim(handle):
    return True


def can_zero(handle):
    return True


def can_fast_zero(handle):
    return False


def can_fua(handle):
    return nbdkit.FUA_NATIVE


def _sleep_until(deadline_s):
    delay_s = deadline_s - time.monotonic()
    if delay_s > 0:
        time.sleep(delay_s)


def _fail_unless(is_done):
    if not is_done:
        nbdkit.set_error(errno.EIO)
        raise OSError(errno.EIO, "the drive can't do this")


def pread(handle, buffer, offset, flags):
    with _lock:
        deadline_s = _model.read(time.monotonic(), len(buffer))
        found = _memory[offset : offset + len(buffer)]
        can_be_read = _lies.read(found, offset)
    buffer[:] = found
    _sleep_until(deadline_s)
    _fail_unless(can_be_read)


def _write(data, offset):
    with _lock:
        deadline_s = _model.write(time.monotonic(), offset, len(data))
        is_written = _lies.write(_memory, data, offset)
    _sleep_until(deadline_s)
    _fail_unless(is_written)


def pwrite(handle, buffer, offset, flags):
    _write(buffer, offset)


def zero(handle, count, offset, flags):
    """Writes zeros, at the cost of a write: unlike a discard it does not empty the drive."""
    _write(bytes(count), offset)


def trim(handle, count, offset, flags):
    with _lock:
        is_trimmed = _lies.trim(offset, count)
        if is_trimmed:
            _memory[offset : offset + count] = bytes(count)
            _model.discard(offset, count)
    _fail_unless(is_trimmed)


def flush(handle, flags):
    """Nothing to do: what was acknowledged is in memory."""
