# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parameters of a playbook, read and checked; see DOCUMENTATION."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.places import ROOT, roles_paths  # noqa: E402
from ansible.module_utils.scalebook.plan import declared, parameters  # noqa: E402
from ansible.module_utils.scalebook.secrets import hidden  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402
from ansible.module_utils.scalebook.yaml_file import MOST_VALUES, count_values  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_parameters
short_description: Read and check the parameters of a playbook
description:
  - Returns a dict with C(values), the parameters of the playbook by name as typed values, C(problem),
    one text that names every mistake, and C(inventory), one line with the values that are from the inventory
    and with their files; these two are empty where there is none.
  - A parameter may come from C(-e) or from the inventory. Names are checked for C(-e) only, since an
    inventory has variables of its own.
options:
  _terms:
    description:
      - Name of the playbook, such as C(bench), then of the playbooks that are part of the same command. The
        parameters of the first are returned.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the parameters
  ansible.builtin.assert:
    that: __parameters.problem | length == 0
    fail_msg: "{{ __parameters.problem }}"
  vars:
    __parameters: "{{ lookup('scalebook_parameters', 'bench') }}"
"""

RETURN = r"""
_raw:
  description: One dict with C(values), C(problem) and C(inventory).
  type: list
  elements: dict
"""


def plain(value: Any) -> Any:
    """Return `value` in plain types: Ansible's containers fill themselves only while they are read."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def near(path: Any) -> str:
    """Return `path` as seen from the working directory if it is below that."""
    whole = Path(str(path)).resolve()
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole)


def _as_text(values: Mapping[str, Any], name: str) -> str:
    """Return a value of the inventory as text, without what is secret."""
    return parameters.text(hidden(plain(values[name]))) if name in values else "none"


class LookupModule(LookupBase):
    """The lookup `scalebook_parameters`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the parameters of the playbook terms[0]."""
        unknown = [term for term in terms if term not in parameters.PLAYBOOKS]
        if not terms or unknown or kwargs:
            raise AnsibleError(f"scalebook_parameters takes names of {', '.join(parameters.PLAYBOOKS)}")
        variables = variables or {}
        extra = dict(load_extra_vars(self._loader))
        # Before any value is looked at: aliases of YAML are cheap until somebody writes them out.
        large = [name for name, value in extra.items() if count_values(value, {}) > MOST_VALUES]
        if large:
            problem = f"{large[0]}: it has more than {MOST_VALUES} values, its YAML aliases written out"
            return [{"values": {}, "problem": problem, "inventory": ""}]
        names = {row.name for row in parameters.TABLE} & set(variables)
        paths = roles_paths(constants.config)
        try:
            extra_variables = plain(extra)
            of_roles, workloads = declared.role_variables(paths), load_workloads(paths)
            names |= parameters.former_variables(workloads, of_roles).keys() & variables.keys()
            values = {name: plain(self._templar.template(variables[name])) for name in names}
            named = names | (of_roles.keys() & variables.keys())
            context = parameters.Context(
                workloads,
                declared.stacks(str(ROOT / "playbooks/vars")),
                of_roles,
                len(variables.get("groups", {}).get("nodes", [])),
                declared.role_choices(paths),
                self._slots(values, variables),
                dict(self._sources(sorted(named - set(extra_variables)), variables)),
                dict(self._uneven(variables)),
                functools.partial(self._role_values, variables),
            )
            read = parameters.read(terms, values, extra_variables, context)
            inventory = parameters.taken_from(terms, read, extra_variables, context)
            return [{"values": read, "problem": "", "inventory": inventory}]
        except parameters.ParameterError as error:
            return [{"values": {}, "problem": str(error), "inventory": ""}]
        except ValueError as error:
            raise AnsibleError(str(error)) from error

    def _role_values(
        self, variables: Mapping[str, Any], names: Sequence[str], stack: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of variables of workloads; an error in place of one that cannot be evaluated."""
        lookup = lookup_loader.get("scalebook_role_variables", loader=self._loader, templar=self._templar)
        values = lookup.values(names, variables, stack)
        return {
            name: value if isinstance(value, Exception) else plain(value) for name, value in values.items()
        }

    def _slots(self, values: Mapping[str, Any], variables: Mapping[str, Any]) -> int:
        """Return the smallest `slots` of the nodes where these may count, 0 where GPUs do."""
        counts = values.get("device") != "gpu" and (values.get("gpus") or values.get("topology"))
        nodes = variables.get("groups", {}).get("nodes", []) if counts else []
        slots = [str(variables["hostvars"][name].get("slots", 1)) for name in nodes]
        return min((int(each) for each in slots if each.isdecimal()), default=0)

    def _uneven(self, variables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield (name, how nodes differ) of the parameters that the inventory does not set alike for all."""
        nodes, first = variables.get("groups", {}).get("nodes", []), variables.get("inventory_hostname")
        raw = getattr(variables.get("hostvars"), "raw_get", None)
        if raw is None or first not in nodes:
            return  # a play that is not of the nodes
        names = {row.name for row in parameters.TABLE}
        here = {name: value for name, value in raw(first).items() if name in names}
        reported: set[str] = set()
        for node in nodes:
            there = {name: value for name, value in raw(node).items() if name in names}
            for name in sorted({*here, *there} - reported):
                if here.get(name) != there.get(name):
                    reported.add(name)
                    yield (
                        name,
                        f"{node} has {_as_text(there, name)}, {first} has {_as_text(here, name)}",
                    )

    def _sources(self, names: Iterable[str], variables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield (name, where its value is from) of those that the inventory sets for this host."""
        for name in names:
            place = next(self._places(name, variables), None)
            if place:
                yield name, place

    def _places(self, name: str, variables: Mapping[str, Any]) -> Iterator[str]:
        """Yield where the inventory sets a variable: of a host before groups, of these before parents."""
        inventory = getattr(variables.get("hostvars"), "_inventory", None)
        host = inventory.get_host(variables["inventory_hostname"]) if inventory else None
        if inventory is None or host is None:
            return
        sources = [Path(source) for source in inventory._sources if Path(source).exists()]
        folders = [source if source.is_dir() else source.parent for source in sources]
        folders.insert(0, Path(variables.get("playbook_dir", ".")))
        groups = sorted(
            host.get_groups(), key=lambda each: (each.depth, each.priority, each.name), reverse=True
        )
        for kind, entity in (("host", host), *(("group", group) for group in groups)):
            for folder in folders:
                yield from self._files(folder / f"{kind}_vars", entity.name, name)
            if name in entity.vars:
                yield f"{kind} {entity.name} of {', '.join(map(near, sources)) or 'the inventory'}"

    def _files(self, folder: Path, entity: str, name: str) -> Iterator[str]:
        """Yield the files below group_vars or host_vars that set a variable for a group or host."""
        for file in self._loader.find_vars_files(str(folder), entity):
            if name in (self._loader.load_from_file(str(file)) or {}):
                yield near(file)
