# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types
from dataclasses import asdict, replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import generic
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods as purge
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PTS, Done, Method, PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import AnyDrive, NotQueried, OfferedPurge

IDENTITY = Identity(path="/dev/loop9", size_bytes=1 << 30, max_discard_bytes=1 << 20, logical_block_size_bytes=512)
JOB = PlannedPurge("auto", job="[purge]", remainder_job="[rest]")


def offer(method, reason="", hits_others=""):
    return OfferedPurge(method, not reason, reason, hits_others, PTS, [], 1.0)


@pytest.mark.parametrize(
    "method, discard_bytes, chosen",
    [
        ("auto", 1 << 30, "deallocate"),
        ("auto", 0, "overwrite"),
        ("auto", None, "overwrite"),
        ("overwrite", 1 << 30, "overwrite"),
        ("deallocate", 1 << 30, "deallocate"),
    ],
)
def test_any_drive_can_be_emptied_by_what_it_reports(method, discard_bytes, chosen):
    offered = purge.offers(Host(), replace(IDENTITY, max_discard_bytes=discard_bytes), JOB)
    taken = purge.choose(method, offered)
    assert (taken.method, taken.purge_class) == (chosen, "not_pts")


STRONG, HITS, LACKS, WEAK = (
    offer("a_strong"),
    offer("b_hits", hits_others="2 namespaces"),
    offer("c_lacks", reason="no bit"),
    offer("d_weak"),
)


@pytest.mark.parametrize(
    "offered, chosen, why",
    [
        ([STRONG, WEAK], "a_strong", "auto: the strongest that the drive offers"),
        (
            [HITS, LACKS, WEAK],
            "d_weak",
            "auto: the strongest that the drive offers; not b_hits: 2 namespaces; not c_lacks: no bit",
        ),
    ],
)
def test_auto_takes_the_strongest_and_says_why_not_a_stronger_one(offered, chosen, why):
    taken = purge.choose("auto", offered)
    assert (taken.method, taken.why) == (chosen, why)


@pytest.mark.parametrize(
    "method, code, message",
    [
        ("c_lacks", "purge_unsupported", "does not support c_lacks: no bit; it offers: a_strong, d_weak"),
        ("b_hits", "purge_hits_others", "more than this drive: 2 namespaces; it offers: a_strong, d_weak"),
        (
            "overwrite",
            "purge_unsupported",
            "overwrite is not for this kind of drive; the drive offers: a_strong, d_weak",
        ),
        ("sanitise", "purge_unsupported", "sanitise is unknown; the drive offers: a_strong, d_weak"),
    ],
)
def test_what_the_drive_lacks_is_an_error_that_says_what_it_has(method, code, message):
    with pytest.raises(PurgeError, match=message) as caught:
        purge.choose(method, [STRONG, HITS, LACKS, WEAK])
    assert caught.value.code == code


def test_auto_without_any_method_is_an_error_with_the_reasons():
    with pytest.raises(PurgeError, match="not b_hits: 2 namespaces; not c_lacks: no bit"):
        purge.choose("auto", [HITS, LACKS])


def test_methods_with_the_same_reason_stand_together():
    with pytest.raises(PurgeError, match="can be used: not c_lacks, e_lacks: no bit$"):
        purge.choose("auto", [LACKS, replace(LACKS, method="e_lacks")])


@pytest.mark.parametrize(
    ("wanted", "reason"), [(None, ""), (512, ""), (4096, "it cannot change the LBA size from 512 to 4096 bytes")]
)
def test_only_a_method_that_can_set_the_lba_size_is_offered_for_another_one(wanted, reason):
    offered = purge.offers(Host(), IDENTITY, replace(JOB, lba_size_bytes=wanted))
    assert {item.reason for item in offered} == {reason} and all(item.supported == (not reason) for item in offered)


def family(capabilities, **fields):
    nothing = {
        "supported": lambda found: "",
        "commands": lambda found, options: [["x"]],
        "run": lambda work, found: Done(),
        **fields,
    }
    return types.SimpleNamespace(capabilities=capabilities, METHODS=(Method("f", "fake", PTS, 90, **nothing),))


def explode(*_):
    raise KeyError("sanicap")


def refuse(*_):
    raise PurgeError("nvme gave no JSON")


@pytest.mark.parametrize(("broken", "said"), [(explode, "KeyError: 'sanicap'"), (refuse, "nvme gave no JSON")])
def test_a_drive_that_is_not_understood_offers_nothing_of_that_family(broken, said, monkeypatch):
    fake = family(broken)
    monkeypatch.setattr(purge, "FAMILIES", (fake, generic))
    monkeypatch.setitem(purge.METHODS, "f", fake.METHODS[0])
    first = purge.offers(Host(), IDENTITY, JOB)[0]
    assert (first.method, first.supported, first.reason, first.commands, first.timeout_s) == (
        "f",
        False,
        said,
        [],
        None,
    )
    assert "not f: " + said in purge.choose("auto", purge.offers(Host(), IDENTITY, JOB)).why


def test_a_family_that_has_nothing_to_do_with_the_drive_offers_nothing(monkeypatch):
    monkeypatch.setattr(purge, "FAMILIES", (family(lambda *_: None), generic))
    assert [item.method for item in purge.offers(Host(), IDENTITY, JOB)] == ["deallocate", "overwrite"]


def test_the_controller_reads_what_a_host_reports_or_says_why_not():
    asked = purge.probe(Host(), IDENTITY)
    told = {family: asdict(capabilities) for family, capabilities in asked.items()}
    assert purge.reported(told) == asked == {"any": AnyDrive("/dev/loop9", 1 << 30, 1 << 20)}
    told = {"any": {"size_bytes": "1 TB"}, "nvme": {"error": "no JSON"}, "melt": {}}
    found = purge.reported(told)
    assert found == {
        "nvme": NotQueried("no JSON"),
        "any": NotQueried("the host's report is not understood: any.path is missing"),
    }
    assert not any(offer.supported for offer in purge.offers_for(found, 512, JOB))


def test_names_are_unique_and_strengths_put_the_methods_in_one_order():
    methods = [method for module in purge.FAMILIES for method in module.METHODS]
    assert len({method.name for method in methods}) == len(methods)
    for module in purge.FAMILIES:
        assert len({method.family for method in module.METHODS}) == 1
        strengths = [method.strength for method in module.METHODS]
        assert strengths == sorted(set(strengths), reverse=True) or module.__name__ == "fake"
    assert all(method.strength < 30 or method.purge_class == PTS for method in methods)
