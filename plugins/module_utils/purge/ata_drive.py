# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SATA drive as its purge methods ask and command it. What hdparm can't do, or say, is a PurgeError.

hdparm opens the node without O_EXCL and reads only (hdparm.c, process_dev), so it works under our hold; nothing is
lent.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host, Result
from ..core.progress import Progress
from ..tools import hdparm
from .method import PurgeError

FAMILY = "ata"
ASK_S = 120.0
UNFREEZE = "suspend and resume the host, or pull the drive and plug it in again while the host runs"


def identify(host: Host, identity: t.Mapping[str, t.Any]) -> hdparm.Identify:
    """Return what the drive says of itself, if it still is the one of this identity. Raises PurgeError."""
    try:
        return hdparm.read(host, identity["path"], identity.get("serial"))
    except ValueError as error:
        raise PurgeError(str(error)) from None


def sanitize_status(host: Host, path: str) -> Progress:
    """Return how far a sanitize is that goes on in the drive. Raises PurgeError."""
    try:
        return hdparm.sanitize_status(host.run(["hdparm", "--sanitize-status", path], timeout_s=ASK_S))
    except ValueError as error:
        raise PurgeError(str(error)) from None


def must(result: Result, what: str) -> None:
    """Raise PurgeError, which begins with `what`, for a command that failed."""
    if result.rc != 0 or hdparm.lost_registers(result):
        said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()
        raise PurgeError(
            "{0}: {1} ended with {2} and said: {3:.160}".format(what, " ".join(result.argv), result.rc, said[-1])
        )
