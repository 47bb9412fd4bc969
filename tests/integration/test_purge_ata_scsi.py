# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SATA and a SAS drive purged as the host job does it: guard, exclusive hold, sentinels, method, verification.

The drive is a loop device that a `Server` shows as SATA or SAS; the tools are the emulators of tests/emulators, found
by PATH, which work on the file behind it. test_purge_real_tools.py has the real ones.
"""

from __future__ import annotations

import json
import os
import sys
import types

import ata_drive
import drive_data
import emulator
import own_machine
import pytest
import scsi_drive

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import now
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import attributes, identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive, Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import ata, begun, methods, purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Work
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge, Validity
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, planned

KINDS = {"sata": ("ata", ata_drive), "sas": ("scsi", scsi_drive)}
METHODS = {"sata": [m.name for m in ata.METHODS], "sas": [name for name in methods.METHODS if name.startswith("scsi_")]}
# What a method changes the drive with; all else that runs here only reads.
CHANGES = (
    "--sanitize-crypto-scramble",
    "--sanitize-block-erase",
    "--security-set-pass",
    "--security-erase",
    "--security-erase-enhanced",
    "--security-disable",
    "sg_sanitize",
    "sg_format",
)


class Server(Host):
    """This machine, whose loop device hangs on an AHCI port, or has a protection type."""

    def realpath(self, path):
        real = super().realpath(path)
        return (
            real.replace("/devices/virtual/", "/devices/pci0000:00/ata3/")
            if path.startswith("/sys/block/loop")
            else real
        )

    def glob(self, pattern):
        return ["/protection_type"] if "protection_type" in pattern else super().glob(pattern)

    def get(self, path):
        return "0" if path == "/protection_type" else super().get(path)


class Bench:
    """A loop device as a SATA or SAS drive, the emulators' state, and what the host job has at hand."""

    def __init__(self, loop, transport, folder):
        kind, model = KINDS[transport]
        self.path, self.file, self.model, self.kind = loop.path, loop.file, model, kind
        self.machine = str(folder / "machine.json")
        with open(self.machine, "w") as file:
            json.dump({kind: {self.path: model.new(str(self.file))}}, file)
        self.commands, self.journal = [], []
        self.host = Server(log=self.commands.append)
        self.plan = {
            "entry": parse({"backing_file": str(self.file)}),
            "expected": base.to_json(identity.identity(self.host, loop.name)),
        }

    def held(self):
        return HeldDrive(self.host, self.plan, {"run": "test"}, same_boot=True)

    def change(self, **facts):
        with emulator.state(self.machine) as machine:
            for key, value in facts.items():
                machine[self.kind][self.path][key] = dict(machine[self.kind][self.path][key], **value)

    def state(self):
        with open(self.machine) as file:
            return json.load(file)[self.kind][self.path]

    def note(self, event, **fields):
        """Into the journal, as records/events.py wants it."""
        common = {
            "schema_version": 1,
            "time": now(),
            "run_id": "test",
            "host": "rack1-07",
            "drive": "SN",
            "test": "iops",
            "attempt": 1,
        }
        record = json.loads(json.dumps(dict(common, **fields, event=event)))
        documents.validate(record, "journal")
        self.journal.append(record)

    def purge(self, held, method, **options):
        work = Work(
            host=self.host,
            held=held,
            options=PlannedPurge(method, **options),
            tick=lambda share: None,
            note=self.note,
            fill=lambda tick: 0,
            sleep=lambda seconds: None,
        )
        return base.to_json(purge_step.perform(work))

    def fill(self):
        """Write random data to the drive; the hash of all of it."""
        with open(self.file, "r+b") as file:
            file.write(os.urandom(os.path.getsize(self.file)))
        return self.digest()

    def digest(self):
        return drive_data.digest(self.file)

    def changing(self):
        return [argv for argv in self.commands if any(word in CHANGES for word in argv)]


@pytest.fixture
def bench(loop_drive, tmp_path, monkeypatch):
    def make(transport):
        loop = loop_drive(size_bytes=40 << 20)
        monkeypatch.setattr(attributes, "transport", lambda host, name: transport)
        monkeypatch.setattr(locks, "LOCK_DIR", own_machine.lock_folder(tmp_path / "locks"))
        monkeypatch.setenv(emulator.VARIABLE, str(tmp_path / "machine.json"))
        here = os.path.dirname(emulator.__file__)
        monkeypatch.setenv("PATH", os.pathsep.join([here, os.path.dirname(sys.executable), os.environ["PATH"]]))
        return Bench(loop, transport, tmp_path)

    return make


