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
from volatile_cache import VolatileCache

API_VERSION = 2

_settings = {}
_lock = threading.Lock()
_model = None
_memory = None
_lies = None
# None: nothing that was acknowledged is lost.
_cache = None


def config(key, value):
    _settings[key] = value


def config_complete():
    global _model, _memory, _lies, _cache
    lies = _settings.pop("lies", "")
    texts = {key: _settings.pop(key, "") for key in ("power_lies", "power_file")}
    cache_bytes = float(_settings.pop("cache_bytes", 0))
    numbers = {key: float(value) for key, value in _settings.items()}
    size = int(numbers.pop("size_bytes"))
    _model = Model(size_bytes=size, seed=int(numbers.pop("seed")), **numbers)
    _memory = bytearray(size)
    _lies = Lies(lies, size)
    if cache_bytes:
        _cache = VolatileCache(_memory, cache_bytes, texts["power_lies"], texts["power_file"], _model.seed)


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
        is_alive = _is_alive()
        deadline_s = _model.read(time.monotonic(), len(buffer))
        found = _memory[offset : offset + len(buffer)]
        can_be_read = _lies.read(found, offset) and is_alive
    buffer[:] = found
    _sleep_until(deadline_s)
    _fail_unless(can_be_read)


def _is_alive():
    """Whether the drive does anything; it loses its power first where somebody cut that."""
    if _cache:
        _cache.look_at_power()
    return not (_cache and _cache.is_dead)


def _write(data, offset, fua):
    with _lock:
        is_alive = _is_alive()
        deadline_s = _model.write(time.monotonic(), offset, len(data))
        is_written = is_alive and _lies.write(_memory, data, offset)
        if _cache and is_written:
            _cache.written(offset, len(data), fua)
    _sleep_until(deadline_s)
    _fail_unless(is_written)


def pwrite(handle, buffer, offset, flags):
    _write(buffer, offset, flags & nbdkit.FLAG_FUA)


def zero(handle, count, offset, flags):
    """Writes zeros, at the cost of a write: unlike a discard it does not empty the drive."""
    _write(bytes(count), offset, flags & nbdkit.FLAG_FUA)


def trim(handle, count, offset, flags):
    with _lock:
        is_trimmed = _is_alive() and _lies.trim(offset, count)
        if is_trimmed:
            _memory[offset : offset + count] = bytes(count)
            _model.discard(offset, count)
            if _cache:
                _cache.written(offset, count, flags & nbdkit.FLAG_FUA)
    _fail_unless(is_trimmed)


def flush(handle, flags):
    """Without a volatile cache nothing is to do: what was acknowledged is in memory."""
    with _lock:
        is_alive = _is_alive()
        if _cache and is_alive:
            _cache.flush()
    _fail_unless(is_alive)
