# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking apart what is built on retired drives alone: logical volumes, crypt mappings and arrays of md. It erases
nothing.

`plan` is pure: from the layers that the kernel shows, and from which drives the guard gives up but for what is built on
them, to the commands in their order, or to why there is none. `take_apart` runs them, and plans anew before each.
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import Host
from ..drive.entry import Entry, parse
from ..guard import guard_check
from ..guard.retired import CODES
from ..records.found_drives import FoundDrive

# What speaks against a drive only because something is built on it.
BUILT_ON = ("held", "busy")
_TIMEOUT_S = 60.0
# Names that a command takes as they are.
_PLAIN = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]*")


class Layer(t.NamedTuple):
    """A block device that is built on others. kind: lvm, crypt, md, or what else it is; name: of the volume group, of
    the mapping, or its node; group: of LVM, the UUID of the volume group; below: kernel names of what it is built on.
    """

    kind: str
    name: str
    group: str
    below: frozenset[str]


class Step(t.NamedTuple):
    """One command. layers: kernel names of what is gone after it; drives: kernel names of the drives below them."""

    argv: tuple[str, ...]
    layers: tuple[str, ...]
    drives: tuple[str, ...]


class Kept(t.NamedTuple):
    """What is not taken apart. by_hand: the command for somebody who knows better."""

    layer: str
    why: str
    by_hand: str


class Plan(t.NamedTuple):
    """What is done, in that order, and what is not."""

    steps: list[Step]
    kept: list[Kept]


def plan(layers: t.Mapping[str, Layer], retired: t.Collection[str], kept: t.Mapping[str, str]) -> Plan:
    """Return how to take apart what is built on retired drives.

    layers: by kernel name, of the whole host. retired: kernel names of drives that may be taken apart; kept: of other
      drives that the inventory calls retired, with why they may not.
    """
    drives = {name: _drives(layers, name) for name in layers}
    wanted = [name for name in layers if drives[name] & {*retired, *kept}]
    refused = {name: why for name in wanted for why in [_why_kept(layers, drives, name, retired, kept)] if why}
    # What stays keeps what it is built on.
    for name in wanted:
        above = [one for one in wanted if name in _all_below(layers, one) and one in refused]
        if above and name not in refused:
            refused[name] = f"{layers[above[0]].name} is built on it, and is kept"
    steps, left = [], [name for name in wanted if name not in refused]
    while left:
        together = _next(layers, left)
        below = sorted(set().union(*(drives[name] for name in together)))
        steps.append(Step(_command(layers[together[0]], together[0]), tuple(together), tuple(below)))
        left = [name for name in left if name not in together]
    # In the order in which somebody may take them apart by hand.
    downwards = sorted(refused, key=lambda name: -len(_all_below(layers, name)))
    told = [Kept(name, refused[name], " ".join(_command(layers[name], name))) for name in downwards]
    return Plan(steps, told)


def _drives(layers: t.Mapping[str, Layer], name: str) -> set[str]:
    """Return the drives, or their partitions' drives, below a layer; a layer without any is built on itself."""
    below = _all_below(layers, name)
    return {one for one in below if one not in layers} or {name}


def _all_below(layers: t.Mapping[str, Layer], name: str) -> set[str]:
    found: set[str] = set()
    todo = list(layers[name].below) if name in layers else []
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += layers[one].below if one in layers else ()
    return found


def _same_group(layers: t.Mapping[str, Layer], name: str) -> list[str]:
    """Return all layers that one command takes apart."""
    own = layers[name]
    if own.kind != "lvm":
        return [name]
    return sorted(one for one, layer in layers.items() if layer.kind == "lvm" and layer.group == own.group)


def _why_kept(
    layers: t.Mapping[str, Layer],
    drives: t.Mapping[str, set[str]],
    name: str,
    retired: t.Collection[str],
    kept: t.Mapping[str, str],
) -> str:
    """Return why a layer is not taken apart; "": it is only on drives that may be."""
    layer = layers[name]
    if layer.kind not in _COMMANDS:
        return f"it is {layer.kind}, which is taken apart by hand"
    if not _PLAIN.fullmatch(layer.name.rpartition("/")[2]):
        return "its name holds characters that no command gets"
    if any(_is_namesake(layer, other) for other in layers.values()):
        return f"another {layer.kind} is called {layer.name} too"
    below = set().union(*(drives[one] for one in _same_group(layers, name)))
    reasons = [f"{drive}: {kept[drive]}" for drive in sorted(below & set(kept))]
    others = sorted(below - set(kept) - set(retired))
    reasons += [f"{layer.name} is also on {', '.join(others)}, which no entry calls retired"] if others else []
    return "; ".join(reasons)


def _is_namesake(layer: Layer, other: Layer) -> bool:
    if (layer.kind, layer.name) != (other.kind, other.name) or layer is other:
        return False
    return layer.kind != "lvm" or layer.group != other.group


def _next(layers: t.Mapping[str, Layer], left: t.Sequence[str]) -> list[str]:
    """Return what goes first: nothing else that is left is built on it."""
    for name in left:
        together = [one for one in _same_group(layers, name) if one in left]
        above = [one for one in left if one not in together and set(together) & _all_below(layers, one)]
        if not above:
            return together
    return list(left[:1])  # layers in a circle, which the kernel does not make


