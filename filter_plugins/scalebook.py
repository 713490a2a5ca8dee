# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Jinja glue over module_utils/scalebook; no logic here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleFilterError

# Ansible packs module_utils for modules only; a filter has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook import hardware  # noqa: E402
from ansible.module_utils.scalebook.command import command  # noqa: E402
from ansible.module_utils.scalebook.contracts import Case, Node, NodeJob, PendingRun, Plan
from ansible.module_utils.scalebook.launch import container, jobs, lock_holder, outcome  # noqa: E402
from ansible.module_utils.scalebook.launch import provenance as origin  # noqa: E402
from ansible.module_utils.scalebook.launch.mpijob import Manifest, manifest  # noqa: E402
from ansible.module_utils.scalebook.launch.srun import step_command  # noqa: E402
from ansible.module_utils.scalebook.places import ROOT, roles_paths  # noqa: E402
from ansible.module_utils.scalebook.plan import (  # noqa: E402
    allocation,
    declared,
    devices,
    gpu_code,
    hosts,
    placement,
)
from ansible.module_utils.scalebook.plan.one_case import one_case  # noqa: E402
from ansible.module_utils.scalebook.preflight import judge  # noqa: E402
from ansible.module_utils.scalebook.provision import driver, interpreters, packages, systems  # noqa: E402
from ansible.module_utils.scalebook.provision.fingerprint import fingerprint_of  # noqa: E402
from ansible.module_utils.scalebook.report.plan_lines import why_nothing_runs  # noqa: E402
from ansible.module_utils.scalebook.secrets import has_secret, without_secrets  # noqa: E402
from ansible.module_utils.scalebook.workload import Workload  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402


def nodes(all_hosts: Iterable[Mapping[str, Any]], device: str) -> list[Node]:
    """See hosts.nodes; `all_hosts` are hostvars."""
    try:
        return hosts.nodes(all_hosts, device)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def run_layout(
    run: PendingRun,
    campaign: str,
    all_nodes: Sequence[Node],
    lost_nodes: Sequence[str],
    oom: Iterable[Case],
    port: int,
) -> jobs.Layout:
    """See jobs.layout; `run` is {"case", "repeat"}, for `lost_nodes` and `oom` see placement.why_not."""
    case = run["case"]
    members = placement.members(case, all_nodes, lost_nodes)
    skipped, note = (
        placement.why_not(case, all_nodes, lost_nodes, oom),
        placement.remark(case, all_nodes, lost_nodes),
    )
    try:
        return jobs.layout(case, run["repeat"], campaign, members, port, skipped, note)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def launch_command(
    layout: jobs.Layout, run: PendingRun, workload: Mapping[str, Any], launch: Mapping[str, Any]
) -> list[str]:
    """See jobs.start_command; `layout` is that of run_layout, `workload` the declaration of the run's."""
    return jobs.start_command(
        launch, layout["jobs"], layout["members"], run["case"], Workload.from_data(workload)
    )


def trial_step(runs: Sequence[PendingRun], all_nodes: Sequence[Node], launch: Mapping[str, Any]) -> list[str]:
    """Return the command of a step that does nothing on the nodes of the largest of `runs`; see srun."""
    case = max((run["case"] for run in runs), key=lambda case: case["nodes"])
    members = placement.members(case, all_nodes)
    job: Any = {"node": "no job", "dir": "trial"}
    return step_command([job], members, ["/bin/true"], 1, launch["options"], launch["allocation"])


def job_dirs(
    mine: Iterable[NodeJob], workload: Mapping[str, Any], *arguments: Any
) -> dict[str, dict[str, str]]:
    """See jobs.directories; `workload` is the declaration of the run's."""
    try:
        return jobs.directories(mine, Workload.from_data(workload), *arguments)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def container_of(
    parameters: Mapping[str, Any], workload: Mapping[str, Any], *arguments: Any
) -> container.Settings:
    """See container.settings; `workload` is the declaration."""
    try:
        return container.settings(parameters, Workload.from_data(workload), *arguments)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def case_of(parameters: Mapping[str, Any], declarations: Mapping[str, Any], topology: str) -> Case:
    """See one_case; `declarations` are those of the workloads by name."""
    workloads = {name: Workload.from_data(each) for name, each in declarations.items()}
    try:
        return one_case(parameters, workloads, topology, why_nothing_runs)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def mpijob(case: Case, as_declared: Mapping[str, Any], port: int) -> Manifest:
    """See mpijob.manifest; `as_declared` is the workload of the case."""
    return manifest(case, Workload.from_data(as_declared), port)


def origin_of(plan: Plan, playbook: str) -> dict[str, Any]:
    """Return the commit of this checkout and the command that runs `playbook` again; see command.command."""
    return {"scalebook": {"commit": origin.commit(str(ROOT))}, "command": command(plan, playbook)}


