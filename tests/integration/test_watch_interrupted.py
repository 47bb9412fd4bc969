# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C while a play watches: it says that the run goes on, and how to come back."""

from __future__ import annotations

import re
import signal

from waiting import wait_for_end, wait_until


def test_ctrl_c_says_that_the_run_goes_on_and_how_to_come_back(site, loop_drive):
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive().selector]}}

    def begin():
        process = site.start("qualify")
        wait_until(lambda: "Watching run" in site.said, "the watch", process=process, said=lambda: site.said)
        return 0, process

    with site.held(begin) as (_code, process):
        process.send_signal(signal.SIGINT)
        wait_for_end(process, "the play to be interrupted")
        (run,) = site.run_folders()
        back = f"ansible-playbook playbooks/watch.yml -i <inventory> -e ssd_run_id={run.name}"
        assert f"The run {run.name} goes on on its hosts." in site.said and back in site.said, site.said
    code, output = site.play("watch", "-e", f"ssd_run_id={run.name}")
    assert code == 0 and "goes on on its hosts" not in output, output
    # What a drive that is done came to, whether this machine was quiet enough or not.
    done = r"rack1-07 +\S+ +(pass so far|invalid|fail) +\S.* [0-9,.]+ IOPS"
    assert re.search(done, output), output
