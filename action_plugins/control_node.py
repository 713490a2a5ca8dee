# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs a module of the control node in the process of ansible-playbook.

To pack such a module, start a Python for it and compile what it imports takes half a second, many times
what it computes. The links beside this file name the modules that run this way: all that run on the control
node. Such a module is a file of library/ with DOCUMENTATION, whose options are those that it takes, and
run(params, check), which returns the result, or raises ValueError, OSError or an error of a template.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import ansible.module_utils
import yaml
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import module_loader
from jinja2 import TemplateError

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))


@cache
def load(path: str) -> ModuleType:
    """Return the module in the file `path`, imported."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None  # what a path of a .py gives
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spec_of(options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return documented options as an argument spec."""
    spec: dict[str, Any] = {}
    for name, fields in options.items():
        spec[name] = {key: value for key, value in fields.items() if key not in ("description", "suboptions")}
        if "suboptions" in fields:
            spec[name]["options"] = spec_of(fields["suboptions"])
    return spec


class ActionModule(ActionBase):
    """Runs the module that has the name of the action."""

    def run(self, tmp: str | None = None, task_vars: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the module."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        context = module_loader.find_plugin_with_context(
            self._task.action, collection_list=self._task.collections
        )
        module = load(context.plugin_resolved_path)
        _, params = self.validate_argument_spec(spec_of(yaml.safe_load(module.DOCUMENTATION)["options"]))
        # A module gets plain values, without what Ansible adds to their types.
        plain = json.loads(json.dumps(params))
        try:
            result.update(module.run(plain, check=self._task.check_mode))
        except (ValueError, OSError, TemplateError) as error:
            # An exception would go past failed_when of the task.
            result.update(failed=True, msg=str(error))
        return result
