# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""--busy, of the benches whose exit code judges figures that depend on time: there they mean nothing."""

from __future__ import annotations

import argparse

# Of `ssd_validity_limits`: what others take from fio is no matter where no drive is measured.
OTHERS_LOAD = {
    **dict.fromkeys(("waited_max", "steal_max", "throttled_max"), 1),
    **dict.fromkeys(("host_excess_max", "host_part_max"), 1),
}

# Of a test's `steady_state`: a busy machine makes a round of a second slow, and no rate is judged here.
ANY_RATES = {"range_limit": 1, "slope_limit": 1}


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--busy", action="store_true", help="the machine does other work: only tell the figures")


def exit_code(options: argparse.Namespace, missed: bool, otherwise: int = 1) -> int:
    """0, or where a limit was missed on a machine that is not busy, what else."""
    return otherwise if missed and not options.busy else 0
