# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares, prepares and restores what a host's BMC sets. Documented in plugins/modules/bmc_settings.py."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils.core.files import STATE_DIR
from ..module_utils.records import base
from ..module_utils.records.bmc import BmcRecord
from ..plugin_utils.common import bmc_values, core_internals
from ..plugin_utils.power import access, bios, bmc_proof, fans
from ..plugin_utils.power.bmc import BmcError, BmcIdentity, problem
from ..plugin_utils.power.redfish import RedfishBmc
from ..plugin_utils.validation import module_answers, printable
from ..plugin_utils.validation.host_action import HostAction, Result, refuse_injected_facts

PRESENT, VERIFIED, RESTORED = "present", "verified", "restored"
BIOS, FANS = "bios", "fans"
ARGUMENTS = {
    "state": {"type": "str", "choices": [PRESENT, VERIFIED, RESTORED], "default": PRESENT},
    "parts": {"type": "list", "elements": "str", "choices": [BIOS, FANS], "default": [BIOS, FANS]},
    "bios": {"type": "dict", "default": {}},
    "fans": {"type": "str", "choices": ["", "high"], "default": ""},
    "fans_ipmi": {"type": "dict", "default": {}},
    "state_dir": {"type": "path", "default": STATE_DIR},
}
NOT_ALLOWED = (
    "{0} Nothing was staged, as this host may not be power-cycled: allow it with vendor_power_cycle=true, or set them "
    "in the BIOS set-up yourself."
)

for module in ("host_info", "bmc_record"):
    module_answers.prepare(module)


class Outcome(t.NamedTuple):
    """What came of a part. stage: BIOS attributes that are still to be staged; remarks: for people."""

    record: BmcRecord
    changed: bool = False
    stage: bios.Attributes = {}
    is_pending: bool = False
    before: str = ""
    after: str = ""
    remarks: tuple[str, ...] = ()


