# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both kinds of store under what happens to them: killed in mid-write, down, several writers. PostgreSQL is started by
the test, on a socket in its folder.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import postgres
import pytest
from waiting import wait_for_end

sa = pytest.importorskip("sqlalchemy")
pytest.importorskip("pandas")
pytest.importorskip("psycopg")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, frames, importer, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

DRIVES = [generator.DEMO[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in range(6)]
# What a controller is while it imports; the argument "stop" holds it within the third host's transaction, after its
# rows are written.
CONTROLLER = textwrap.dedent(
    """
    import sys, time
    sys.path[:0] = sys.argv[4:]
    from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer
    url, folder, stop = sys.argv[1:4]
    write, calls = importer._Part.write, []
    def held(self, *arguments):
        write(self, *arguments)
        calls.append(1)
        if stop == "stop" and len(calls) == 3:
            print("writing", flush=True)
            sys.stdin.readline()
    importer._Part.write = held
    with database.opened(url, make=True) as store:
        importer.import_all(store, folder)
    """
)


@pytest.fixture(name="server", scope="module")
def fixture_server():
    if not postgres.programs():
        pytest.skip("needs the package postgresql")
    with postgres.running(postgres.programs()) as server:
        yield server


@pytest.fixture(name="url", params=["sqlite", "postgresql"])
def fixture_url(request, tmp_path):
    if request.param == "sqlite":
        return database.resolve("", str(tmp_path))
    return database.resolve(request.getfixturevalue("server").new_database("for_" + request.node.originalname), "")


@pytest.fixture(name="results")
def fixture_results(tmp_path):
    generator.make(tmp_path / "results", DRIVES, rounds=8)
    return str(tmp_path / "results")


def controller(url, results, stop=""):
    argv = [
        sys.executable,
        "-c",
        CONTROLLER,
        url,
        results,
        stop,
        *[path for path in sys.path if path.endswith("collections")],
    ]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def put(url, results):
    with database.opened(url, make=True) as store:
        return importer.import_all(store, results)


def hosts_in(url):
    with database.opened(url) as store, store.reading() as connection:
        tables = schema.tables()
        return len(connection.execute(sa.select(tables.part.c.id)).all()), len(
            connection.execute(sa.select(tables.campaign.c.id)).all()
        )


def content(url):
    table = frames.long(url)
    # Texts all, as what is missing has no order.
    return sorted(zip(*(map(str, table[name]) for name in frames.LONG)))


@pytest.fixture(name="wanted")
def fixture_wanted(results, tmp_path):
    """What a store has that nothing happened to."""
    (tmp_path / "calm").mkdir()
    url = database.resolve("", str(tmp_path / "calm"))
    put(url, results)
    return content(url)


def test_killed_in_mid_write_it_loses_nothing_and_repeats_cleanly(url, results, wanted):
    job = controller(url, results, "stop")
    assert job.stdout.readline() == "writing\n"
    job.send_signal(signal.SIGKILL)
    job.communicate()
    assert hosts_in(url) == (2, 2), "two hosts as a whole, of the third nothing"
    (done,) = put(url, results)
    assert done.hosts == 4 and content(url) == wanted
    assert [one.changed for one in put(url, results)] == [False]


def test_two_writers_and_their_repeats_at_once(url, results, wanted):
    jobs = [controller(url, results) for _number in range(4)]
    for job in jobs:
        wait_for_end(job)
    assert [job.returncode for job in jobs] == [0] * 4
    assert content(url) == wanted and hosts_in(url) == (6, 6)


def test_controllers_with_a_slice_each_reach_the_verdicts_of_the_whole_run(url, tmp_path):
    """Four drives and five are too few to be peers; nine are not, whichever slice came last."""
    drives = [*DRIVES, *(DRIVES[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in (6, 7))]
    drives.append(generator.DEMO[2]._replace(host="server-8", serial="SIM0008"))
    criteria = [{"test": "wsat", "metric": "write_iops", "min_of_median": 0.7}]
    for name, part in (("a", drives[:4]), ("b", drives[4:])):
        generator.make(tmp_path / name, part, rounds=8, criteria=criteria)
    jobs = [controller(url, str(tmp_path / name)) for name in "ab"]
    for job in jobs:
        wait_for_end(job)
    tables = schema.tables()
    with database.opened(url) as store, store.reading() as connection:
        counts = [
            sa.select(table.c.verdict, sa.func.count()).group_by(table.c.verdict)
            for table in (tables.campaign, tables.measurement)
        ]
        assert [dict(connection.execute(count).all()) for count in counts] == [{"pass": 8, "fail": 1}] * 2


def test_a_server_that_dies_in_mid_write_loses_nothing(server, results, wanted):
    url = database.resolve(server.new_database("dies"), "")
    job = controller(url, results, "stop")
    assert job.stdout.readline() == "writing\n"
    server.stop("immediate")
    try:
        job.communicate("go on\n", timeout=60)
        assert job.returncode != 0
        assert database.store_problem(url.replace("+psycopg", ""), "").startswith("ssd_store_url: the store postgresql")
        with pytest.raises(StoreError, match="cannot be"):
            put(url, results)
    finally:
        server.start()
    assert database.store_problem(url.replace("+psycopg", ""), "") == ""
    assert hosts_in(url) == (2, 2)
    put(url, results)
    assert content(url) == wanted


def test_a_server_store_of_another_version_is_refused(server, results):
    url = database.resolve(server.new_database("other"), "")
    with database.opened(url, make=True) as store, store.writing() as connection:
        connection.execute(sa.update(schema.tables().store).values(version=schema.VERSION + 1))
    for refused in (frames.long, lambda url: put(url, results)):
        with pytest.raises(StoreError, match="schema version .* playbooks/import.yml"):
            refused(url)


def test_preflight_tells_of_a_user_that_may_not_write(server):
    url = database.resolve(server.new_database("closed"), "")
    with database.opened(url, make=True) as store, store.writing() as connection:
        connection.exec_driver_sql("CREATE ROLE reader LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    assert "permission denied" in database.store_problem(url.replace("ssdlab@", "reader@"), "")


def test_preflight_and_the_report_use_the_store(site, loop_drive):
    """A store that cannot be is a finding of preflight, and one that broke since fails the play after the report, which
    says how to go on.
    """
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive("one").selector]}}
    code, output = site.play("qualify", "-e", "ssd_store_url=sqlite:////proc/no/store.sqlite")
    assert code == 2 and "ssd_store_url: /proc/no/store.sqlite cannot be made" in output and site.run_folders() == []
    site.vars["ssd_run_id"] = "stored"
    code, output = site.play("qualify", "-e", '{"report_exports": ["ocptv", "parquet"]}')
    assert code == 0, output
    table = frames.long(database.resolve("", str(site.results)))
    assert set(table["run"]) == {"stored"} and "write_iops" in set(table["metric"])
    assert len(list((site.results / "stored" / "export" / "ocptv").iterdir())) == 1
    code, output = site.play("import")
    assert code == 0 and "changed=0" in output[output.index("PLAY RECAP") :], output
    code, output = site.play("report", "-e", "ssd_store_url=sqlite:////proc/no/store.sqlite")
    assert (
        code == 2
        and "The results are not in the store" in output
        and "playbooks/import.yml" in output
        and "did not pass" not in output
    )


def test_a_play_fills_a_server_store_that_pandas_reads(server, site, results, wanted):
    """report.yml as a fleet runs it: ssd_store_url of a server, and the documented long table out of it."""
    address = server.new_database("played")
    site.hosts = {drive.host: {"ssd_drives": [drive.serial]} for drive in DRIVES}
    arguments = [f"ssd_results_dir={results}", f"ssd_run_id={generator.RUN_ID}", f"ssd_store_url={address}"]
    code, output = site.play("report", *(word for text in arguments for word in ("-e", text)))
    assert code == 0, output
    url = database.resolve(address, "")
    assert content(url) == wanted
    table = frames.long(url, rounds=False, valid=True)
    assert set(table["serial"]) == {drive.serial for drive in DRIVES} and set(table["run"]) == {generator.RUN_ID}
    assert len(frames.wide(table)) == len(DRIVES) * table["test"].nunique()
