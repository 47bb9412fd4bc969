# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run id that is measured anew, once cleanup.yml took the run off its host: what was collected before does not stand
for what was lost now.
"""

from __future__ import annotations

AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
# What Ansible says depends on whether ssh has ended before the module is sent to it.
LOST = ("Connection refused", "could not be sent to remote host")


def test_a_host_that_is_lost_while_it_measures_anew_has_no_verdict_of_before(site, loop_drive):
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive("one").selector]}}
    site.vars["ssd_run_id"] = "fixed"
    code, output = site.play("qualify")
    assert code == 0 and site.summary()["verdicts"]["pass"] == 1, output
    code, output = site.play("cleanup")
    assert code == 0 and not site.run_folders(), output
    code, output = site.play("start")
    assert code == 0, output
    here = dict(site.hosts["rack1-07"])
    site.hosts["rack1-07"].update(AWAY)
    assert site.play("collect")[0] != 0
    code, output = site.play("report")
    assert code != 0 and site.summary()["verdicts"]["pass"] == 0, output
    (drive,) = site.summary()["drives"]
    assert drive["verdict"] == "not_tested" and any(text in drive["reasons"][0] for text in LOST), output
    # Nothing is lost: what the host measured comes with the next collect, and counts.
    site.hosts["rack1-07"] = here
    code, output = site.play("watch")
    assert code == 0, output
    code, output = site.play("collect")
    assert code == 0, output
    code, output = site.play("report")
    assert code == 0 and site.summary()["verdicts"]["pass"] == 1, output
