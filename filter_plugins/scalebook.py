# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Jinja glue over module_utils/scalebook; no logic here."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils
from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.utils.vars import load_extra_vars

# Ansible packs module_utils for modules only; a filter has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook import jobs, pythons  # noqa: E402


def node(host, device):
    """Return what planning and launching need to know of a node, from its hostvars.

    Nodes with a local connection are one machine, whatever they are called. The GPUs that were
    found go before the `slots` of the inventory.
    """
    found = int(host.get("__campaign_found", 0)) if device == "gpu" else 0
    local = host.get("ansible_connection", "ssh") == "local"
    address = "127.0.0.1" if local else str(host.get("ansible_host", host["inventory_hostname"]))
    return {
        "name": str(host["inventory_hostname"]),
        "address": str(host.get("node_address", address)),
        "slots": found or int(host.get("slots", 1)),
        "machine": "localhost" if local else address,
        "work": host.get("__campaign_place"),
    }


def extra_variables(loader):
    """Return the names given with -e; the argument is not used, a filter must have one."""
    del loader
    from ansible.parsing.dataloader import DataLoader

    return sorted(load_extra_vars(DataLoader())) if context.CLIARGS.get("extra_vars") else []


def role_directories(paths, having="tasks/main.yml"):
    """Return {name: directory} of the roles below `paths` that have the file `having`."""
    found = (found for path in paths for found in sorted(Path(path).glob(f"*/{having}")))
    directories = (path.parents[having.count("/")] for path in found)
    return {directory.name: str(directory) for directory in directories}


def make_jobs(run, campaign, nodes, port):
    """See jobs.make_jobs; `run` is {"case", "repeat"}, `nodes` as `node` returns them."""
    try:
        members = nodes[: run["case"]["nodes"]]
        work = {entry["name"]: entry["work"] for entry in members}
        lost = [name for name, place in work.items() if not place]
        if lost:
            raise ValueError(f"{', '.join(lost)}: no directory for jobs is known")
        return jobs.make_jobs(run["case"], run["repeat"], campaign, nodes, work, port)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def env_file(env):
    """See jobs.env_file."""
    try:
        return jobs.env_file(env)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def python_refusal(output, host, core, interpreter=""):
    """See pythons.refusal; `output` is what the host said to pythons.script."""
    return pythons.refusal(host, core, pythons.found(output), interpreter)


def python_choice(output, core):
    """See pythons.choice; `output` as in python_refusal."""
    return pythons.choice(core, pythons.found(output))


class FilterModule:
    """The filters of the playbooks and roles."""

    def filters(self):
        """Name -> function."""
        return {
            "scalebook_node": node,
            "scalebook_roles": role_directories,
            "scalebook_extra_variables": extra_variables,
            "scalebook_jobs": make_jobs,
            "scalebook_env_file": env_file,
            "scalebook_gang": jobs.gang_command,
            "scalebook_python_script": pythons.script,
            "scalebook_python_refusal": python_refusal,
            "scalebook_python_choice": python_choice,
            "scalebook_python_missing": lambda output: not pythons.found(output),
            "scalebook_python_apt": pythons.has_apt,
        }