@pytest.mark.parametrize(
    "transport, method", [(transport, method) for transport in METHODS for method in METHODS[transport]]
)
def test_a_purge_under_our_hold(bench, transport, method):
    made = bench(transport)
    held = made.held()
    held.take()
    try:
        held.content_is_ours()
        offered = methods.offers(made.host, held.identity, PlannedPurge("auto"))
        announced = {offer.method: offer.commands for offer in offered}[method]
        before = made.fill()
        record = made.purge(held, method)
        assert record["verified"] and record["verification"] == {"sentinels": 300, "survived": 0, "unreadable": 0}
        assert made.changing() == announced == record["commands"]
        assert made.digest() != before
        held.check()  # still held, still this drive
    finally:
        held.release()
    print(method, "before", before, "after", made.digest())


@pytest.mark.parametrize(
    "transport, method", [("sata", "ata_sanitize_block"), ("sata", "ata_security_erase"), ("sas", "scsi_format_unit")]
)
def test_a_purge_that_does_nothing_is_not_verified(bench, transport, method):
    made = bench(transport)
    made.change(faults={"erases_nothing": True})
    held = made.held()
    held.take()
    try:
        held.content_is_ours()
        record = made.purge(held, method)
        assert not record["verified"] and record["verification"]["survived"] == 300
    finally:
        held.release()


def test_nothing_is_run_on_a_drive_that_is_not_held(bench):
    made = bench("sata")
    held = made.held()
    held.identify()
    try:
        with pytest.raises(Refused):
            made.purge(held, "ata_security_erase")
    finally:
        held.release()
    assert not made.changing()


@pytest.mark.parametrize(
    "transport, facts, code",
    [
        ("sata", {"security": {"password": "theirs", "locked": True}}, "ata_security"),
        ("sata", {"security": {"password": "theirs"}}, "ata_security"),
        ("sata", {"security": {"attempts": 0}}, "ata_security"),
        ("sata", {"sanitize": {"state": "SD2", "running": "block_erase"}}, "sanitize_running"),
        ("sata", {"sanitize": {"state": "SD3"}}, "sanitize_failed"),
        ("sata", {"faults": {"silent": True}}, "probe_failed"),
        ("sas", {"faults": {"silent": True}}, "probe_failed"),
    ],
)
def test_the_guard_reads_the_same_states(bench, transport, facts, code):
    made = bench(transport)
    made.change(**facts)
    before = made.digest()
    (result,) = guard_check.inspect(made.host, [made.plan["entry"]])
    assert code in [refusal["code"] for refusal in result["refusals"]] and not result["eligible"]
    with pytest.raises(Refused):
        made.held().take()
    assert made.digest() == before and not made.changing()


def run_campaign(made, history):
    """A campaign of a resumed run, in which no test is left to do."""
    job = types.SimpleNamespace(
        host=made.host,
        run_dir=types.SimpleNamespace(run_id="test", raw=lambda name: None, state_dir=None),
        journal=types.SimpleNamespace(
            record=lambda event, **fields: {"event": event, **fields},
            write=lambda record: made.note(**record),
        ),
        status=types.SimpleNamespace(set_drive=lambda *args, **kwargs: None),
        stop=None,
        fio_path="fio",
        same_boot=True,
        terms=Terms(),
        validity=Validity(False, {}),
        leave="as_is",
        criteria=[],
        sample_interval_s=0,
        write_bytes_per_s=None,
        history=[dict(record, drive="SN") for record in history],
        tuned=types.SimpleNamespace(leave_place=lambda name: None),
        ended={},
        health_criteria=[],
        kernel_log=None,
        in_service=False,
        side_by_side=None,
        drives=[],
        time_budget_s=None,
    )
    drive = planned.drive(drive="SN", selector=made.plan["entry"].given, expected=made.plan["expected"])
    return campaign.Campaign(job, drive).run()


def test_a_resumed_run_takes_a_left_password_off_before_anything_else(bench):
    made = bench("sata")
    made.change(security={"password": ata.PASSWORD, "locked": True})
    assert run_campaign(made, [{"event": begun.PASSWORD_SET}]) == "complete"
    assert made.state()["security"]["password"] is None
    assert [argv[3] for argv in made.changing()] == ["--security-disable"]
    assert made.journal[0]["event"] == begun.PASSWORD_CLEARED


def test_a_password_that_stays_on_ends_the_campaign_with_what_to_do(bench):
    made = bench("sata")
    made.change(security={"password": ata.PASSWORD, "locked": True, "frozen": True})
    assert run_campaign(made, [{"event": begun.PASSWORD_SET}]) == "error"
    assert (
        "security is frozen" in made.journal[-1]["message"]
        and "--security-disable ssdlab-fleet" in made.journal[-1]["message"]
    )
