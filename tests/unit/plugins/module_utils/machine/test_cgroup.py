# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cgroup

V2, V1 = (
    "usage_usec 1\nnr_throttled 3\nthrottled_usec 2500000\n",
    "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n",
)


@pytest.mark.parametrize(
    "line, path, text, seconds",
    [
        ("0::/system.slice/x.service", "/sys/fs/cgroup/system.slice/x.service", V2, 2.5),
        # The group above throttles; a container sees its own group as the root.
        ("0::/system.slice/x.service", "/sys/fs/cgroup/system.slice", V2, 2.5),
        ("0::/", "/sys/fs/cgroup", V2, 2.5),
        ("4:cpu,cpuacct:/job", "/sys/fs/cgroup/cpu,cpuacct/job", V1, 2.5),
        ("4:cpuset:/job", "/sys/fs/cgroup/cpu/job", V1, None),
        ("0::/", "/sys/fs/cgroup", "usage_usec 1\n", None),
    ],
)
def test_throttled_time_of_every_group_above(tmp_path, line, path, text, seconds):
    for file, content in (("/proc/self/cgroup", line + "\n"), (path + "/cpu.stat", text)):
        place = tmp_path / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    assert list(cgroup.throttled_s(Host(str(tmp_path))).values()) == ([seconds] if seconds else [])