class ActionModule(HostAction):
    """The BMC is asked from the controller; the host keeps the record."""

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        result: Result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        _checked, args = self.validate_argument_spec(ARGUMENTS)
        self._access = access.of(variables, self._templar.template)
        self._state_dir, self._variables = args["state_dir"], variables
        wrong = {"bios": bmc_values.bios_problem(args["bios"]), "fans_ipmi": bmc_values.fans_problem(args["fans_ipmi"])}
        for name, why in wrong.items():
            if why:
                raise AnsibleActionFail(f"tune_{name}: {why}")
        try:
            found = self._parts(args, self._recorded())
        except (BmcError, bios.BiosError) as error:
            raise AnsibleActionFail(printable.line(f"the BMC {self._access.address}: {error}", 2000)) from None
        finally:
            self.remove_temporary_folder()
        for remark in found.remarks:
            core_internals.show(printable.line(f"{variables['inventory_hostname']}: {remark}"))
        return {
            **result,
            "changed": found.changed,
            "stage": found.stage,
            "power_cycle_required": found.is_pending,
            "message": " ".join(found.remarks),
            "diff": {"before": found.before, "after": found.after},
        }

    def _parts(self, args: Result, record: BmcRecord) -> Outcome:
        done = Outcome(record)
        asked = {BIOS: bool(args["bios"]), FANS: args["fans"] == "high"}
        if args["state"] == RESTORED:
            asked = {BIOS: bool(record.bios_before), FANS: record.fans is not None}
        for part in args["parts"]:
            if asked[part]:
                one = (self._bios if part == BIOS else self._fans)(args, done.record)
                done = Outcome(
                    one.record,
                    done.changed or one.changed,
                    {**done.stage, **one.stage},
                    done.is_pending or one.is_pending,
                    done.before + one.before,
                    done.after + one.after,
                    done.remarks + one.remarks,
                )
        return done

    def _bios(self, args: Result, record: BmcRecord) -> Outcome:
        """Compare BIOS attributes, record what they were, and say which are to be staged."""
        state, bmc = self._read_bios()
        restores = args["state"] == RESTORED
        if restores:
            want = {name: value for name, value in record.bios_before.items() if name in state.attributes}
        else:
            want = bios.wanted(args["bios"], state, bmc.registry(state.registry))
        differ, stage = bios.not_in_force(want, state), bios.to_stage(want, state)
        if args["state"] == VERIFIED:
            if differ:
                now = {name: state.attributes.get(name) for name in differ}
                raise bios.BiosError(f"the BIOS has {bios.listed(now)} after its boot, not {bios.listed(differ)}")
            return Outcome(record)
        remark = f"BIOS attributes are set by a boot: {bios.listed(differ)}." if differ else ""
        if differ and not self._may_power_cycle() and not self._task.check_mode and not restores:
            raise AnsibleActionFail(NOT_ALLOWED.format(remark))
        if differ and not state.settings:
            raise bios.BiosError("its BIOS attributes can't be set: the resource has no @Redfish.Settings")
        if not self._task.check_mode:
            if restores:
                # The module redfish_config leaves out what is in force, also where something else is staged for it.
                staged = {name: value for name, value in stage.items() if name not in differ}
                if staged:
                    bmc.stage(state.settings, staged)
                if not differ:
                    record = self._keep(dataclasses.replace(record, bios_before={}))
            elif differ:
                before = {**{name: state.attributes[name] for name in differ}, **record.bios_before}
                record = self._keep(dataclasses.replace(record, bios_before=before))
        texts = [bios.text({name: state.attributes.get(name) for name in differ}), bios.text(differ)]
        to_stage = {name: value for name, value in stage.items() if name in differ}
        changed = bool(differ) or (restores and bool(stage))
        return Outcome(record, changed, to_stage, bool(differ), *texts, remarks=(remark,) if remark else ())

    def _read_bios(self) -> tuple[bios.BiosState, RedfishBmc]:
        """Return the BIOS of this very host: another one's is not touched. Raises BmcError, BiosError."""
        missing = problem(self._access)
        if missing or self._access.protocol != "redfish":
            raise bios.BiosError(f"{missing or 'vendor_bmc_protocol: ipmi'}: BIOS attributes need a BMC by Redfish")
        bmc = RedfishBmc(self._access)
        state = bmc.bios()
        why = self._not_ours(state.identity)
        if why:
            raise bios.BiosError(why)
        return state, bmc

    def _not_ours(self, identity: BmcIdentity) -> str:
        """Return why the BMC is not proved to be this host's; "" where it is."""
        asked = {"tools": [], "fio_engines": [], "cut_reach_of": self._state_dir}
        told = self.ask("host_info", asked, self._variables)
        reach = (told.get("host_info") or {}).get("cut_reach") or {}
        why = bmc_proof.problem(identity, reach.get("uuid"), list(reach.get("serials") or ()))
        return f"it is not proved to be this host's: {why}" if why else ""

    def _may_power_cycle(self) -> bool:
        allowed = access.value(self._variables, self._templar.template, "vendor_power_cycle")
        return boolean(allowed) and not problem(self._access)

    def _fans(self, args: Result, record: BmcRecord) -> Outcome:
        """Set the fans, or restore them. What does not work is told, and stops no run."""
        restores = args["state"] == RESTORED
        if args["state"] == VERIFIED:
            return Outcome(record)
        try:
            if problem(self._access):
                raise fans.FansUnset(f"tune_fans: {problem(self._access)}")
            why = self._not_ours(fans.owner(self._access))
            if why:
                raise fans.FansUnset(f"tune_fans: the BMC {self._access.address}: {why}")
            if restores and record.fans:
                change = fans.set_back(self._access, args["fans_ipmi"], record.fans)
            else:
                change = fans.set_high(self._access, args["fans_ipmi"], record.fans)
            after = "high" if not restores else str(change.record.before)
            if change.is_needed and not self._task.check_mode:
                if not restores:
                    record = self._keep(dataclasses.replace(record, fans=change.record))
                change.make()
        except fans.FansUnset as error:
            if restores and not self._task.check_mode:
                raise AnsibleActionFail(printable.line(error)) from None
            return Outcome(record, remarks=(str(error),))
        if restores and not self._task.check_mode:
            record = self._keep(dataclasses.replace(record, fans=None))
        remark = f"the fans are restored to {after}" if restores else self._is_high(change.is_needed)
        texts = (f"fans: {change.now}\n", f"fans: {after}\n") if change.is_needed else ("", "")
        return Outcome(record, change.is_needed, {}, False, *texts, remarks=(remark,))

    def _is_high(self, is_new: bool) -> str:
        would = "would be" if self._task.check_mode and is_new else "are"
        return (
            f"the fans {would} high until the run ends while it is watched (watch.yml); after that the next play, or "
            "restore.yml, restores them"
        )

    def _recorded(self) -> BmcRecord:
        return self._record({"state_dir": self._state_dir})

    def _keep(self, record: BmcRecord) -> BmcRecord:
        """Have the host keep a record before anything is changed. Raises AnsibleActionFail."""
        return self._record({"state_dir": self._state_dir, "record": base.to_json(record)})

    def _record(self, arguments: Result) -> BmcRecord:
        told = self.ask("bmc_record", arguments, self._variables)
        if told.get("failed") or told.get("unreachable"):
            raise AnsibleActionFail(str(told.get("msg") or "the host did not answer"))
        return base.parse(BmcRecord, told["record"])
