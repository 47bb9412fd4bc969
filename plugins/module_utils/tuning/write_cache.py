# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's own volatile write cache: is it on, and switch it. Not queue/write_cache, which is only what the kernel
believes.

NVMe: feature 06h where Identify Controller has VWC bit 0 (NVM Express Base Specification 2.0, 5.27.1.4 and figure 275).
SAS and SATA: the WCE bit of the caching mode page, which the kernel's cache_type reads and writes in the drive
(Documentation/ABI/testing/sysfs-class-scsi_disk); libata turns it into SET FEATURES.
"""

from __future__ import annotations

import os
import re

from ..core.host import Host
from ..core.sysfs import nvme_controllers
from ..tools import nvme

TIMEOUT_S = 20.0
FEATURE = "6"
# cache_type's words by (on, does it cache reads).
_WORDS = {
    (True, True): "write back",
    (False, True): "write through",
    (True, False): "write back, no read (daft)",
    (False, False): "none",
}
STATES = ("on", "off")


def read(host: Host, name: str) -> str | None:
    """`on` or `off`; None where the drive has no volatile write cache, or none that can be switched."""
    controllers = nvme_controllers(host, name)
    if len(controllers) == 1:
        if not _may_be_volatile(host, _node(host, controllers[0])):
            return None
        result = host.run(
            ["nvme", "get-feature", _node(host, controllers[0]), "--feature-id=" + FEATURE], timeout_s=TIMEOUT_S
        )
        match = re.search(r"value:\s*(0x)?([0-9a-fA-F]+)", result.stdout)
        return None if result.rc or match is None else STATES[not int(match.group(2), 16) & 1]
    words = _scsi_words(host, name)
    return None if words is None else STATES[not words[0]]


def state(host: Host, name: str) -> str:
    """`on`, `off`, `none` (an NVMe drive that reports no volatile cache), or `unknown`: what a test's
    figures stand on.
    """
    controllers = nvme_controllers(host, name)
    if len(controllers) == 1 and not _may_be_volatile(host, _node(host, controllers[0])):
        return "none"
    return read(host, name) or "unknown"


def problem(host: Host, name: str, wanted: str | None) -> str:
    """Return why it is not proved that the cache is as wanted (`on`, `off`; None: whichever way); "" where it is."""
    if not wanted:
        return ""
    seen = state(host, name)
    if seen == wanted or (seen, wanted) == ("none", "off"):
        return ""
    told = {
        "unknown": "the drive does not report the state of its write cache, so nothing proves that it is {0}",
        "none": "the drive has no volatile write cache to be {0}",
    }
    return told.get(seen, "the drive's write cache is {1}, the test needs it {0}").format(wanted, seen)


def change(host: Host, name: str, wanted: str) -> str:
    """Switch it `on` or `off`; an error text, empty when the drive took it."""
    controllers = nvme_controllers(host, name)
    if len(controllers) == 1:
        value = str(int(wanted == "on"))
        result = host.run(
            ["nvme", "set-feature", _node(host, controllers[0]), "--feature-id=" + FEATURE, "--value=" + value],
            timeout_s=TIMEOUT_S,
        )
    else:
        words, file = _scsi_words(host, name), _scsi_file(host, name)
        if words is None or file is None:
            return f"{name} has no write cache that can be switched"
        # A drive that hangs blocks its writer: a child, with a deadline.
        result = host.run(["tee", host.path(file)], timeout_s=TIMEOUT_S, stdin=_WORDS[(wanted == "on", words[1])])
    return (result.stderr.strip() or result.stdout.strip() or f"exit code {result.rc}") if result.rc else ""


def _may_be_volatile(host: Host, node: str) -> bool:
    """Return whether the drive has a volatile cache; some without one answer for the feature all the same, and refuse
    to change it.
    """
    try:
        return bool(nvme.number(nvme.query(host, ["id-ctrl", node]), "vwc", 0xFF) & 1)
    except nvme.NvmeError:
        return True


def _node(host: Host, controller: str) -> str:
    return "/dev/" + os.path.basename(host.realpath(controller))


def _scsi_file(host: Host, name: str) -> str | None:
    found = host.glob(f"/sys/block/{name}/device/scsi_disk/*/cache_type")
    return found[0] if len(found) == 1 else None


def _scsi_words(host: Host, name: str) -> tuple[bool, bool] | None:
    """(is it on, does it cache reads)."""
    file = _scsi_file(host, name)
    shown = host.get(file) if file else None
    return next((key for key, words in _WORDS.items() if words == shown), None)
