# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A workload that no role declares, and workloads with other values of their variables."""

from dataclasses import replace

from ansible.module_utils.scalebook.workload import Workload

DECLARED = {
    "name": "trainer",
    "title": "A trainer",
    "family": "bert",
    "framework": "A framework",
    "task": "test",
    "unit": "samples",
    "stack": "modern",
    "processes_per_node": 1,
    "models": {"cpu": "tiny", "gpu": "base"},
    "model_names": ["tiny", "base"],
    "dtypes": {"cpu": ["fp32"], "gpu": ["fp32", "fp16"]},
    "xla": [False, True],
    "bsz": {"cpu": 16, "gpu": 32},
    "warmup": 20,
    "window": 100,
    "settings": [],
    "setting_types": {},
    "log": {"literal": "step=", "step": r"step=(?P<step>\d+)"},
    "sanity": [],
}


def workload(**keys):
    """Return a workload with other keys of its declaration."""
    return Workload.from_data({**DECLARED, **keys})


def vary(known, **keys):
    """Return a workload with other keys of its declaration."""
    return Workload.from_data({**known.data, **keys})


def with_settings(known, **settings):
    """Return a workload whose settings have these values, as `resolve` gives them."""
    values = {f"{known.name}_{name}": value for name, value in settings.items()}
    return replace(known, settings=tuple(dict.fromkeys([*known.settings, *values])), values=values)


def with_epoch(known, epochs, samples):
    """Return a workload whose window is the last of these epochs."""
    names = {"epochs": f"{known.name}_epochs", "samples": f"{known.name}_samples"}
    values = {names["epochs"]: epochs, names["samples"]: samples}
    return replace(known, epoch=names, values=values)