def provisioning_fingerprint(
    variables: Mapping[str, Any], all_hosts: Iterable[Mapping[str, Any]], roles: Iterable[str]
) -> str:
    """See fingerprint_of; `variables` and `all_hosts` are hostvars, `roles` the paths of roles."""
    # A collection has the last one in place of those between.
    names = "playbooks library module_utils filter_plugins lookup_plugins connection_plugins plugins".split()
    folders = [ROOT / name for name in names]
    nodes = [(host["inventory_hostname"], host.get("ansible_host")) for host in all_hosts]
    return fingerprint_of(variables, nodes, [str(folder) for folder in (*folders, *roles)])


def python_refusal(output: str, host: str, core: str, interpreter: str = "") -> str:
    """See interpreters.refusal; `output` is what the host said to interpreters.script."""
    return interpreters.refusal(host, core, interpreters.interpreters_in(output), interpreter)


def python_choice(output: str, core: str) -> str:
    """See interpreters.choice; `output` as in python_refusal."""
    return interpreters.choice(core, interpreters.interpreters_in(output))


def system_refusal(answer: str, host: str, device: str, installs: bool) -> str:
    """See systems.refusal; `answer` is what the host said to systems.script."""
    return systems.refusal(host, answer, device, installs)


def stack_choice(
    answers: Mapping[str, str], parameters: Mapping[str, Any], variables: Mapping[str, Any]
) -> dict[str, str]:
    """See gpu_code; `problem` is why no stack can be taken, or a dtype. `variables` are those of a host."""
    names = list(parameters.get("workload") or [])
    stacks = declared.stacks(str(ROOT / "playbooks/vars"))
    workloads = load_workloads(roles_paths(constants.config))
    stack_name = parameters.get("stack_name") or ""
    try:
        choice = gpu_code.choose(answers, names, workloads, stacks, stack_name, variables)
    except ValueError as error:
        return {"stack_name": stack_name, "said": "", "problem": str(error)}
    problem = gpu_code.dtype_refusal(answers, parameters.get("dtype") or [])
    return {"stack_name": choice["stack_name"], "said": choice["said"], "problem": problem}


class FilterModule:
    """The filters of the playbooks and roles."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {
            "scalebook_nodes": nodes,
            "scalebook_gpus": devices.gpus,
            "scalebook_mixed_devices": devices.mixed,
            "scalebook_without_home": hosts.without_home,
            "scalebook_roles": declared.roles_with,
            "scalebook_stack_choice": stack_choice,
            "scalebook_job_dirs": job_dirs,
            "scalebook_run_layout": run_layout,
            "scalebook_launch_command": launch_command,
            "scalebook_job_command": jobs.job_command,
            "scalebook_container": container_of,
            "scalebook_container_provenance": container.provenance,
            "scalebook_container_refusal": container.refusal,
            "scalebook_container_srun_options": container.srun_options,
            "scalebook_one_case": case_of,
            "scalebook_mpijob": mpijob,
            "scalebook_allocation_refusal": allocation.refusal,
            "scalebook_allocation_end": allocation.ends,
            "scalebook_allocation_gone": allocation.gone,
            "scalebook_trial_step": trial_step,
            "scalebook_step_refusal": allocation.step_refusal,
            "scalebook_job_end": outcome.job_end,
            "scalebook_program_end": outcome.program_end,
            "scalebook_hardware": hardware.group,
            "scalebook_origin": origin_of,
            "scalebook_trouble": outcome.trouble,
            "scalebook_linger_note": outcome.linger_note,
            "scalebook_gone": lock_holder.gone,
            "scalebook_holders": lock_holder.holders,
            "scalebook_taken_by": lock_holder.taken_by,
            "scalebook_wanted": provisioning_fingerprint,
            "scalebook_redact": without_secrets,
            "scalebook_secret": has_secret,
            "scalebook_system_script": systems.script,
            "scalebook_system_refusal": system_refusal,
            "scalebook_glibc": systems.glibc,
            "scalebook_package_names": packages.names,
            "scalebook_packages_question": packages.question,
            "scalebook_epel": packages.epel,
            "scalebook_package_tool": packages.tool,
            "scalebook_shipped_python": packages.interpreter,
            "scalebook_driver_script": driver.script,
            "scalebook_driver_plan": driver.plan,
            "scalebook_driver_repository": driver.repository_of,
            "scalebook_driver_lacking": driver.lacking,
            "scalebook_driver_newest": driver.newest,
            "scalebook_driver_version": driver.upstream,
            "scalebook_driver_held": driver.of_version,
            "scalebook_driver_trouble": driver.trouble,
            "scalebook_python_script": interpreters.script,
            "scalebook_python_refusal": python_refusal,
            "scalebook_python_choice": python_choice,
            "scalebook_python_missing": lambda output: not interpreters.interpreters_in(output),
            "scalebook_python_apt": interpreters.has_apt,
            "scalebook_fitness": judge.fitness,
            "scalebook_machines": judge.machines,
            "scalebook_preflight_ask": judge.ask,
        }
