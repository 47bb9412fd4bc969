# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the families of checks share: the facts that they look at, how a check is written down, and version rules."""

from __future__ import annotations

import fnmatch
import re
import typing as t

from ..drive.attributes import VIRTUAL
from ..drive.entry import NO_OPTIONS, Options
from ..drive.health import Health
from ..drive.self_test import SelfTest
from ..machine.pcie import Device, Errors, is_bridge
from ..records.check_finding import CheckLevel
from ..records.identity import Identity

OK: CheckLevel = "ok"
WARNING: CheckLevel = "warning"
BLOCKS: CheckLevel = "blocks"
LEVELS = (OK, WARNING, BLOCKS)
NO_DEVICE = Device("")

Rule = t.TypeVar("Rule")

# How the wanted part of a version rule compares with what is there: ">=3.28"; anything else is a shell pattern.
_AT_LEAST = re.compile(r">=\s*(\d.*)")
# What `git describe` writes behind a tag.
_GIT_BUILD = re.compile(r"-[0-9]+-g[0-9a-f]{4,}")


class Driver(t.NamedTuple):
    """A kernel driver, and the module that it is in, which has the version."""

    name: str | None = None
    module: str | None = None
    version: str | None = None


class LinkRule(t.NamedTuple):
    """The least that preflight_link requires; 0: nothing."""

    speed_gts: float = 0.0
    width: int = 0


# A version, or several: each a shell pattern or ">=3.28".
VersionRule = t.Union[str, t.Sequence[str]]


class Required(t.NamedTuple):
    """What the inventory requires (the options of the module host_checks). Keys of the rules: patterns, or names."""

    firmware: t.Mapping[str, VersionRule] = {}
    drivers: t.Mapping[str, VersionRule] = {}
    versions: t.Mapping[str, VersionRule] = {}
    link: t.Mapping[str, LinkRule] = {}
    temperature_headroom_c: int = 10
    min_free_memory_mib: int = 1024
    min_cpus: int = 2
    max_used_pct: int = 90
    parallel_drives: int = 1
    write_cache_chosen: bool = False


class Machine(t.NamedTuple):
    """The part of a snapshot that the checks look at, in their units. None is unknown."""

    kernel: str | None = None
    architecture: str | None = None
    cpus: int | None = None
    cpu_max_mhz: int | None = None
    cache_bytes: int | None = None
    memory_bytes: int | None = None
    available_bytes: int | None = None
    cpufreq_driver: str | None = None
    clock_source: str | None = None
    # NUMA nodes that have CPUs.
    nodes: int | None = None
    # The CPUs of each of them, as a list as the kernel writes it.
    node_cpus: t.Mapping[int, str] = {}
    # Their versions.
    tools: t.Mapping[str, str | None] = {}
    # None: it is bare metal; or it is no container.
    hypervisor: str | None = None
    container: str | None = None


class CheckedDrive(t.NamedTuple):
    """A drive as the checks see it. Each part is empty or None where it could not be read.

    path: pcie.path_to_root, read after the drive traffic; aer_rose: what its error counters rose by during it, None
      without traffic; traffic: why there was none. options: those of its entry in ssd_drives.
      sata_port_gbit_s: the most that its port can do.
    """

    drive: str
    identity: Identity
    path: t.Sequence[Device] = ()
    health: Health = Health()
    options: Options = NO_OPTIONS
    driver: Driver = Driver()
    aer_rose: t.Mapping[str, Errors] | None = None
    traffic: str = ""
    write_cache: str | None = None
    self_test: SelfTest = SelfTest()
    sata_port_gbit_s: float | None = None

    @property
    def endpoint(self) -> Device:
        """The drive's own PCI function; without an address where it has none."""
        return self.path[0] if self.path else NO_DEVICE

    @property
    def bridges(self) -> list[Device]:
        """The ports above it, nearest first."""
        return [device for device in self.path[1:] if is_bridge(device.class_code)]

    @property
    def on_pcie(self) -> bool:
        """Whether the drive itself is a PCI Express device, rather than behind an HBA or no hardware at all."""
        return bool(self.path) and self.identity.transport not in ("sata", "sas", "virtio", "usb", "mmc")

    @property
    def is_virtual(self) -> bool:
        return is_virtual(self.identity)


def is_virtual(identity: Identity) -> bool:
    """Return whether a drive is a device of software, which has no link, temperature or health."""
    return identity.transport in VIRTUAL


class HostFacts(t.NamedTuple):
    """All that the checks look at. devices: pcie.functions'."""

    machine: Machine
    required: Required = Required()
    drives: t.Sequence[CheckedDrive] = ()
    devices: t.Mapping[str, Device] = {}


class Unknown(str):
    """A message that says what could not be read, so that nothing can be said."""


class OfVirtual(Unknown):
    """A message about what no drive of software has."""


class Harmless(str):
    """A message about something that is so, and can't touch what this run measures: its level is ok, whatever the
    check's is.
    """


LookAtDrive = t.Callable[[HostFacts, CheckedDrive], t.List[str]]
HostLook = t.Callable[[HostFacts], t.List[str]]


class Check(t.NamedTuple):
    """One line of the table: its code, the level of what it finds, how to put it right, and the pure function that
    looks.

    A function returns a message for each thing found (an Unknown for what could not be read), and none where all is
    well. look is asked for each drive, look_host once.
    """

    check: str
    level: CheckLevel
    remedy: str
    look: LookAtDrive | None = None
    look_host: HostLook | None = None


def matches(wanted: VersionRule, actual: str) -> bool:
    """Return whether a version is one of those wanted: a text or a list of texts, each a shell pattern or ">=3.28"."""
    rules = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return any(_matches_rule(str(rule), actual) for rule in rules)


def _matches_rule(rule: str, actual: str) -> bool:
    least = _AT_LEAST.fullmatch(rule.strip())
    if least:
        return version_key(actual) >= version_key(least.group(1))
    return fnmatch.fnmatchcase(actual, rule.strip())


def version_key(text: str) -> tuple[int, ...]:
    """Return a version for comparing: 3.28, 3.28.0 and fio-3.28-12-gabc are (3, 28)."""
    match = re.search(r"\d+(\.\d+)*", text)
    parts = [int(part) for part in match.group().split(".")] if match else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def is_older(actual: str, least: str) -> bool:
    """Return whether a version is known to be older. A build of a git clone never is: it names the last tag that the
    clone has, which may lie thousands of commits back.
    """
    return not _GIT_BUILD.search(actual) and version_key(actual) < version_key(least)


def wanted_for(rules: t.Mapping[str, Rule], name: str | None) -> Rule | None:
    """Return the value of the first pattern that a name fits; None where none does."""
    return next((value for pattern, value in rules.items() if fnmatch.fnmatchcase(name or "", pattern)), None)


def rule_text(wanted: VersionRule) -> str:
    """Return a version rule for people."""
    return " or ".join(str(rule) for rule in wanted) if isinstance(wanted, (list, tuple)) else str(wanted)
