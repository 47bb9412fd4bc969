# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import headline, judged_criteria

BUSY = (
    "iops: host busy in {0} of 60 rounds (round {0}: fio waited); other I/O in 1; too few others are left for a window"
)
SLOW = "iops: write_iops {0} < 500 (criterion iops write_iops min 500)"
MEDIA = "run: media_errors {0} > 0 (criterion media_errors max 0)"
UNHEALTHY = "iops: it counted {0} more media errors (media_errors, max 0)"


def drive(verdict, *reasons, **more):
    tests = [{"test": name} for name in ("iops", "latency", "run", "a")]
    return {"host": "h1", "drive": "S1", "verdict": verdict, "reasons": list(reasons), "tests": tests, **more}


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (drive("pass", "iops: write_iops 800 >= 500 (criterion iops write_iops min 500)"), "passed"),
        (drive("pass", judged_criteria.NO_CRITERION), "passed, held to no criterion"),
        (drive("pass", judged_criteria.HEALTH_ALONE), "passed, held to health alone"),
        (drive("fail", SLOW.format(352)), "failed: write IOPS below its limit"),
        (drive("fail", MEDIA.format(3), SLOW.format(352)), "failed: media errors, write IOPS below its limit"),
        (
            drive(
                "fail",
                "latency: read_p99_9_latency_us 91.3 µs > 80 µs (criterion latency read_p99_9_latency_us max 80)",
            ),
            "failed: read p99.9 latency above its limit",
        ),
        (
            drive("fail", "iops: write_iops 0.4 > 0.3 (criterion write_iops max 0.3)"),
            "failed: write IOPS above its limit",
        ),
        (drive("fail", "the host's fault: h1 is slow", SLOW.format(1), host_fault=True), "failed: slow host"),
        (drive("fail", UNHEALTHY.format(3), SLOW.format(352)), "failed: media errors, write IOPS below its limit"),
        (drive("fail", "iops: an I/O took 41.2 s (longest_io_s, max 30)"), "failed: longest I/O"),
        (drive("fail", "a: its spare is 3 % (available_spare_pct, min 5, max 100)"), "failed: available spare"),
        (drive("fail", "a: its count is 3 (media_errors, max -1)"), "failed: media errors"),
        (drive("fail", "a: its count is 3 (media_errors, max 1e-06)"), "failed: media errors"),
        (
            drive("error", "iops: the test ended with an error: its self-test, 40 % left, did not end within 3 h"),
            "ended with an error: self-test does not end",
        ),
        (
            drive("invalid", "iops: interrupted: the host job failed with OSError: No space left on device"),
            "not measured validly: host job failed",
        ),
        (
            drive(
                "fail", "power-cut: its write cache is off, and it lost 2 blocks that it had acknowledged, unflushed"
            ),
            "failed: lost at a power cut",
        ),
        (
            drive("invalid", "iops: its link power management changed from max_performance to med_power_with_dipm"),
            "not measured validly: power state changed",
        ),
        (drive("invalid", "iops: its link fell from 16 GT/s x4 to 8 GT/s x4"), "not measured validly: slower link"),
        (
            drive("not_tested", "S1 on h1 was left out: versions: kernel has version 4.4"),
            "not tested: left out (versions)",
        ),
        (drive("fail", "a: it reached 92 °C (highest_temperature_c, max 80)"), "failed: highest temperature"),
        (drive("fail", "a: 3 (corrected_pcie_errors_per_h, max 1)"), "failed: corrected PCI Express errors an hour"),
        (drive("invalid", "iops: interrupted: stopped by stop.yml"), "not measured validly: stopped"),
        (drive("fail", "health: it warns: read-only. Replace it"), "failed: health: it warns: read-only"),
        (
            drive(
                "fail", 'a: it was reset once, the kernel\'s log says "nvme nvme0: x (y)" (controller_resets, max 0)'
            ),
            "failed: controller resets",
        ),
        (
            drive("fail", "run: at least 2 blocks of 4,096 bytes not read back as written (2 stale)"),
            "failed: wrong blocks",
        ),
        (drive("fail", "run: its short self-test failed: a segment failed"), "failed: self-test failed"),
        (drive("invalid", BUSY.format(31)), "not measured validly: host busy"),
        # A reason of another verdict is no cause of this one.
        (
            drive("error", "iops: the test ended with an error: the drive hangs: no answer", BUSY.format(3)),
            "ended with an error: the drive hangs",
        ),
        (drive("not_tested", "S1 on h1 was left out: mounted: it is mounted: /mnt"), "not tested: left out (mounted)"),
        (drive("not_tested", "S1 was refused on h1: opened (it is open in qemu)"), "not tested: refused (opened)"),
        (
            drive("not_tested", "S1 on h1 was left out: wrong_list: S2 in the same list"),
            "not tested: left out (wrong_list)",
        ),
        (drive("not_tested", "S1 on h1 was left out: the host is unreachable: ssh"), "not tested: host unreachable"),
        (
            drive(
                "not_tested", "S1 on h1 was left out: the approved plan leaves this host out: the host is unreachable"
            ),
            "not tested: host unreachable",
        ),
        (
            drive(
                "not_tested", "S1 on h1 was left out: the approved plan leaves it out: not_found: this host has no such"
            ),
            "not tested: left out (not_found)",
        ),
        (drive("invalid", "words of a host; of no known kind"), "not measured validly: words of a host"),
        (drive("not_tested"), "not tested: no reason known"),
    ],
)
def test_a_drive_in_one_line(judged, said):
    assert headline.of_drive(judged) == said


@pytest.mark.parametrize(
    ("drives", "said"),
    [
        ([], "no drive was asked for"),
        ([drive("pass", "met")], "the drive passed"),
        (
            [drive("pass", "met"), drive("pass", judged_criteria.NO_CRITERION)],
            "all 2 drives passed (1 held to no criterion)",
        ),
        ([drive("pass", judged_criteria.HEALTH_ALONE)], "the drive passed (held to health alone)"),
        ([drive("pass", judged_criteria.HEALTH_ALONE)] * 3, "all 3 drives passed (3 held to health alone)"),
        (
            [
                *[drive("pass", "met")] * 88,
                drive("fail", MEDIA.format(3)),
                drive("fail", SLOW.format(352)),
                *[drive("invalid", BUSY.format(number)) for number in range(2, 8)],
            ],
            "88 of 96 drives passed; 2 failed: media errors 1, write IOPS below its limit 1; "
            "6 not measured validly: host busy",
        ),
        (
            [drive("invalid", f"cause {name}") for name in "abcdefabc"],
            "0 of 9 drives passed; 9 not measured validly: cause a 2, cause b 2, cause c 2, cause d 1, cause e 1, "
            "cause f 1",
        ),
        (
            [drive("invalid", f"cause {name}") for name in "abcdefgabc"],
            "0 of 10 drives passed; 10 not measured validly: cause a 2, cause b 2, cause c 2, cause d 1, cause e 1, "
            "2 more causes 2",
        ),
    ],
)
def test_a_run_in_one_line(drives, said):
    assert headline.of_run(drives) == said


@pytest.mark.parametrize("text", ["x" * 4000, "a: " * 700, "iops: write_iops < " + "(" * 2000, ": " * 1000])
@pytest.mark.parametrize("verdict", ["fail", "invalid", "error", "not_tested"])
def test_words_of_a_host_of_any_length_make_a_short_line(text, verdict):
    assert len(headline.of_drive(drive(verdict, text))) < 120
