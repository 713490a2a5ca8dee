# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for two modules that NVIDIA's trainer imports and the package index does not have for it.

DALI reads images on GPUs; the trainer imports it whether it is used or not. dllogger prints the trainer's
lines; the stand-in prints them as dllogger does. Where the real ones are installed they are imported.
"""

import datetime
import importlib
import sys
import types
from typing import Any, Dict, List


def lines(data: Dict[str, Any], step: Any, now: datetime.datetime) -> str:
    """Return the line that dllogger's StdOutBackend prints."""
    values = " ".join("%s : %s " % pair for pair in data.items())
    return "DLL %s - %s %s" % (now, step, values)


def dllogger() -> types.ModuleType:
    """Return a module with what the trainer uses of dllogger; only its standard output is written."""
    module = types.ModuleType("dllogger")
    own_backends: List[Any] = []

    def log(step: Any, data: Dict[str, Any]) -> None:
        if own_backends:
            print(lines(data, step, datetime.datetime.now()), flush=True)

    def init(backends: List[Any]) -> None:
        own_backends[:] = backends

    module.Verbosity = types.SimpleNamespace(VERBOSE=1)  # type: ignore[attr-defined]
    module.JSONStreamBackend = module.StdOutBackend = dict  # type: ignore[attr-defined]
    module.init, module.log = init, log  # type: ignore[attr-defined]
    return module


def dali() -> Dict[str, types.ModuleType]:
    """Return the modules of DALI that the trainer imports, by name, with the class that it derives from."""
    names = ["nvidia", "nvidia.dali", "nvidia.dali.plugin", "nvidia.dali.plugin.tf"]
    modules = {name: types.ModuleType(name) for name in names}
    modules["nvidia.dali"].pipeline = types.SimpleNamespace(Pipeline=object)  # type: ignore[attr-defined]
    for name in names[1:]:
        parent, _, child = name.rpartition(".")
        setattr(modules[parent], child, modules[name])
    return modules


def installed(name: str) -> bool:
    """Return whether a module can be imported."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def add() -> Dict[str, str]:
    """Put stand-ins in the place of what is missing; return `real` or `stand-in` for each."""
    parts = {"dllogger": "dllogger", "dali": "nvidia.dali.plugin.tf"}
    kind_of_part = {part: "real" if installed(name) else "stand-in" for part, name in parts.items()}
    if kind_of_part["dllogger"] != "real":
        sys.modules["dllogger"] = dllogger()
    if kind_of_part["dali"] != "real":
        sys.modules.update(dali())
    return kind_of_part
