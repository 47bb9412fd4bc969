# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report outlives the job that wrote it: uploaded to a WebDAV server (wsgidav) and to an S3 one (moto), and the
message links to it; what the upload lacks is said before anything is measured.
"""

from __future__ import annotations

import contextlib
import threading

import pytest
from conftest import REPO

USER, PASSWORD = "ssd", "pass/word"
OURS, OTHERS = (REPO / folder for folder in ("playbooks/collections", ".ansible/collections"))
WITHOUT_AWS, WITH_AWS = ({"ANSIBLE_COLLECTIONS_PATH": path} for path in (str(OURS), f"{OURS}:{OTHERS}"))


@contextlib.contextmanager
def webdav(folder):
    """A WebDAV server of a folder for one user; its address."""
    server_module = pytest.importorskip("cheroot.wsgi")
    app_module = pytest.importorskip("wsgidav.wsgidav_app")
    users = {"*": {USER: {"password": PASSWORD}}}
    config = {
        "provider_mapping": {"/": str(folder)},
        "simple_dc": {"user_mapping": users},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "logging": {"enable": False},
        "verbose": 0,
    }
    server = server_module.Server(("127.0.0.1", 0), app_module.WsgiDAVApp(config))
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.bind_addr[1]}/reports"
    finally:
        server.stop()


@contextlib.contextmanager
def s3():
    """An S3 service with the bucket `lab`: its address, and a client."""
    if not (OTHERS / "ansible_collections/amazon/aws").is_dir():
        pytest.skip("needs amazon.aws in .ansible")
    moto = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        keys = {"aws_access_key_id": USER, "aws_secret_access_key": PASSWORD}
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="lab")
        yield address, client
    finally:
        server.stop()


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_uploaded_and_the_message_links_to_it(site, loop_drive, tmp_path):
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive().selector]}}
    # What an earlier upload left is written over.
    (tmp_path / "dav/reports/night/drives").mkdir(parents=True)
    site.vars.update(report_upload_user=USER, report_upload_password=PASSWORD)
    with webdav(tmp_path / "dav") as address:
        site.vars["report_upload_url"] = address
        code, output = site.play("qualify", "-e", "ssd_run_id=night")
        assert code == 0 and PASSWORD not in output, output
        report = files(site.results / "night/report")
        assert files(tmp_path / "dav/reports/night") == report and any("/" in name for name in report)
        code, output = site.play("notify", "-e", "ssd_run_id=night")
        assert code == 0 and f"Report: {address}/night/index.html" in output, output
    # A server that is gone costs the upload alone, and is told.
    code, output = site.play("report", "-e", "ssd_run_id=night")
    assert code != 0 and "The report was not uploaded: Upload | Make the folders by WebDAV" in output, output
    assert (site.results / "night/report/index.html").exists()
    with s3() as (address, client):
        site.vars.update(report_upload_url="s3://lab/ssd/", report_upload_s3_endpoint=address)
        site.vars["report_publish_url"] = f"{address}/lab/ssd"
        code, output = site.play("report", "-e", "ssd_run_id=night", env=WITH_AWS)
        assert code == 0 and PASSWORD not in output, output
        found = client.list_objects_v2(Bucket="lab")["Contents"]
        assert {one["Key"] for one in found} == {f"ssd/night/{name}" for name in files(site.results / "night/report")}
        page = client.get_object(Bucket="lab", Key="ssd/night/index.html")
        assert page["ContentType"] == "text/html" and b"<html" in page["Body"].read()
        code, output = site.play("notify", "-e", "ssd_run_id=night")
        assert f"Report: {address}/lab/ssd/night/index.html" in output, output


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://lab/ssd", "the controller lacks the collection amazon.aws"),
        ("ftp://example.com/ssd", "is neither s3://BUCKET/PREFIX nor"),
    ],
)
@pytest.mark.parametrize("playbook", ["preflight", "qualify"])
def test_what_an_upload_lacks_is_said_before_anything_is_measured(site, loop_drive, playbook, url, said):
    drive = loop_drive(size_bytes=32 << 20)
    digest = drive.digest()
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    site.vars["report_upload_url"] = url
    code, output = site.play(playbook, env=WITHOUT_AWS)
    output = " ".join(output.split())
    assert code != 0 and said in output, output
    assert drive.digest() == digest and site.run_folders() == [], output