def _dashed(uuid: str) -> str:
    """Return the UUID of a volume group as LVM prints and compares it."""
    return "-".join(
        uuid[start:end] for start, end in ((0, 6), (6, 10), (10, 14), (14, 18), (18, 22), (22, 26), (26, 32))
    )


_COMMANDS: dict[str, t.Callable[[Layer, str], tuple[str, ...]]] = {
    # A name may be that of another volume group by now.
    "lvm": lambda layer, _name: ("vgchange", "--activate", "n", "--select", "vg_uuid=" + _dashed(layer.group)),
    "crypt": lambda layer, _name: ("cryptsetup", "close", layer.name),
    "md": lambda _layer, name: ("mdadm", "--stop", "/dev/" + name),
}
_BY_HAND = {"mpath": ("multipath", "-f"), "loop": ("losetup", "--detach")}


def _command(layer: Layer, name: str) -> tuple[str, ...]:
    known = _COMMANDS.get(layer.kind)
    return known(layer, name) if known else (*_BY_HAND.get(layer.kind, ("dmsetup", "remove")), layer.name)


def read_layers(host: Host) -> dict[str, Layer]:
    """Return every layer of the host by kernel name, as the kernel shows it. A partition counts as its drive."""
    found = {}
    for name in host.listdir("/sys/block"):
        below = host.listdir(f"/sys/block/{name}/slaves")
        if below:
            found[name] = _layer(host, name, frozenset(_whole(host, one) for one in below))
    return found


def _whole(host: Host, name: str) -> str:
    block = "/sys/class/block/" + name
    if host.exists(block + "/partition"):
        return host.realpath(block).rstrip("/").split("/")[-2]
    return name


def _layer(host: Host, name: str, below: frozenset[str]) -> Layer:
    own, number = (host.get(f"/sys/block/{name}/dm/{file}") or "" for file in ("name", "uuid"))
    if number.startswith("LVM-"):
        return Layer("lvm", own.replace("--", "\n").partition("-")[0].replace("\n", "-"), number[4:36], below)
    if number.startswith("CRYPT-"):
        return Layer("crypt", own, "", below)
    if own:
        return Layer(number.partition("-")[0] or "a mapping of device-mapper", own, "", below)
    kind = "md" if host.exists(f"/sys/block/{name}/md") else name.rstrip("0123456789")
    return Layer(kind, "/dev/" + name, "", below)


class Apart(t.NamedTuple):
    """What was, or would be, done. failed: the command that failed, and what it said; "": none did."""

    done: list[Step]
    plan: Plan
    drives: list[FoundDrive]
    failed: str = ""


def take_apart(host: Host, entries: t.Sequence[Entry], state_dir: str | None, acts: bool) -> Apart:
    """Take apart what is built on the drives that these entries call retired, or only say what would be."""
    done: list[Step] = []
    while True:
        drives, now = look(host, entries, state_dir)
        if not acts or not now.steps:
            return Apart(done, now, drives)
        step = now.steps[0]
        result = host.run(list(step.argv), timeout_s=_TIMEOUT_S)
        left = [name for name in step.layers if host.exists("/sys/block/" + name)]
        if result.rc != 0 or left:
            said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[0]
            return Apart(done, now, drives, f"{' '.join(step.argv)} ended with {result.rc} and said: {said:.200}")
        done.append(step)


def look(host: Host, entries: t.Sequence[Entry], state_dir: str | None) -> tuple[list[FoundDrive], Plan]:
    """Judge the drives, as the guard does but for what is built on them, and plan."""
    found = guard_check.check(host, entries, state_dir=state_dir, terms=None, apart=BUILT_ON)
    retired, kept = [], {}
    for one, entry in zip(found, entries):
        name = one.identity.kernel_name if one.identity else None
        if name and entry.options.retired:
            why = [refusal for refusal in one.refusals if refusal.code not in BUILT_ON]
            if any(refusal.code == "not_given_up" for refusal in why):  # says why what lies on the drive stands
                why = [refusal for refusal in why if refusal.code not in CODES]
            if why:
                kept[name] = "; ".join(f"{refusal.code}: {refusal.message}" for refusal in why)
            else:
                retired.append(name)
    layers = read_layers(host)
    planned = plan(layers, retired, kept)
    covered = set().union(*(_drives(layers, name) for name in layers)) if layers else set()
    for one in found:  # such as a loop device, a pool of ZFS, or a program that holds it
        name = one.identity.kernel_name if one.identity else None
        held = [refusal.message for refusal in one.refusals if refusal.code in BUILT_ON]
        if name in retired and name not in covered and held:
            planned.kept.append(Kept(str(name), "; ".join(held), ""))
    planned.kept.extend(Kept(name, why, "") for name, why in kept.items() if name not in covered)
    return found, planned


def module_result(host: Host, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the module's result."""
    apart = take_apart(host, [parse(drive) for drive in options["drives"]], options["state_dir"], options["acts"])
    steps = apart.done if options["acts"] else apart.plan.steps
    return {
        "changed": bool(steps),
        "steps": [_told(step) for step in steps],
        "kept": [one._asdict() for one in apart.plan.kept],
        "failed_step": apart.failed,
    }


def _told(step: Step) -> dict[str, t.Any]:
    return {"command": " ".join(step.argv), "layers": list(step.layers), "drives": list(step.drives)}
