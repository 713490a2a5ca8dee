# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Jinja glue over module_utils/scalebook; no logic here."""

from __future__ import annotations

import json
from pathlib import Path

import ansible.module_utils
from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.utils.vars import load_extra_vars

# Ansible packs module_utils for modules only; a filter has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook import (  # noqa: E402
    controller,
    horovod,
    inputs,
    jobs,
    knobs,
    preflight,
    pythons,
    seen,
    turns,
    urls,
)
from ansible.module_utils.scalebook.wanted import wanted as wanted_of  # noqa: E402


def nodes(hosts, device):
    """Return what planning and launching need to know of the nodes, from their hostvars.

    Nodes with a local connection are one machine, whatever they are called; `host` is the one of the
    inventory's that acts for a node, of a machine's nodes the first. What it found goes for all of
    them, its GPUs before the `slots` of the inventory.
    """
    hosts = list(hosts)
    names = [str(host["inventory_hostname"]) for host in hosts]
    local = [host.get("ansible_connection", "ssh") == "local" for host in hosts]
    acts = [local.index(True) if here else index for index, here in enumerate(local)]
    found = []
    for index, host in enumerate(hosts):
        actor = hosts[acts[index]]
        address = "127.0.0.1" if local[index] else str(host.get("ansible_host", names[index]))
        gpus = int(actor.get("__campaign_found", 0)) if device == "gpu" else 0
        try:
            machine = inputs.check_address(address, names[index])
            listens = inputs.check_address(str(host.get("node_address", address)), names[index])
            slots = inputs.check_slots(host)
        except ValueError as error:
            raise AnsibleFilterError(str(error)) from error
        found.append(
            {
                "name": names[index],
                "host": names[acts[index]],
                "address": listens,
                "slots": gpus or slots,
                "machine": "localhost" if local[index] else machine,
                "work": actor.get("__campaign_place"),
            }
        )
    return found


def extra_variables(loader):
    """Return the names given with -e; the argument is not used, a filter must have one."""
    del loader
    from ansible.parsing.dataloader import DataLoader

    return sorted(load_extra_vars(DataLoader())) if context.CLIARGS.get("extra_vars") else []


def knob_problem(raw, workload, given, roles, readers):
    """Return what is wrong with the knobs as they came, "" when nothing is; see knobs.read_knobs."""
    try:
        knobs.check_names(given, roles, readers)
        # What depends on the device or the nodes is for the plan, which knows them.
        knobs.read_knobs(raw, workload, next(iter(workload["models"])))
        knobs.safe_name("campaign", raw.get("campaign") or "unnamed")
    except ValueError as error:
        return str(error)
    return ""


def role_directories(paths, having="tasks/main.yml"):
    """Return {name: directory} of the roles below `paths` that have the file `having`."""
    found = (found for path in paths for found in sorted(Path(path).glob(f"*/{having}")))
    directories = (path.parents[having.count("/")] for path in found)
    return {directory.name: str(directory) for directory in directories}


def make_jobs(run, campaign, members, port):
    """See jobs.make_jobs; `run` is {"case", "repeat"}, `members` are its nodes as `nodes` returns them."""
    try:
        return jobs.make_jobs(run["case"], run["repeat"], campaign, members, port)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def job_dirs(mine, workload, case, limits, script):
    """Return {directory: {file: content}} of the jobs `mine`; `script` is the text of run.sh."""
    try:
        return {
            job["dir"]: {
                "job.env": jobs.env_file(job["env"]),
                "watch.json": json.dumps(jobs.watch(workload, case, job["task_index"], **limits)),
                "run.sh": script,
            }
            for job in mine
        }
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def local_logs(all_jobs, members):
    """Return {node: path} of the logs that lie on this machine, those of nodes with a local connection."""
    return {
        job["node"]: f"{job['dir']}/{job['node']}.log"
        for job, node in zip(all_jobs, members, strict=True)
        if node["machine"] == "localhost"
    }


def identity(_):
    """See controller.identity; the argument is not used, a filter must have one."""
    return controller.identity()


def wanted(variables, hosts, roles):
    """See wanted.wanted; `variables` and `hosts` are hostvars, `roles` where Ansible looks for roles."""
    top = Path(__file__).resolve().parent.parent
    folders = [top / name for name in ("playbooks", "library", "module_utils", "filter_plugins")]
    nodes = [(host["inventory_hostname"], host.get("ansible_host")) for host in hosts]
    return wanted_of(variables, nodes, [str(folder) for folder in (*folders, *roles)])


def python_refusal(output, host, core, interpreter=""):
    """See pythons.refusal; `output` is what the host said to pythons.script."""
    return pythons.refusal(host, core, pythons.found(output), interpreter)


def python_choice(output, core):
    """See pythons.choice; `output` as in python_refusal."""
    return pythons.choice(core, pythons.found(output))


def horovod_environment(version, framework, operations):
    """See horovod.build_environment."""
    try:
        return horovod.build_environment(version, framework, operations)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def horovod_lacking(text, wanted):
    """Return what a build lacks of `wanted`, from the output of `horovodrun --check-build`."""
    try:
        return horovod.lacking(horovod.read_check_build(text), wanted)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filters of the playbooks and roles."""

    def filters(self):
        """Name -> function."""
        return {
            "scalebook_nodes": nodes,
            "scalebook_roles": role_directories,
            "scalebook_extra_variables": extra_variables,
            "scalebook_knob_problem": knob_problem,
            "scalebook_jobs": make_jobs,
            "scalebook_job_dirs": job_dirs,
            "scalebook_local_logs": local_logs,
            "scalebook_gang": jobs.gang_command,
            "scalebook_gang_end": seen.gang_end,
            "scalebook_trouble": seen.trouble,
            "scalebook_members": turns.members,
            "scalebook_why_not": turns.why_not,
            "scalebook_remark": turns.remark,
            "scalebook_controller": identity,
            "scalebook_gone": controller.gone,
            "scalebook_holders": controller.holders,
            "scalebook_taken_by": controller.taken_by,
            "scalebook_wanted": wanted,
            "scalebook_redact": urls.redact,
            "scalebook_secret": urls.has_secret,
            "scalebook_python_script": pythons.script,
            "scalebook_python_refusal": python_refusal,
            "scalebook_python_choice": python_choice,
            "scalebook_python_missing": lambda output: not pythons.found(output),
            "scalebook_python_apt": pythons.has_apt,
            "scalebook_finding": preflight.sentence,
            "scalebook_machines": preflight.machines,
            "scalebook_preflight_ask": preflight.ask,
            "scalebook_horovod_environment": horovod_environment,
            "scalebook_horovod_lacking": horovod_lacking,
        }
