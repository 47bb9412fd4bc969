# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the emulators of Fusion-io's tools share. They talk to no card.

Documents: the ioMemory VSL Peak Performance Guide (fio-format -s, fio-pci-check, fio-status and fio-beacon in appendix
  D), the release notes of
VSL 3.2 (fio-pci-check -n), and what fio-status 3.2.16 printed. ASSUMED: the wording of errors and of progress.
"""

from __future__ import annotations

import re
import sys

from emulator import fail

UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}


def find(machine, path):
    """The card behind a control device /dev/fctN."""
    for card in machine["iomemory"]["cards"]:
        if path == f"/dev/fct{card['number']}":
            return card
    return fail(f"Error: '{path}' is not a valid ioMemory device.")


def split(words, with_value):
    """(options, devices); `with_value`: letters that take one, here or attached (-b4096)."""
    found, devices, rest = {}, [], list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            devices.append(word)
        elif word[1] in with_value:
            found[word[1]] = word[2:] or (rest.pop(0) if rest else "")
        else:
            found.update({letter: True for letter in word[1:]})
    return found, devices


def sector_bytes(text):
    """512, 512B, 4K, 4096."""
    match = re.fullmatch(r"([0-9]+)(B|K|k)?", text)
    size = int(match.group(1)) * (1024 if match.group(2) in ("K", "k") else 1) if match else 0
    return size if size in (512, 1024, 2048, 4096) else fail(f"Error: invalid sector size '{text}'.")


def capacity(text, factory_bytes):
    """<size M|G|T|%> of fio-format -s."""
    match = re.fullmatch(r"([0-9.]+)([MGT%])", text)
    if not match:
        fail(f"Error: invalid size '{text}'.")
    size = (
        factory_bytes * float(match.group(1)) / 100
        if match.group(2) == "%"
        else float(match.group(1)) * UNITS[match.group(2)]
    )
    return int(size) if 0 < size <= factory_bytes else fail(f"Error: size '{text}' is out of range.")


def confirmed(options, question):
    """-y, or the answer to the question."""
    if "y" in options:
        return True
    sys.stdout.write(question + " [y/n]? ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
