# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nights without AWX: the command lines of docs/nightly-cron.md as systemd and cron would start them, with the message
posted to a chat and handed to a sendmail, both of the test's own.
"""

from __future__ import annotations

import configparser
import fcntl
import json
import os
import re
import shutil
import subprocess

import pytest
from awx_jobs import webhook
from conftest import REPO, TOOLS

PAGE = (REPO / "docs/nightly-cron.md").read_text()
HOME = "/srv/ssd"
UNITS = dict(re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", PAGE, re.DOTALL))
(NOTIFY,) = re.findall(r"^(ANSIBLE_CONFIG=\S+ ansible-playbook \S+/notify\.yml .*)$", PAGE, re.MULTILINE)
(CRONTAB,) = re.findall(r"^0 20 \* \* \* (.*)$", PAGE, re.MULTILINE)
BUSY = 75  # EX_TEMPFAIL, of scripts/nightly


def unit(name):
    """A unit of the page as systemd reads it; keys that occur twice are lists."""

    class Lists(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, self[key] + value if isinstance(value, list) and key in self else value)

    made = configparser.ConfigParser(strict=False, dict_type=Lists, interpolation=None)
    made.optionxform = str
    made.read_string(UNITS[name])
    return made


class Folder:
    """The site's folder of the page, elsewhere: its files, what was mailed and posted, and its nights."""

    def __init__(self, site, folder, address):
        self.site, self.folder, self.mails = site, folder, folder / "mails"
        folder.mkdir()
        (folder / "fleet").symlink_to(REPO)
        (folder / ".venv").symlink_to(TOOLS.parent)
        sendmail = folder / "sendmail"
        sendmail.write_text(f'#!/bin/sh\n[ "$*" = "-t -i" ] && cat >> {self.mails}\n')
        sendmail.chmod(0o755)
        about = {"ssd_mode": "destructive", "ssd_run_name": "nightly", "report_webhook_url": address}
        about.update(report_mail_to=["storage@example.com"], report_sendmail=str(sendmail), report_webhook_delay_s=1)
        about.update(report_publish_dir=str(folder / "www"), report_publish_url="https://reports.example.com/ssd")
        (folder / "nightly.yml").write_text(json.dumps(about))
        for name in ("ssd_mode", "ssd_results_dir"):
            site.vars.pop(name)
        self.write_inventory()

    def write_inventory(self):
        content = {"ssd_servers": {"vars": self.site.vars, "hosts": self.site.hosts}}
        (self.folder / "inventory.yml").write_text(json.dumps(content))

    def night(self, command):
        """Run a command line of the page with the environment that it gives, and no other: its exit status."""
        given = {"HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        environment = {**given, **{name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}}
        command = command.replace(HOME, str(self.folder))
        line = ["/bin/sh", "-c", command]
        done = subprocess.run(line, cwd="/", env=environment, text=True, capture_output=True, check=False)
        self.said = done.stdout + done.stderr
        return done.returncode

    def mailed(self):
        """The newest mails, which are gone then."""
        text = self.mails.read_text() if self.mails.exists() else ""
        self.mails.unlink(missing_ok=True)
        return text


def service():
    """What systemd does for the service of the page, as a command of a shell."""
    about = unit("ssd-nightly.service")["Service"]
    settings = re.findall(r"^Environment=(.*)$", UNITS["ssd-nightly.service"], re.MULTILINE)
    return f"cd {about['WorkingDirectory']} && export {' '.join(settings)} && exec {about['ExecStart']}"


@pytest.fixture
def nights(site, loop_drive, tmp_path):
    drive = loop_drive()
    site.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 1}]
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    with webhook() as (address, posted):
        made = Folder(site, tmp_path / "srv", address)
        made.posted = posted
        yield made


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_the_units_of_the_page_are_valid(tmp_path):
    for name, text in UNITS.items():
        # Programs and folders that are there; all else as it stands.
        text = text.replace(f"{HOME}/fleet", str(REPO)).replace(f"WorkingDirectory={HOME}", f"WorkingDirectory={REPO}")
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *paths], text=True, capture_output=True, check=False)
    mine = [line for line in (done.stdout + done.stderr).splitlines() if "ssd-nightly" in line]
    assert mine == [] and set(UNITS) == {"ssd-nightly.service", "ssd-nightly.timer"}
    assert unit("ssd-nightly.service")["Service"]["Type"] == "oneshot"
    assert unit("ssd-nightly.timer")["Timer"]["OnCalendar"] == "*-*-* 20:00:00"


def test_two_nights_and_those_that_begin_nothing(nights):
    assert nights.night(service()) == 0, nights.said
    (first,) = nights.posted
    run_id = first["text"].split(":")[0]
    page = nights.folder / f"ssd-results/{run_id}/report/index.html"
    assert first["text"].splitlines()[0] == f"{run_id}: the drive passed"
    assert first["text"].endswith(f"Report: https://reports.example.com/ssd/{run_id}/index.html")
    assert page.exists() and (nights.folder / f"www/{run_id}/plotly.min.js").exists(), "the copy needs nothing else"
    mail = nights.mailed()
    assert f"To: storage@example.com\nSubject: SSD {run_id}: the drive passed\n" in mail and first["text"] in mail

    # cron, whose log is its own.
    assert nights.night(CRONTAB) == 0, nights.said
    assert nights.said == "" and "PLAY RECAP" in (nights.folder / "nightly.log").read_text()
    second = nights.posted[-1]["text"]
    assert (
        second.split(":")[0] > run_id and f"Nothing changed since {run_id}" in second and second[:40] in nights.mailed()
    )

    # The same message once more, by hand.
    assert nights.night(f"cd {HOME} && PATH={HOME}/.venv/bin:$PATH {NOTIFY}") == 0, nights.said
    assert nights.posted.pop()["text"] == second and second[:40] in nights.mailed()

    # Refused: last night's message must not be taken for this one's.
    nights.site.vars["ssd_plan"] = ["no-such-test"]
    nights.write_inventory()
    nights.night(CRONTAB)
    assert "preflight found" in nights.said, "cron mails the end of the log"
    assert nights.posted[-1]["text"].startswith("nightly: not started, preflight found 1 thing to fix")
    assert not any("\\n" in posted["text"] for posted in nights.posted), "a line ends by itself"
    assert "Subject: SSD nightly: not started" in nights.mailed()

    # The play of an earlier night is still at work.
    descriptor = os.open(nights.folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert nights.night(service()) == BUSY, nights.said
    finally:
        os.close(descriptor)
    assert nights.posted[-1]["text"] == "Skipped: the play of an earlier night is still at work: nothing is started"
    nights.mailed()

    # What preflight never saw.
    (nights.folder / "inventory.yml").write_text("ssd_servers: [")
    assert nights.night(service()) != 0
    assert nights.posted[-1]["text"].startswith("nightly: nothing was begun")
    assert len(nights.posted) == 5 and "Subject: SSD nightly: nothing was begun" in nights.mailed()
    assert sorted(path.name for path in nights.folder.glob("ssd-results/_nights/*")) == ["nightly.json"]
