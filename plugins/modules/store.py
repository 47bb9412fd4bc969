#!/usr/bin/python
# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: store
short_description: Import the results of runs into the store, and export a run from it
version_added: 0.1.0
description:
  - Brings the folder of a run on the controller, or of every run there, into a database - an SQLite file, or
    PostgreSQL.
  - Creates the store if there is none, and refuses one of another schema version.
  - Each host's part of a run is one transaction. Importing the same results again changes nothing, job slices of a run
    merge, and of two records of one test the newer one stays.
  - The folders of runs remain the source of truth. The store can be rebuilt from them at any time.
author:
  - The ssdlab.fleet authors (@ssdlab)
requirements:
  - "Python on the controller - sqlalchemy; psycopg for PostgreSQL; pandas and pyarrow for O(exports)"
options:
  run_id:
    description: The id of the run to import. Empty imports every run in O(results_dir).
    type: str
    default: ""
  url:
    description:
      - The store. Empty is the file C(store.sqlite) in O(results_dir), V(none) no store.
      - Otherwise C(sqlite:////absolute/path) or C(postgresql://user@host/database). Leave the password to C(~/.pgpass)
        or C(PGPASSWORD).
    type: str
    default: ""
  raw:
    description: Whether to store the hosts' raw files too, for environments in which files do not survive.
    type: bool
    default: false
  fetch:
    description:
      - Whether to copy from the store into O(results_dir) instead. Copies C(run.json) and C(results.jsonl) of the run
        O(run_id) and of the run of that name before it, or of the newest runs named O(run_name). With O(raw), also
        copies the hosts' raw files, but not those of the run before. Files that only the folder has stay.
      - For environments in which files do not survive from one play to the next, such as AWX's execution environments.
    type: bool
    default: false
  run_name:
    description: The name of the runs to fetch if O(run_id) is empty.
    type: str
    default: ""
  quarantine_after:
    description:
      - Put the drives of the run O(run_id) in quarantine that got C(fail) in this many runs of its name in a row. Runs
        in which a drive was C(invalid), C(error) or C(not_tested) are ignored; a C(pass) starts the count again.
      - V(0) puts no drive in quarantine.
    type: int
    default: 0
  release:
    description:
      - Do nothing but release a drive, named by its label (the value in C(ssd_drives)) or its serial number, from
        quarantine. If empty, only list the drives in quarantine.
    type: str
  exports:
    description:
      - Formats in which the run is written to O(export_dir) once it is in the store. They need O(run_id).
      - They are C(csv) and C(parquet) (every figure, one a row), C(junit), C(ocptv) (OCP Test & Validation, a file for
        each drive) and C(prometheus).
    type: list
    elements: str
    choices: [csv, parquet, junit, ocptv, prometheus]
    default: []
  export_dir:
    description: The folder of the exports. Empty is C(export) in the run's folder.
    type: str
    default: ""
extends_documentation_fragment:
  - ssdlab.fleet.attributes
  - ssdlab.fleet.results
  - ssdlab.fleet.run_once
attributes:
  check_mode:
    support: partial
    details: It neither opens a store nor writes a file, and does not predict changes.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: ssdlab.fleet.report
  - module: ssdlab.fleet.collect
"""

EXAMPLES = r"""
- name: Put a run into the fleet's database
  ssdlab.fleet.store:
    results_dir: /srv/ssd-results
    run_id: 20261121T130000Z-qualify
    url: postgresql://ssdlab@db.example.com/ssdlab
  delegate_to: localhost
  run_once: true

- name: Make the store again from all folders of runs
  ssdlab.fleet.store:
    results_dir: /srv/ssd-results
  delegate_to: localhost
  run_once: true

- name: Take a run that another job collected from the store
  ssdlab.fleet.store:
    results_dir: ssd-results
    run_id: 20261121T130000Z-nightly
    url: postgresql://ssdlab@db.example.com/ssdlab
    fetch: true
    raw: true
  delegate_to: localhost
  run_once: true

- name: Show a run to Prometheus
  ssdlab.fleet.store:
    results_dir: /srv/ssd-results
    run_id: 20261121T130000Z-qualify
    exports: [prometheus]
    export_dir: /var/lib/prometheus/node-exporter
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
store:
  description: The store, without a password. Empty where there is none (RV(runs) is empty then too).
  returned: success
  type: str
  sample: sqlite:////srv/ssd-results/store.sqlite
runs:
  description: The runs that were imported, or fetched.
  returned: success
  type: list
  elements: dict
  contains:
    run_id:
      description: The run's id.
      type: str
    changed:
      description: Whether the store, or the folder, changed.
      type: bool
    hosts:
      description: Number of hosts' parts that were new or had changed; for a fetched run, the number of parts.
      type: int
  sample: [{run_id: 20261121T130000Z-qualify, changed: true, hosts: 40}]
quarantined:
  description: The drives that were put in quarantine; with O(release) those that are still there.
  returned: success
  type: list
  elements: dict
  contains: &mark
    run_name:
      description: The name of the runs that leave it out.
      type: str
    host:
      description: Its host when it failed last.
      type: str
    drive:
      description: Its label.
      type: str
    identity:
      description: What identifies it on any host. Empty if it has neither serial number nor WWN.
      type: str
    serial:
      description: Its serial number, or empty.
      type: str
    nights:
      description: Number of consecutive runs in which it had failed.
      type: int
    last_run:
      description: The id of the last of them.
      type: str
    reason:
      description: Why it failed in that run.
      type: str
  sample: []
released:
  description: The drives that were released.
  returned: with O(release)
  type: list
  elements: dict
  contains: *mark
  sample: []
exported:
  description: The files that were written.
  returned: success
  type: list
  elements: str
  sample: [/srv/ssd-results/20261121T130000Z-qualify/export/figures.parquet]
"""
